//! Changes a kernel setting temporarily; the old value is restored even after a kill.

use std::fs;
use std::path::{Path, PathBuf};

use haul_disk::Device;

use crate::guardian::Guardian;
use haul_measure::{Error, Result};

/// A changed file in `/sys` or `/proc`, whose old value is restored on drop and when the process
/// ends.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The file to which the old value is written.
    back: PathBuf,
    before: String,
    // On drop, the guardian writes the old value a second time, which is harmless.
    _guardian: Guardian,
}

impl Setting {
    /// Writes `value` to `path`; returns `None` if `path` had this value already.
    pub(crate) fn change(path: &Path, value: &str) -> Result<Option<Self>> {
        let before = read(path)?;
        (before != value).then(|| Self::exchange(path, value, path, &before)).transpose()
    }

    /// Changes a setting of a device in `/sys/block/<disk>/queue`; returns `None` if it has this
    /// value already.
    pub(crate) fn on_device(device: &Device, name: &str, value: &str) -> Result<Option<Self>> {
        Self::change(Path::new(&format!("/sys/block/{}/queue/{name}", device.disk)), value)
    }

    /// Writes `value` to `path`. On drop, `before` is written to `back`. The two paths differ if
    /// the kernel applies only one of two files and clears the other, as with `dirty_bytes` and
    /// `dirty_ratio`: `back` is then the file that the kernel applied before this call.
    pub(crate) fn exchange(path: &Path, value: &str, back: &Path, before: &str) -> Result<Self> {
        let guardian = Guardian::writing(back, before)?;
        fs::write(path, value).map_err(Error::other(format!("set {}", path.display())))?;
        Ok(Self { back: back.to_path_buf(), before: before.to_owned(), _guardian: guardian })
    }
}

/// Returns the value of the setting `path`, trimmed.
pub(crate) fn read(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path);
    Ok(text.map_err(Error::other(format!("read {}", path.display())))?.trim().to_owned())
}

impl Drop for Setting {
    fn drop(&mut self) {
        // An error is ignored: the guardian writes the value again.
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
