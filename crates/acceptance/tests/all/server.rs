//! Starts and stops `haul serve`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::http::Client;
use crate::program;

/// The key pair of servers that require signatures.
pub(crate) const KEYS: (&str, &str) = ("AcceptanceKey", "acceptance/secret+0123456789");

/// A server on its own ports, killed when dropped. The test fails if the server panicked.
pub(crate) struct Server {
    child: Child,
    stderr: File,
    scheme: &'static str,
    /// The address of the S3 endpoint.
    pub(crate) listen: String,
    /// The address of the admin endpoint.
    pub(crate) admin: String,
}

/// Options for volumes (files of many objects) so small that a test fills several of them.
pub(crate) const SMALL_VOLUMES: &[&str] = &["--volume", "8MiB", "--big-object", "1MiB"];

impl Server {
    /// Starts a server without authentication on the store in `data`.
    pub(crate) fn start(data: &Path) -> Self {
        Self::start_with(data, &[])
    }

    /// Starts a server without authentication, with additional options.
    pub(crate) fn start_with(data: &Path, options: &[&str]) -> Self {
        let mut command = program::command();
        command.arg("serve").args(options);
        Self::run(command, data)
    }

    /// Starts a server that requires signatures with [`KEYS`], with additional options.
    pub(crate) fn start_with_keys(data: &Path, options: &[&str]) -> Self {
        let mut command = program::command();
        command
            .arg("serve")
            .args(options)
            .env("HAUL_ACCESS_KEY", KEYS.0)
            .env("HAUL_SECRET_KEY", KEYS.1);
        Self::run(command, data)
    }

    fn run(mut command: Command, data: &Path) -> Self {
        let stderr = tempfile::tempfile().unwrap();
        command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data"]);
        command.arg(data).stdout(Stdio::piped()).stderr(stderr.try_clone().unwrap());
        let mut child = command.spawn().expect("haul starts");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let ready = lines.by_ref().find_map(|line| parse_addresses(&line));
        let (listen, admin, scheme) = (String::new(), String::new(), "http");
        let mut server = Self { child, stderr, scheme, listen, admin };
        let Some((scheme, listen, admin)) = ready else {
            panic!("haul serve did not become ready:\n{}", server.log());
        };
        (server.scheme, server.listen, server.admin) = (scheme, listen, admin);
        // Drain stdout, so that the process does not block on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        server
    }

    /// Opens a connection.
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.listen).expect("a running server accepts connections")
    }

    /// Returns the URL of the S3 endpoint.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.listen)
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
    }

    /// Returns the process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM and returns whether the process has ended within `time`.
    pub(crate) fn ends_within(&mut self, time: Duration) -> bool {
        self.terminate();
        let begun = Instant::now();
        while begun.elapsed() < time {
            if self.child.try_wait().unwrap().is_some() || self.has_exited() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    /// `true` if the process has exited, even if a tracer has not let go all of its threads yet.
    fn has_exited(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
    }

    fn terminate(&self) {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Sends SIGTERM and asserts a successful exit.
    pub(crate) fn stop(mut self) {
        self.terminate();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}:\n{}", self.log());
    }

    /// Returns the stderr of the server so far.
    pub(crate) fn log(&mut self) -> String {
        let mut log = Vec::new();
        self.stderr.rewind().unwrap();
        self.stderr.read_to_end(&mut log).unwrap();
        String::from_utf8_lossy(&log).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        let log = self.log();
        if std::thread::panicking() {
            eprintln!("stderr of haul serve:\n{log}");
        } else {
            assert!(!log.contains("panicked at"), "haul serve panicked:\n{log}");
        }
    }
}

/// Parses the addresses that a server prints: the scheme and the address of S3, then admin.
fn parse_addresses(line: &str) -> Option<(&'static str, String, String)> {
    let scheme = if line.contains("S3 on https://") { "https" } else { "http" };
    let mut addresses = line.split("127.0.0.1:").skip(1).map(|rest| {
        let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
        format!("127.0.0.1:{port}")
    });
    Some((scheme, addresses.next()?, addresses.next()?))
}
