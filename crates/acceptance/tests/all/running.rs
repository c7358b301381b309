//! Starts and stops `haul files` and `haul relay`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::program;

/// A running server process, killed when dropped.
pub(crate) struct Running {
    child: Child,
    stderr: File,
    /// The line that the server printed when it was ready.
    pub(crate) line: String,
}

impl Running {
    /// Starts the process and waits for its first line.
    pub(crate) fn start(command: &mut Command) -> Self {
        let stderr = tempfile::tempfile().unwrap();
        command.stdout(Stdio::piped()).stderr(stderr.try_clone().unwrap());
        let mut child = command.spawn().expect("the program starts");
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut line).unwrap();
        // Drain stdout, so that the process does not block on a full pipe.
        thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        let mut running = Self { child, stderr, line };
        assert!(running.line.starts_with("haul is ready: "), "{}", running.output());
        running
    }

    /// Starts a relay from one address to another, with additional options.
    pub(crate) fn relay(listen: &str, to: &str, more: &[&str]) -> Self {
        let arguments = ["relay", "--listen", listen, "--to", to];
        Self::start(program::command().args(arguments).args(more))
    }

    /// Returns the first address that the server listens on.
    pub(crate) fn address(&self) -> &str {
        let rest = self.line.trim_start_matches("haul is ready: ").trim_start_matches("files on ");
        let word = rest.split_whitespace().next().unwrap();
        word.trim_start_matches("http://").trim_end_matches(['/', ','])
    }

    /// Returns the address of the admin endpoint.
    pub(crate) fn admin(&self) -> &str {
        let (_, address) = self.line.split_once("admin on http://").expect("it has --admin");
        address.trim_end().trim_end_matches('/')
    }

    fn output(&mut self) -> String {
        let mut stderr = String::new();
        self.stderr.rewind().unwrap();
        self.stderr.read_to_string(&mut stderr).unwrap();
        format!("{}{stderr}", self.line)
    }

    /// Sends SIGTERM and asserts a successful exit.
    pub(crate) fn stop(mut self) {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let (status, output) = (self.child.wait().unwrap(), self.output());
        assert!(status.success() && !output.contains("panicked at"), "{status}:\n{output}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
