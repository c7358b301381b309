//! Tests that `haul log` writes input from a pipe to rotated files.

mod full;
mod show;

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

use haul_testing::{eventually, skip};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use crate::helper::{Finished, TestDir, noise};

/// Returns the closed files of the log in `dir`, oldest first.
fn closed(dir: &Path) -> Vec<Vec<u8>> {
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|end| end == "log"));
    names.sort();
    names.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Returns the whole content of the log in `dir`.
fn all(dir: &Path) -> Vec<u8> {
    [closed(dir).concat(), fs::read(dir.join("current")).unwrap()].concat()
}

/// A running `haul log logs --tee`, killed on drop.
struct Logging {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: BufReader<ChildStderr>,
}

impl Logging {
    fn start(place: &TestDir, arguments: &[&str]) -> Self {
        let arguments = [&["log", "logs", "--tee"], arguments].concat();
        let mut command = place.command(&arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::new(command.spawn().unwrap())
    }

    fn new(mut child: Child) -> Self {
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(BufReader::new);
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stdin, stdout, stderr }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Writes a line, and waits until `--tee` has copied the line to stdout.
    fn write_line(&mut self, line: &str) {
        self.write(format!("{line}\n").as_bytes());
        let mut echoed = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut echoed).unwrap();
        assert_eq!(echoed.trim_end(), line);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Returns the next line of stderr.
    fn stderr_line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "stderr is closed");
        line
    }

    /// `true` if a line is available on stderr within a short time.
    fn has_stderr_line(&self) -> bool {
        let mut fds = [PollFd::new(self.stderr.get_ref(), PollFlags::IN)];
        let patience = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        poll(&mut fds, Some(&patience)).unwrap() > 0
    }

    /// Waits for the exit; returns the exit code and the rest of stderr.
    fn wait(mut self) -> (Option<i32>, String) {
        let mut stderr_text = String::new();
        if let Some(stdout) = &mut self.stdout {
            stdout.read_to_end(&mut Vec::new()).unwrap();
        }
        self.stderr.read_to_string(&mut stderr_text).unwrap();
        (self.child.wait().unwrap().code(), stderr_text)
    }

    fn end(mut self) -> (Option<i32>, String) {
        self.stdin = None;
        self.wait()
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        // The process may have exited already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn input_is_written_unchanged() {
    let place = TestDir::new();
    let mut input = noise(1, 3 << 20);
    input.extend_from_slice(&[b'x'; 2 << 20]);
    input.extend_from_slice(b"\n\0\xff\r\n\nno newline at the end");
    let ended = place.run_with(&["log", "new/logs", "--max-size", "1MiB"], &input).code(0);
    assert_eq!((ended.stderr().as_str(), ended.text()), ("", ""));
    assert!(all(&place.path("new/logs")) == input);
    assert!(closed(&place.path("new/logs")).len() >= 3);
}

#[test]
fn next_run_appends() {
    let place = TestDir::new();
    let ended = place.run_with(&["log", "logs", "--tee"], b"one\ntor").code(0);
    assert_eq!(ended.stdout(), b"one\ntor");
    place.run_with(&["log", "logs"], b"").code(0);
    assert_eq!(all(&place.path("logs")), b"one\ntor");
    place.run_with(&["log", "logs"], b"two\n").code(0);
    assert_eq!(all(&place.path("logs")), b"one\ntor\ntwo\n");
    assert!(closed(&place.path("logs")).is_empty());
}

#[test]
fn full_files_are_rotated_and_the_newest_kept() {
    let place = TestDir::new();
    let lines: Vec<String> = (0..20_000).map(|number| format!("line {number:06}\n")).collect();
    let input = lines.concat();
    let keep = ["log", "logs", "--max-size", "12000", "--keep", "3", "--sync", "never"];
    place.run_with(&keep, input.as_bytes()).code(0);
    let files = closed(&place.path("logs"));
    assert_eq!(files.iter().map(Vec::len).collect::<Vec<_>>(), [12_000; 3]);
    assert!(input.as_bytes().ends_with(&all(&place.path("logs"))));

    let bytes = ["log", "logs", "--max-size", "12000", "--keep", "all", "--keep-bytes", "100kB"];
    place.run_with(&bytes, input.as_bytes()).code(0);
    let kept = all(&place.path("logs"));
    assert!(input.as_bytes().ends_with(&kept));
    assert!((80_000..=100_000).contains(&kept.len()), "{}", kept.len());
}

#[test]
fn timestamps_precede_lines() {
    let place = TestDir::new();
    for (arguments, bytes, begin) in [
        (&["--timestamps"][..], 28, "20"),
        (&["--timestamps=unix"], 18, "1"),
        (&["--timestamps=tai64n"], 26, "@40000000"),
    ] {
        let arguments = [&["log", "logs"], arguments].concat();
        place.run_with(&arguments, b"one\n\nlast").code(0);
        let text = String::from_utf8(all(&place.path("logs"))).unwrap();
        let lines: Vec<(&str, &str)> = text.lines().map(|line| line.split_at(bytes)).collect();
        assert!(lines.iter().all(|(time, _)| time.starts_with(begin) && time.ends_with(' ')));
        assert_eq!(lines.iter().map(|(_, line)| *line).collect::<Vec<_>>(), ["one", "", "last"]);
        fs::remove_dir_all(place.path("logs")).unwrap();
    }
}

#[test]
fn daily_rotation_uses_the_time_zone_of_the_environment() {
    let place = TestDir::new();
    let now = SystemTime::now();
    // One minute ago, in a zone 5:45 h ahead of UTC.
    let ago = now.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() + (345 - 1) * 60;
    let time = format!("{:02}:{:02}", ago / 3600 % 24, ago / 60 % 60);
    for (zone, files) in [("<+0545>-5:45", 1), ("UTC0", 0)] {
        let current = place.write("logs/current", "written an hour ago\n");
        let file = fs::File::options().write(true).open(&current).unwrap();
        file.set_modified(now - Duration::from_hours(1)).unwrap();
        let mut command = place.command(&["log", "logs", "--rotate-at", &time]);
        Finished(command.env("TZ", zone).output().unwrap()).code(0);
        assert_eq!(closed(&place.path("logs")).len(), files, "{zone}");
        fs::remove_dir_all(place.path("logs")).unwrap();
    }
}

#[test]
fn signals_rotate_the_file() {
    let place = TestDir::new();
    let mut logging = Logging::start(&place, &[]);
    let dir = place.path("logs");
    for (number, signal) in [Signal::HUP, Signal::ALARM, Signal::USR1].into_iter().enumerate() {
        logging.write_line(&format!("line {number}"));
        logging.signal(signal);
        eventually("the file is rotated", || closed(&dir).len() != number);
    }
    logging.write(b"last\n");
    assert_eq!(logging.end(), (Some(0), String::new()));
    assert_eq!(closed(&dir), [b"line 0\n", b"line 1\n", b"line 2\n"]);
    assert_eq!(all(&dir), b"line 0\nline 1\nline 2\nlast\n");
}

#[test]
fn sigterm_writes_the_bytes_in_the_pipe() {
    let place = TestDir::new();
    let mut logging = Logging::start(&place, &[]);
    logging.write_line("first");
    let rest = [noise(2, 60_000), b"\n".to_vec()].concat();
    logging.signal(Signal::STOP);
    logging.write(&rest);
    logging.signal(Signal::TERM);
    logging.signal(Signal::CONT);
    let (code, stderr_text) = logging.wait();
    assert_eq!((code, stderr_text.as_str()), (Some(0), ""));
    assert!(all(&place.path("logs")) == [b"first\n", &rest[..]].concat());
}

#[test]
fn nothing_that_a_service_has_begun_to_write_is_lost_at_a_stop() {
    let place = TestDir::new();
    let mut logging = Logging::start(&place, &[]);
    logging.write_line("first");
    logging.signal(Signal::STOP);
    // More than the pipe holds: the write continues while the log reads.
    let rest = [noise(3, 5 << 20), b"\n".to_vec()].concat();
    let mut stdin = logging.stdin.take().unwrap();
    let writing = {
        let rest = rest.clone();
        thread::spawn(move || {
            let written = stdin.write_all(&rest);
            // The pipe stays open, as that of a service that goes on.
            (written, stdin)
        })
    };
    thread::sleep(Duration::from_millis(100));
    logging.signal(Signal::TERM);
    logging.signal(Signal::CONT);
    assert_eq!(logging.wait().0, Some(0));
    let (written, _stdin) = writing.join().unwrap();
    written.unwrap();
    assert!(all(&place.path("logs")) == [b"first\n", &rest[..]].concat());
}

#[test]
fn line_that_was_begun_before_a_stop_is_read_to_its_end() {
    let place = TestDir::new();
    let mut logging = Logging::start(&place, &[]);
    logging.write_line("first");
    logging.write(b"first half, ");
    logging.signal(Signal::TERM);
    // Longer than the log waits for another line.
    thread::sleep(Duration::from_millis(200));
    logging.write(b"second half\n");
    // The pipe stays open, as that of a service that goes on.
    assert_eq!(logging.wait(), (Some(0), String::new()));
    assert_eq!(all(&place.path("logs")), b"first\nfirst half, second half\n");
}

#[test]
fn pipe_accepts_nothing_while_the_log_is_synced_at_a_stop() {
    let place = TestDir::new();
    let mut logging = Logging::start(&place, &[]);
    logging.write_line("first");
    let process = logging.child.id();
    // The last sync lasts longer than the test.
    let mut strace = Command::new("strace");
    strace.args(["-f", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e"]);
    strace.arg("inject=fsync,fdatasync:delay_enter=1000000000");
    strace.args(["-p", &process.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut strace) = strace.spawn() else { return skip("strace is not installed") };
    eventually("each thread is traced", || {
        let mut threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
        threads.all(|thread| {
            let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
            !status.contains("TracerPid:\t0\n")
        })
    });
    logging.signal(Signal::TERM);
    let stdin = logging.stdin.take().unwrap();
    let mut fds = [PollFd::new(&stdin, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec { tv_sec: 60, tv_nsec: 0 })).unwrap();
    let closed = fds[0].revents().contains(PollFlags::ERR);
    let ended = logging.child.try_wait().unwrap();
    strace.kill().unwrap();
    strace.wait().unwrap();
    assert!(closed && ended.is_none(), "nobody reads the pipe before the log is synced: {ended:?}");
}

#[test]
fn service_that_never_pauses_is_cut_off_at_a_line() {
    let place = TestDir::new();
    let mut logging = Logging::start(&place, &[]);
    let mut stdin = logging.stdin.take().unwrap();
    let mut stdout = logging.stdout.take().unwrap();
    thread::spawn(move || io::copy(&mut stdout, &mut io::sink()));
    let writing = thread::spawn(move || while stdin.write_all(b"line\n").is_ok() {});
    thread::sleep(Duration::from_millis(100));
    logging.signal(Signal::TERM);
    assert_eq!(logging.wait().0, Some(0));
    writing.join().unwrap();
    let written = all(&place.path("logs"));
    assert!(written.len() > 5 && written.chunks(5).all(|line| line == b"line\n"));
}

#[test]
fn signal_during_the_start_is_handled() {
    // The log has many files to list, so that its start takes a while.
    let place = TestDir::new();
    place.run_with(&["log", "logs"], b"line\n").code(0);
    for number in 0..3000 {
        place.write(format!("logs/20200101T000000.{number:06}Z.log"), "x\n");
    }
    let begun = fs::read_dir(place.path("logs")).unwrap().count();
    assert!(begun > 3000);
    for signal in [Signal::HUP, Signal::TERM, Signal::USR1, Signal::ALARM] {
        let mut logging = Logging::start(&place, &["--keep", "100000"]);
        // The handlers are installed first of all.
        let status = format!("/proc/{}/status", logging.child.id());
        eventually("the handlers are installed", || {
            let status = fs::read_to_string(&status).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << 14) != 0
        });
        logging.signal(signal);
        logging.stdin.as_mut().unwrap().write_all(b"line\n").ok();
        assert_eq!(logging.end().0, Some(0), "{signal:?}");
    }
}

#[test]
fn signals_are_handled_before_the_command_line_is_parsed() {
    let place = TestDir::new();
    let program = place.command(&[""; 0]).get_program().to_owned();
    let handles_hangup = |arguments: &[&str]| {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-e", "trace=rt_sigaction", "-o", "trace"]).arg(&program);
        let status =
            strace.args(arguments).current_dir(place.path("")).stderr(Stdio::null()).status();
        status.ok()?;
        let trace = fs::read_to_string(place.path("trace")).unwrap();
        Some(trace.contains("rt_sigaction(SIGHUP, {sa_handler=0x"))
    };
    // Parsing fails.
    let Some(is_handled) = handles_hangup(&["log", "logs", "--no-such-option"]) else {
        return skip("strace is not installed");
    };
    assert!(is_handled);
    assert_eq!(handles_hangup(&["log", "show", "none"]), Some(false));
}

#[test]
fn current_that_is_no_regular_file_is_an_error() {
    let place = TestDir::new();
    for (number, make) in [
        (|path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()))
            as fn(&Path),
        |path| fs::create_dir(path).unwrap(),
        |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
        |path| std::os::unix::fs::symlink("/dev/null", path).unwrap(),
    ]
    .into_iter()
    .enumerate()
    {
        let dir = format!("logs{number}");
        fs::create_dir(place.path(&dir)).unwrap();
        make(&place.path(format!("{dir}/current")));
        let ended = place.run_with(&["log", &dir], b"line\n").code(3);
        ended.stderr_contains(&["cannot log to", "current"]);
    }
}

#[test]
fn first_interrupt_reads_on_and_the_second_exits() {
    let place = TestDir::new();
    let mut logging = Logging::start(&place, &[]);
    logging.write_line("first");
    logging.signal(Signal::INT);
    assert!(logging.stderr_line().contains("reading to the end"));
    logging.write_line("last line of the service");
    assert_eq!(logging.end().0, Some(0));

    let mut logging = Logging::start(&place, &[]);
    logging.write_line("again");
    logging.signal(Signal::INT);
    assert!(logging.stderr_line().contains("signal again"));
    logging.signal(Signal::INT);
    assert_eq!(logging.wait().0, Some(0));
    assert_eq!(all(&place.path("logs")), b"first\nlast line of the service\nagain\n");
}

#[test]
fn closed_stdout_does_not_stop_the_log() {
    let place = TestDir::new();
    let mut logging = Logging::start(&place, &[]);
    logging.write_line("first");
    logging.stdout = None;
    // Another test that is starting a program may hold a copy of the reading end for a moment. So
    // the first writes to stdout may succeed.
    let mut given = b"first\n".to_vec();
    while !logging.has_stderr_line() {
        logging.write(b"second\n");
        given.extend(b"second\n");
    }
    assert!(logging.stderr_line().contains("continuing with the log only"));
    logging.write(b"third\n");
    given.extend(b"third\n");
    assert_eq!(logging.end().0, Some(1), "a part of the input is missing on stdout");
    assert_eq!(all(&place.path("logs")), given);
}

#[test]
fn failures_to_start_are_reported() {
    let place = TestDir::new();
    let mut logging = Logging::start(&place, &[]);
    logging.write_line("first");
    let process = format!("haul log, process {}", logging.child.id());
    place.run(&["log", "logs"]).code(3).stderr_contains(&[
        "cannot log to logs",
        "in use by",
        &process,
    ]);
    place.write("file", "");
    place
        .run(&["log", "file"])
        .code(3)
        .stderr_contains(&["cannot log to file", "cannot open file"]);
    let wrong = [
        &["--max-size", "1"][..],
        &["--keep", "few"],
        &["--keep-bytes", "1MiB"],
        &["--sync", "often"],
        &["--rotate-every", "500ms"],
        &["--rotate-at", "24:00"],
        &["--compress", "gzip"],
        &["--compress", "zstd:20"],
        &["--compress", "zstd", "--keep-bytes", "16MiB"],
        &["--rotate-at", "7:5"],
        &["--rotate-at", "00:00", "--rotate-every", "1d"],
        &["--memory", "1MiB"],
        &["--timestamps=local"],
    ];
    for arguments in wrong {
        place.run(&[&["log", "other"], arguments].concat()).code(2);
        assert!(!place.path("other").exists(), "{arguments:?}");
    }
}
