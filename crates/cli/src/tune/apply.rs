//! Carries out what was planned: asks first, sets one after the other, and knows the way back.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use haul_disk::{Error, KernelFiles};

use super::setting::{Setting, undo_script};
use crate::report::{Exit, Failure, OrFail, Result};

/// What became of it.
#[derive(Debug)]
pub(super) struct Applied<'a> {
    /// What is set now, and was read back.
    pub(super) done: &'a [Setting],
    /// What was not set, and why; nothing behind it was tried.
    pub(super) failed: Option<(&'a Setting, Error)>,
}

/// Makes sure that all can be set and undone before anything is.
///
/// The script that undoes is written here, never over one that is there: that one may know what the
/// settings were before.
pub(super) fn prepare(files: &KernelFiles, settings: &[Setting], undo_to: Option<&Path>) -> Result {
    for setting in settings {
        files.may_set(&setting.path).map_err(refused)?;
        let now = files.setting(&setting.path).or_fail(|| "nothing was changed".to_owned());
        let now = now.map_err(|failure| failure.exit(Exit::NotStarted))?;
        if now != setting.old {
            let told = format!("{} was {}, and is {now} now", setting.name, setting.old);
            return Err(Failure::new(format!("nothing was changed: {told}"))
                .advise("somebody else is changing it; look again")
                .exit(Exit::NotStarted));
        }
    }
    let Some(path) = undo_to else { return Ok(()) };
    write_new(path, &undo_script(settings)).map_err(|error| {
        let is_there = error.kind() == io::ErrorKind::AlreadyExists;
        let failure = Failure::new(format!("nothing was changed: cannot write {}", path.display()));
        let failure = failure.because(error).exit(Exit::NotStarted);
        if is_there {
            failure.advise("it may know older settings: name another file")
        } else {
            failure
        }
    })
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(path)?;
    file.write_all(text.as_bytes())
}

fn refused(error: Error) -> Failure {
    let advice = match error.source.kind() {
        io::ErrorKind::PermissionDenied => {
            "settings of the kernel are for root: sudo haul tune --apply; --dry-run shows them to \
             anybody"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "it is mounted read-only, as in containers: run it on the machine itself"
        }
        _ => "is /proc or /sys mounted here?",
    };
    Failure::new("nothing was changed").because(error).advise(advice).exit(Exit::NotStarted)
}

/// Sets one after the other, and tells each as soon as it is set.
///
/// # Errors
/// What `tell` fails with; a setting that fails is no error here.
pub(super) fn apply<'a>(
    files: &KernelFiles,
    settings: &'a [Setting],
    mut tell: impl FnMut(&Setting) -> Result,
) -> Result<Applied<'a>> {
    for (number, setting) in settings.iter().enumerate() {
        if let Err(error) = files.set(&setting.path, &setting.new) {
            // It may have been set to something else; then it belongs to what must be undone.
            let is_changed = files.setting(&setting.path).is_ok_and(|now| now != setting.old);
            let done = &settings[..number + usize::from(is_changed)];
            return Ok(Applied { done, failed: Some((setting, error)) });
        }
        tell(setting)?;
    }
    Ok(Applied { done: settings, failed: None })
}

/// How the program ends when one could not be set: what is set stays, and how it is undone.
pub(super) fn in_the_middle(applied: Applied<'_>) -> Result {
    let Some((setting, error)) = applied.failed else { return Ok(()) };
    let mut failure = Failure::new(format!("cannot set {}", setting.name)).because(error);
    failure = failure.advise(match applied.done {
        [] => "nothing is changed",
        _ => "what was set before stays set; these lines, as root, undo it:",
    });
    for setting in applied.done.iter().rev() {
        failure = failure.advise(setting.undo());
    }
    Err(failure)
}
