//! The program that drives the rivals: it is built apart, since they bring native code.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::log::contender::Failure;
use crate::log::drive::Load;
use crate::log::sample::Sample;
use crate::watch::Watcher;

/// The name of the program.
pub const RIVALS_PROGRAM: &str = "haul-bench-compare";
/// Whom it knows.
pub(crate) const FAMILIES: &[&str] = &["okaywal", "walrus", "raft-engine", "rocksdb", "sqlite"];
/// What a table says of those that are not there.
pub(crate) const NOT_BUILT: &str = "not built: see docs/log-bench.md";

/// A rival that is still not done so long after it should have been is stopped.
const OVERDUE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The program, and which rivals in which forms it was built with.
#[derive(Debug, Clone)]
pub(crate) struct Rivals {
    program: PathBuf,
    pub(crate) forms: Vec<String>,
}

impl Rivals {
    /// Asks `program` whom it knows.
    pub(crate) fn ask(program: &Path) -> Result<Self> {
        let what = || format!("ask {} which logs it drives", program.display());
        let output = Command::new(program).arg("--list").output().map_err(Error::other(what()))?;
        if !output.status.success() {
            return Err(Error::Missing(format!("cannot {}: {}", what(), output.status)));
        }
        let forms = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
        Ok(Self { program: program.to_path_buf(), forms })
    }

    /// Measures one form in `dir`, an empty directory, in a process of its own, which is told `more`.
    pub(crate) fn measure(
        &self,
        form: &str,
        dir: &Path,
        load: &Load,
        more: &[String],
        watcher: &dyn Watcher,
    ) -> Result<Sample, Failure> {
        let ms = |time: Duration| time.as_millis().to_string();
        let child = Command::new(&self.program)
            .args(["--log", form, "--writers", &load.writers.to_string()])
            .args(["--record-bytes", &load.record_bytes.to_string()])
            .args(["--settle-ms", &ms(load.settle), "--measure-ms", &ms(load.measure)])
            .args(more)
            .arg("--dir")
            .arg(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let told = wait(child, load.settle + load.measure + OVERDUE, watcher)?;
        let last = told.lines().last().and_then(Sample::from_json);
        last.ok_or_else(|| format!("{form} told no figures: {told}").into())
    }
}

/// What a child wrote, once it has ended well.
fn wait(mut child: Child, time_max: Duration, watcher: &dyn Watcher) -> Result<String, Failure> {
    let end = Instant::now() + time_max;
    let (out, err) = (listen(child.stdout.take()), listen(child.stderr.take()));
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let why = match (Instant::now() > end, watcher.is_cancelled()) {
            (true, _) => "it was not done in time, and was stopped",
            (false, true) => "it was told to stop",
            (false, false) => {
                thread::sleep(LOOK_EVERY);
                continue;
            }
        };
        child.kill()?;
        child.wait()?;
        return Err(why.into());
    };
    let text = |thread: thread::JoinHandle<String>| thread.join().unwrap_or_default();
    let (out, err) = (text(out), text(err));
    if status.success() { Ok(out) } else { Err(format!("{status}: {}", last_line(&err)).into()) }
}

/// Reads a pipe to its end beside everything else, so that nobody waits for room in it.
fn listen(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before it broke is still worth telling.
            drop(pipe.read_to_end(&mut bytes));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn last_line(text: &str) -> &str {
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Silent;

    struct Impatient;

    impl Watcher for Impatient {
        fn is_cancelled(&self) -> bool {
            true
        }
    }

    fn shell(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    #[test]
    fn a_rival_that_fails_or_hangs_is_told_of() {
        let minute = Duration::from_secs(60);
        assert_eq!(wait(shell("echo 1; echo 2"), minute, &Silent).unwrap(), "1\n2\n");
        let failed = wait(shell("echo why >&2; echo >&2; exit 3"), minute, &Silent).unwrap_err();
        assert_eq!(failed.to_string(), "exit status: 3: why");
        let late = wait(shell("exec sleep 600"), Duration::ZERO, &Silent).unwrap_err();
        assert!(late.to_string().contains("not done in time"));
        let stopped = wait(shell("exec sleep 600"), minute, &Impatient).unwrap_err();
        assert!(stopped.to_string().contains("told to stop"));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Rivals::ask(Path::new("no/such/program")).unwrap_err();
        assert!(error.to_string().contains("no/such/program"));
    }
}
