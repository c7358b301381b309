//! Executes `--revert`: restores the values before `--persist`, and removes its files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use haul_disk::{Error, KernelFiles};
use haul_tuning::PersistedSetting;
use serde_json::{Value, json};

use super::apply::refused;
use super::persist::{FILES, at, read};
use crate::args::TuneArgs;
use crate::output::Output;
use crate::report::{Failure, OrFail, Result, print_message};

/// A file of `--persist`.
struct Persisted {
    at: PathBuf,
    settings: Vec<PersistedSetting>,
}

/// The treatment of a setting.
enum Step {
    Restore,
    /// The setting is left as it is, for this reason.
    Leave(String),
}

/// Restores the settings in the reverse order of their changes.
///
/// All files and settings are checked before the first change: if one cannot be changed, none is.
pub(super) fn run(args: &TuneArgs, files: &KernelFiles) -> Result {
    let persisted = find(args.system_root.as_deref())?;
    let mut steps = Vec::new();
    for file in persisted.iter().rev() {
        for setting in file.settings.iter().rev() {
            steps.push((setting, step(files, setting)?));
        }
    }
    let mut report = Report { output: Output::new(), args, restored: Vec::new(), left: Vec::new() };
    report.begin(&persisted)?;
    let mut failure = None;
    for (setting, step) in &steps {
        match step {
            Step::Leave(reason) => report.left(setting, reason)?,
            Step::Restore => match restore(args, files, setting) {
                Ok(()) => report.restored(setting)?,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            },
        }
    }
    let mut removed = Vec::new();
    if failure.is_none() && !args.dry_run {
        for file in &persisted {
            let cannot = || format!("cannot remove {}", file.at.display());
            fs::remove_file(&file.at).or_fail(cannot)?;
            removed.push(file.at.display().to_string());
        }
    }
    report.end(&removed)?;
    failure.map_or(Ok(()), |error: Error| {
        let advice = "the files of --persist remain; run haul tune --revert again";
        Err(Failure::new("cannot restore a setting").because(error).advise(advice))
    })
}

/// Finds the files of `--persist`.
fn find(root: Option<&Path>) -> Result<Vec<Persisted>> {
    let mut found = Vec::new();
    for at in FILES.map(|name| at(root, name)) {
        if let Some(settings) = read(&at)? {
            // The folder of the file must be writable, too: the file is opened for writing.
            let opened = fs::OpenOptions::new().write(true).open(&at);
            opened.map_err(|source| refused(Error::new(haul_disk::Op::Open, &at, source)))?;
            found.push(Persisted { at, settings });
        }
    }
    Ok(found)
}

/// Decides whether a setting can be restored.
fn step(files: &KernelFiles, setting: &PersistedSetting) -> Result<Step> {
    match files.setting(&setting.path) {
        Ok(now) if now == setting.new => {
            files.may_set(&setting.restore_path).map_err(refused)?;
            Ok(Step::Restore)
        }
        Ok(now) => Ok(Step::Leave(format!("has changed from {} to {now} since", setting.new))),
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => {
            Ok(Step::Leave("does not exist now".to_owned()))
        }
        Err(error) => Err(refused(error)),
    }
}

fn restore(
    args: &TuneArgs,
    files: &KernelFiles,
    setting: &PersistedSetting,
) -> haul_disk::Result<()> {
    if args.dry_run {
        return Ok(());
    }
    files.set(&setting.restore_path, &setting.restore_value)
}

/// The results, printed as they occur, or as one JSON object at the end.
struct Report<'a> {
    output: Output,
    args: &'a TuneArgs,
    restored: Vec<Value>,
    left: Vec<Value>,
}

impl Report<'_> {
    fn begin(&mut self, persisted: &[Persisted]) -> Result {
        if persisted.is_empty() {
            print_message("nothing to revert: there are no files of \"haul tune --persist\"");
        } else if !self.args.json {
            self.output.line(if self.args.dry_run { "would restore" } else { "restored" })?;
        }
        Ok(())
    }

    fn restored(&mut self, setting: &PersistedSetting) -> Result {
        let PersistedSetting { restore_path, restore_value, .. } = setting;
        self.restored.push(json!({ "path": restore_path, "value": restore_value }));
        if !self.args.json {
            self.output.line(format_args!("  {restore_path} = {restore_value}"))?;
            // Each change is printed immediately, so that an interrupted run has printed all of its
            // changes.
            self.output.send()?;
        }
        Ok(())
    }

    fn left(&mut self, setting: &PersistedSetting, reason: &str) -> Result {
        self.left.push(json!({ "path": setting.path, "reason": reason }));
        if !self.args.json {
            self.output.line(format_args!("  left as it is: {} {reason}", setting.path))?;
        }
        Ok(())
    }

    fn end(mut self, removed: &[String]) -> Result {
        if self.args.json {
            self.output.line(json!({
                "restored": self.restored,
                "left": self.left,
                "removed": removed,
                "dry_run": self.args.dry_run,
            }))?;
        } else {
            removed.iter().try_for_each(|file| self.output.line(format_args!("removed {file}")))?;
        }
        self.output.finish()
    }
}
