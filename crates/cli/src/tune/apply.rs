//! Executes `--apply`: checks all settings first, writes the undo script if the user requested one,
//! and then changes the settings in order.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use haul_disk::{Error, KernelFiles};

use haul_tuning::{Setting, undo_script};

use crate::report::{Exit, Failure, OrFail, Result};

/// The result of changing the settings.
#[derive(Debug)]
pub(super) struct Applied<'a> {
    /// The settings that were changed. The last one may have failed, but only after its value
    /// changed.
    pub(super) done: &'a [Setting],
    /// The setting that could not be changed, and the error. The settings after it were not tried.
    pub(super) failed: Option<(&'a Setting, Error)>,
}

/// Checks that all settings can be changed, and writes the undo script to `undo_to`, if given.
/// Changes no setting.
///
/// An existing script is never overwritten, because it may contain the original settings.
pub(super) fn prepare(files: &KernelFiles, settings: &[Setting], undo_to: Option<&Path>) -> Result {
    for setting in settings {
        files.may_set(&setting.path).map_err(refused)?;
        let now = files.setting(&setting.path).or_fail(|| "nothing was changed".to_owned());
        let now = now.map_err(|failure| failure.exit(Exit::NotStarted))?;
        if now != setting.old {
            let (name, old) = (&setting.name, &setting.old);
            let message = format!("nothing was changed: {name} has changed from {old} to {now}");
            return Err(Failure::new(message)
                .advise("another program is changing it; run haul tune again")
                .exit(Exit::NotStarted));
        }
    }
    let Some(path) = undo_to else { return Ok(()) };
    write_new(path, &undo_script(settings)).map_err(|error| {
        let exists = error.kind() == io::ErrorKind::AlreadyExists;
        let failure = Failure::new(format!("nothing was changed: cannot write {}", path.display()));
        let failure = failure.because(error).exit(Exit::NotStarted);
        if exists {
            failure.advise("it may contain older settings; use another file")
        } else {
            failure
        }
    })
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(path)?;
    file.write_all(text.as_bytes())
}

/// Returns the failure for a setting or a file that cannot be changed.
pub(super) fn refused(error: Error) -> Failure {
    let advice = match error.source.kind() {
        io::ErrorKind::PermissionDenied => {
            "root is required, as with sudo haul tune --apply; --dry-run works for any user"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "mounted read-only, as in containers: run it on the host"
        }
        _ => "check that /proc and /sys are mounted",
    };
    Failure::new("nothing was changed").because(error).advise(advice).exit(Exit::NotStarted)
}

/// Changes the settings in order and calls `report` after each change.
///
/// # Errors
/// Fails only if `report` fails. A setting that cannot be changed is part of the result.
pub(super) fn apply<'a>(
    files: &KernelFiles,
    settings: &'a [Setting],
    mut report: impl FnMut(&Setting) -> Result,
) -> Result<Applied<'a>> {
    for (number, setting) in settings.iter().enumerate() {
        if let Err(error) = files.set(&setting.path, &setting.new) {
            // The setting may now have a third value, neither old nor requested: then this change
            // must be undone, too.
            let is_changed = files.setting(&setting.path).is_ok_and(|now| now != setting.old);
            let done = &settings[..number + usize::from(is_changed)];
            return Ok(Applied { done, failed: Some((setting, error)) });
        }
        report(setting)?;
    }
    Ok(Applied { done: settings, failed: None })
}

/// Fails if a setting could not be changed. The failure lists the commands that undo the earlier
/// changes.
pub(super) fn partial_failure(applied: Applied<'_>) -> Result {
    let Some((setting, error)) = applied.failed else { return Ok(()) };
    let mut failure = Failure::new(format!("cannot set {}", setting.name)).because(error);
    failure = failure.advise(match applied.done {
        [] => "nothing was changed",
        _ => "earlier changes remain; to undo them, run as root:",
    });
    for setting in applied.done.iter().rev() {
        failure = failure.advise(setting.undo());
    }
    Err(failure)
}
