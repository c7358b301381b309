//! Executes `--persist`: writes the changed settings to files that the system reads at boot.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use haul_disk::sync_parent;
use haul_tuning::{
    PersistedSetting, SYSCTL_FILE, Setting, UDEV_FILE, merge_persisted, parse_persisted,
    persisted_text,
};

use crate::report::{Exit, Failure, OrFail, Result};

/// The files that `--persist` writes.
pub(super) const FILES: [&str; 2] = [SYSCTL_FILE, UDEV_FILE];

/// A file to write.
#[derive(Debug)]
pub(super) struct PlannedFile {
    /// The path of the file without the root.
    pub(super) name: &'static str,
    pub(super) text: String,
    at: PathBuf,
    /// `true` if the file exists. It then has the text of an earlier run.
    is_replaced: bool,
}

/// Returns the path of a file below the root of the system.
pub(super) fn at(root: Option<&Path>, name: &str) -> PathBuf {
    root.unwrap_or(Path::new("/")).join(name.trim_start_matches('/'))
}

/// Reads a file that `--persist` may have written; returns `None` if it does not exist.
///
/// # Errors
/// Fails if the file cannot be read, was written by another program, or was changed since.
pub(super) fn read(at: &Path) -> Result<Option<Vec<PersistedSetting>>> {
    let text = match fs::read_to_string(at) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let failure =
                Failure::new(format!("nothing was changed: cannot read {}", at.display()));
            return Err(failure.because(error).exit(Exit::NotStarted));
        }
    };
    parse_persisted(&text).map(Some).ok_or_else(|| {
        let why = "was not written by \"haul tune --persist\", or was changed since";
        Failure::new(format!("nothing was changed: {} {why}", at.display()))
            .advise("move it away, or edit it by hand")
            .exit(Exit::NotStarted)
    })
}

/// Returns the files that make the settings persistent. Settings of an earlier run remain in them.
/// Writes nothing.
pub(super) fn plan(root: Option<&Path>, settings: &[Setting]) -> Result<Vec<PlannedFile>> {
    let mut files = Vec::new();
    for name in FILES {
        let all = settings.iter().map(PersistedSetting::from);
        let changes: Vec<_> = all.filter(|setting| setting.file() == name).collect();
        if changes.is_empty() {
            continue;
        }
        let at = at(root, name);
        let earlier = read(&at)?;
        let is_replaced = earlier.is_some();
        let text = persisted_text(&merge_persisted(earlier.unwrap_or_default(), changes));
        files.push(PlannedFile { name, text, at, is_replaced });
    }
    Ok(files)
}

/// Writes the files, and makes them durable.
pub(super) fn write(files: &[PlannedFile]) -> Result {
    for file in files {
        let cannot = || format!("cannot write {}", file.at.display());
        let written = file.write().or_fail(cannot);
        written.map_err(|failure| failure.advise("the changed settings last until reboot"))?;
    }
    Ok(())
}

impl PlannedFile {
    /// Writes a temporary file, whose name the system ignores, and gives it its name. A file that
    /// another program has created meanwhile is not replaced.
    fn write(&self) -> io::Result<()> {
        let folder = self.at.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        let mut temporary = self.at.clone().into_os_string();
        temporary.push(".tmp");
        let temporary = PathBuf::from(temporary);
        let mut file = File::create(&temporary)?;
        file.write_all(self.text.as_bytes())?;
        file.sync_all()?;
        if self.is_replaced {
            fs::rename(&temporary, &self.at)?;
        } else {
            let linked = fs::hard_link(&temporary, &self.at);
            fs::remove_file(&temporary)?;
            linked?;
        }
        sync_parent(&self.at)
    }
}
