//! `haul log`: what comes out of a pipe goes into files.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio};

use haul_test_image::LoopImage;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use crate::helper::{Place, noise};

/// The closed files of the log in `dir`, oldest first.
fn closed(dir: &Path) -> Vec<Vec<u8>> {
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|end| end == "log"));
    names.sort();
    names.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Everything in the log in `dir`.
fn all(dir: &Path) -> Vec<u8> {
    [closed(dir).concat(), fs::read(dir.join("current")).unwrap()].concat()
}

/// A running `haul log logs --tee`. Killed when it is dropped.
struct Logging {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: BufReader<ChildStderr>,
}

impl Logging {
    fn start(place: &Place, arguments: &[&str]) -> Self {
        let arguments = [&["log", "logs", "--tee"], arguments].concat();
        let mut child = place
            .command(&arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(BufReader::new);
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stdin, stdout, stderr }
    }

    fn give(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Gives a line, and returns when it was taken.
    fn say(&mut self, line: &str) {
        self.give(format!("{line}\n").as_bytes());
        let mut told = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut told).unwrap();
        assert_eq!(told.trim_end(), line);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The next line on stderr.
    fn told(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "it has nothing more to say");
        line
    }

    /// Whether there is something on stderr; waits a little for it.
    fn has_told(&self) -> bool {
        let mut fds = [PollFd::new(self.stderr.get_ref(), PollFlags::IN)];
        let patience = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        poll(&mut fds, Some(&patience)).unwrap() > 0
    }

    /// Waits for the end, and gives the exit code and what was still said on stderr.
    fn wait(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        if let Some(stdout) = &mut self.stdout {
            stdout.read_to_end(&mut Vec::new()).unwrap();
        }
        self.stderr.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }

    fn end(mut self) -> (Option<i32>, String) {
        self.stdin = None;
        self.wait()
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn every_byte_is_written_as_it_came() {
    let place = Place::new();
    let mut input = noise(1, 3 << 20);
    input.extend_from_slice(&[b'x'; 2 << 20]);
    input.extend_from_slice(b"\n\0\xff\r\n\nno newline at the end");
    let ended = place.run_with(&["log", "new/logs", "--max-size", "1MiB"], &input).code(0);
    assert_eq!((ended.stderr().as_str(), ended.text()), ("", ""));
    assert!(all(&place.path("new/logs")) == input);
    assert!(closed(&place.path("new/logs")).len() >= 3);
}

#[test]
fn the_next_run_goes_on() {
    let place = Place::new();
    let ended = place.run_with(&["log", "logs", "--tee"], b"one\ntor").code(0);
    assert_eq!(ended.stdout(), b"one\ntor");
    place.run_with(&["log", "logs"], b"").code(0);
    assert_eq!(all(&place.path("logs")), b"one\ntor");
    place.run_with(&["log", "logs"], b"two\n").code(0);
    assert_eq!(all(&place.path("logs")), b"one\ntor\ntwo\n");
    assert!(closed(&place.path("logs")).is_empty());
}

#[test]
fn full_files_are_closed_and_the_newest_are_kept() {
    let place = Place::new();
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
fn times_stand_before_lines() {
    let place = Place::new();
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
fn signals_close_the_file() {
    let place = Place::new();
    let mut logging = Logging::start(&place, &[]);
    let dir = place.path("logs");
    for (number, signal) in [Signal::HUP, Signal::ALARM, Signal::USR1].into_iter().enumerate() {
        logging.say(&format!("line {number}"));
        logging.signal(signal);
        while closed(&dir).len() == number {
            std::thread::yield_now();
        }
    }
    logging.give(b"last\n");
    assert_eq!(logging.end(), (Some(0), String::new()));
    assert_eq!(closed(&dir), [b"line 0\n", b"line 1\n", b"line 2\n"]);
    assert_eq!(all(&dir), b"line 0\nline 1\nline 2\nlast\n");
}

#[test]
fn a_request_to_end_writes_what_is_in_the_pipe() {
    let place = Place::new();
    let mut logging = Logging::start(&place, &[]);
    logging.say("first");
    let rest = noise(2, 60_000);
    logging.signal(Signal::STOP);
    logging.give(&rest);
    logging.signal(Signal::TERM);
    logging.signal(Signal::CONT);
    let (code, said) = logging.wait();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(all(&place.path("logs")) == [b"first\n", &rest[..]].concat());
}

#[test]
fn an_interrupt_lets_it_read_on_and_a_second_one_ends_it() {
    let place = Place::new();
    let mut logging = Logging::start(&place, &[]);
    logging.say("first");
    logging.signal(Signal::INT);
    assert!(logging.told().contains("reading on"));
    logging.say("what the service said last");
    assert_eq!(logging.end().0, Some(0));

    let mut logging = Logging::start(&place, &[]);
    logging.say("again");
    logging.signal(Signal::INT);
    assert!(logging.told().contains("once more"));
    logging.signal(Signal::INT);
    assert_eq!(logging.wait().0, Some(0));
    assert_eq!(all(&place.path("logs")), b"first\nwhat the service said last\nagain\n");
}

#[test]
fn a_reader_of_stdout_that_goes_away_does_not_stop_the_log() {
    let place = Place::new();
    let mut logging = Logging::start(&place, &[]);
    logging.say("first");
    logging.stdout = None;
    // A program that another test is just starting may hold the end that was closed for a moment.
    let mut given = b"first\n".to_vec();
    while !logging.has_told() {
        logging.give(b"second\n");
        given.extend(b"second\n");
    }
    assert!(logging.told().contains("only to the log from now on"));
    logging.give(b"third\n");
    given.extend(b"third\n");
    assert_eq!(logging.end().0, Some(0));
    assert_eq!(all(&place.path("logs")), given);
}

#[test]
fn what_cannot_be_done_is_told() {
    let place = Place::new();
    let mut logging = Logging::start(&place, &[]);
    logging.say("first");
    let process = format!("haul log, process {}", logging.child.id());
    place.run(&["log", "logs"]).code(3).tells(&["cannot log to logs", "in use by", &process]);
    place.write("file", "");
    place.run(&["log", "file"]).code(3).tells(&["cannot log to file", "cannot open file"]);
    let wrong = [
        &["--max-size", "1"][..],
        &["--keep", "few"],
        &["--keep-bytes", "1MiB"],
        &["--sync", "often"],
        &["--rotate-every", "500ms"],
        &["--memory", "1MiB"],
        &["--timestamps=local"],
    ];
    for arguments in wrong {
        place.run(&[&["log", "other"], arguments].concat()).code(2);
        assert!(!place.path("other").exists(), "{arguments:?}");
    }
}

#[test]
fn a_full_disk_makes_the_service_wait_and_a_request_to_end_tells_what_is_lost() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let place = Place::new();
    let dir = image.mount().join("logs");
    fs::write(image.mount().join("ballast"), vec![1; 20 << 20]).unwrap();
    let mut child = place
        .command(&[Path::new("log"), &dir, Path::new("--keep"), Path::new("all")])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines: Vec<u8> = (0..40 << 13).flat_map(|n| format!("{n:0127}\n").into_bytes()).collect();
    let giving = std::thread::spawn(move || {
        // Until nobody reads any more.
        stdin.write_all(&lines).unwrap_err();
        lines
    });
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut told = String::new();
    stderr.read_line(&mut told).unwrap();
    assert!(told.contains("lines wait in memory") && told.contains("No space left"), "{told}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    stderr.read_to_string(&mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{told}");
    assert!(told.contains("of the input are lost: cannot write"), "{told}");
    let lines = giving.join().unwrap();
    let found = all(&dir);
    assert!(found.len() > 2 << 20 && lines.starts_with(&found), "{}", found.len());
}
