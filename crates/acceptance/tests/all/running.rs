//! `haul files` and `haul relay`, running for as long as a test holds them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::program;

/// A program that serves; it is killed when dropped.
pub(crate) struct Running {
    child: Child,
    stderr: File,
    /// The line it said when clients could connect.
    pub(crate) line: String,
}

impl Running {
    /// Starts it, and waits for its first line.
    pub(crate) fn start(command: &mut Command) -> Self {
        let stderr = tempfile::tempfile().unwrap();
        command.stdout(Stdio::piped()).stderr(stderr.try_clone().unwrap());
        let mut child = command.spawn().expect("it starts");
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut line).unwrap();
        // Nobody reads what else it says, and it must not wait for a reader.
        thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        let mut running = Self { child, stderr, line };
        assert!(running.line.starts_with("haul is ready: "), "{}", running.said());
        running
    }

    /// A relay from one address to another, with more options.
    pub(crate) fn relay(listen: &str, to: &str, more: &[&str]) -> Self {
        let words = ["relay", "--listen", listen, "--to", to];
        Self::start(program::command().args(words).args(more))
    }

    /// The first address it listens on.
    pub(crate) fn address(&self) -> &str {
        let rest = self.line.trim_start_matches("haul is ready: ").trim_start_matches("files on ");
        let word = rest.split_whitespace().next().unwrap();
        word.trim_start_matches("http://").trim_end_matches('/')
    }

    fn said(&mut self) -> String {
        let mut said = String::new();
        self.stderr.rewind().unwrap();
        self.stderr.read_to_string(&mut said).unwrap();
        format!("{}{said}", self.line)
    }

    /// Asks it to end, and expects that it does so properly.
    pub(crate) fn stop(mut self) {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let (status, said) = (self.child.wait().unwrap(), self.said());
        assert!(status.success() && !said.contains("panicked at"), "{status}:\n{said}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
