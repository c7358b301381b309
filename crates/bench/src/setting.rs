//! A setting of the kernel, changed for a while.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::guardian::Guardian;

/// A file of `/sys` or `/proc` with another value in it. When this is dropped, or the process
/// ends in any way, the value before is back.
#[derive(Debug)]
pub(crate) struct Setting {
    path: PathBuf,
    before: String,
    // Writes the same value again, a moment later, which does no harm.
    _guardian: Guardian,
}

impl Setting {
    /// Writes `value` into `path`; that it was there before is `None`.
    pub(crate) fn change(path: &Path, value: &str) -> Result<Option<Self>> {
        let what = |what: &str| Error::other(format!("{what} {}", path.display()));
        let before = fs::read_to_string(path).map_err(what("read"))?.trim().to_owned();
        if before == value {
            return Ok(None);
        }
        let guardian = Guardian::writing(path, &before)?;
        fs::write(path, value).map_err(what("set"))?;
        Ok(Some(Self { path: path.to_path_buf(), before, _guardian: guardian }))
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        // The guardian tries it again.
        drop(fs::write(&self.path, &self.before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_back_when_it_is_dropped() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "1\n").unwrap();
        assert!(Setting::change(file.path(), "1").unwrap().is_none());
        let changed = Setting::change(file.path(), "0").unwrap();
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "0");
        drop(changed);
        assert_eq!(fs::read_to_string(file.path()).unwrap().trim(), "1");
    }
}
