//! Runs `haul-bench-compare`, the program that drives the rivals. This program is built separately,
//! because the rivals link native code.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use haul_measure::{Error, Result, Watcher};

use super::contender::Failure;
use super::drive::Load;
use super::sample::Sample;

/// The name of the program that drives the rivals.
pub const RIVALS_PROGRAM: &str = "haul-bench-compare";
/// The prefix of the forms that store objects, which `haul bench small-files` measures.
pub(crate) const SMALL_FILES: &str = "small-files/";
/// The rivals that can be built into the program.
pub(crate) const FAMILIES: &[&str] = &["okaywal", "walrus", "raft-engine", "rocksdb", "sqlite"];
/// The text in the row of a rival that is missing.
pub(crate) const NOT_BUILT: &str = "not built: see docs/log-bench.md";

/// The time that a rival may take in addition to the measurement before it is killed.
const OVERDUE: Duration = Duration::from_secs(120);
/// The interval between checks whether a rival has finished.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// The program that drives the rivals, and the forms (configurations of rivals) that it can drive.
#[derive(Debug, Clone)]
pub(crate) struct Rivals {
    program: PathBuf,
    pub(crate) forms: Vec<String>,
}

impl Rivals {
    /// Runs `program` to list its forms.
    pub(crate) fn query(program: &Path) -> Result<Self> {
        let what = || format!("list the logs of {}", program.display());
        let output = Command::new(program).arg("--list").output().map_err(Error::other(what()))?;
        if !output.status.success() {
            return Err(Error::Missing(format!("cannot {}: {}", what(), output.status)));
        }
        let forms = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
        Ok(Self { program: program.to_path_buf(), forms })
    }

    /// Returns the names of the forms with this prefix, without the prefix.
    pub(crate) fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = &str> {
        self.forms.iter().filter_map(move |form| form.strip_prefix(prefix))
    }

    /// Measures a form in a separate process. `dir` must be an empty directory.
    pub(crate) fn measure(
        &self,
        form: &str,
        dir: &Path,
        load: &Load,
        watcher: &dyn Watcher,
    ) -> Result<Sample, Failure> {
        let ms = |time: Duration| time.as_millis().to_string();
        let child = Command::new(&self.program)
            .args(["--log", form, "--writers", &load.writers.to_string()])
            .args(["--record-bytes", &load.record_bytes.to_string()])
            .args(["--settle-ms", &ms(load.settle), "--measure-ms", &ms(load.measure)])
            .arg("--dir")
            .arg(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let output = wait(child, load.settle + load.measure + OVERDUE, watcher)?;
        let last = output.lines().last().and_then(Sample::from_json);
        last.ok_or_else(|| format!("{form} printed no figures: {output}").into())
    }
}

/// Waits for a child process and returns its output. Returns an error if the child fails or takes
/// longer than `time_max`, or if the watcher cancels.
fn wait(mut child: Child, time_max: Duration, watcher: &dyn Watcher) -> Result<String, Failure> {
    let end = Instant::now() + time_max;
    let (out, err) = (read_all(child.stdout.take()), read_all(child.stderr.take()));
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let why = match (Instant::now() > end, watcher.is_cancelled()) {
            (true, _) => "not done in time, and was killed",
            (false, true) => "cancelled",
            (false, false) => {
                thread::sleep(POLL_EVERY);
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

/// Reads a pipe to its end in a thread, so that the child never blocks on a full pipe.
fn read_all(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // A read error is ignored, because the bytes read before it are still useful.
            drop(pipe.read_to_end(&mut bytes));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Returns the last line of a program's output that is not empty.
pub(crate) fn last_line(text: &str) -> &str {
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no output")
}

#[cfg(test)]
mod tests {
    use super::*;
    use haul_measure::Silent;

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
    fn failures_and_timeouts_of_a_rival_are_reported() {
        let minute = Duration::from_secs(60);
        assert_eq!(wait(shell("echo 1; echo 2"), minute, &Silent).unwrap(), "1\n2\n");
        let failed = wait(shell("echo why >&2; echo >&2; exit 3"), minute, &Silent).unwrap_err();
        assert_eq!(failed.to_string(), "exit status: 3: why");
        let late = wait(shell("exec sleep 600"), Duration::ZERO, &Silent).unwrap_err();
        assert!(late.to_string().contains("not done in time"));
        let stopped = wait(shell("exec sleep 600"), minute, &Impatient).unwrap_err();
        assert!(stopped.to_string().contains("cancelled"));
    }
}
