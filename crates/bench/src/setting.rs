//! A setting of the kernel, changed for a while.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::guardian::Guardian;

/// A file of `/sys` or `/proc` with another value in it. When this is dropped, or the process
/// ends in any way, the value before is back.
#[derive(Debug)]
pub(crate) struct Setting {
    /// What to write where, in the end.
    back: PathBuf,
    before: String,
    // Writes the same value again, a moment later, which does no harm.
    _guardian: Guardian,
}

impl Setting {
    /// Writes `value` into `path`; that it was there before is `None`.
    pub(crate) fn change(path: &Path, value: &str) -> Result<Option<Self>> {
        let before = read(path)?;
        (before != value).then(|| Self::exchange(path, value, path, &before)).transpose()
    }

    /// Writes `value` into `path`, and in the end `before` into `back`: of two files that exclude
    /// each other, the one that was in force.
    pub(crate) fn exchange(path: &Path, value: &str, back: &Path, before: &str) -> Result<Self> {
        let guardian = Guardian::writing(back, before)?;
        fs::write(path, value).map_err(Error::other(format!("set {}", path.display())))?;
        Ok(Self { back: back.to_path_buf(), before: before.to_owned(), _guardian: guardian })
    }
}

/// What a setting is now.
pub(crate) fn read(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path);
    Ok(text.map_err(Error::other(format!("read {}", path.display())))?.trim().to_owned())
}

impl Drop for Setting {
    fn drop(&mut self) {
        // The guardian tries it again.
        drop(fs::write(&self.back, &self.before));
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
