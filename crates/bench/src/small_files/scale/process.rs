//! Starts and kills the child processes.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::lines::{Phase, Step};
use super::options::{Options, Role};
use crate::log::Failure;

/// A child process, which is killed when this is dropped. It ends by itself if this process does.
pub(super) struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// The pipe whose end the child waits for.
    _stdin: ChildStdin,
}

impl Process {
    /// Starts a child with the store in the directory `store`.
    pub(super) fn start(options: &Options, role: Role, store: &Path) -> Result<Self, Failure> {
        let mut child = Command::new(&options.program)
            .args(["small-files-scale", "--child", role.name(), "--dir"])
            .arg(store)
            .args(["--objects", &options.objects.to_string()])
            .args(["--steps", &options.steps.to_string()])
            .args(["--loaders", &options.loaders().threads.to_string()])
            .args(["--batch", &options.batch.to_string()])
            .args(["--pages", &options.pages.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.ok_or("the child has no pipes")?;
        Ok(Self { child, lines: BufReader::new(stdout).lines(), _stdin: stdin })
    }

    /// Waits for the next step of the child, which must belong to `phase`.
    pub(super) fn next_step(&mut self, phase: Phase) -> Result<Step, Failure> {
        let Some(line) = self.lines.next().transpose()? else {
            let status = self.child.wait()?;
            return Err(format!("the process that stores objects has ended: {status}").into());
        };
        let step = Step::parse(&line).filter(|step| step.phase == phase);
        step.ok_or_else(|| format!("unexpected output in the phase {phase}: {line}").into())
    }

    /// Kills the child with `SIGKILL`.
    pub(super) fn kill(mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that the child has ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
