//! Runs the program in a temporary directory.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use haul_testing::eventually;
pub(crate) use haul_testing::{Finished, noise};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A temporary working directory; the store is `haul-data` in it.
pub(crate) struct TestDir(TempDir);

impl TestDir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Creates the directory below the build directory, which is on a disk; the default temporary
    /// directory may be in memory.
    pub(crate) fn on_disk() -> Self {
        Self(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let chosen =
            std::env::var_os("HAUL_PROGRAM").map(|path| std::path::absolute(path).unwrap());
        let program = chosen.unwrap_or_else(|| env!("CARGO_BIN_EXE_haul").into());
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.0.path())
            .env_remove("HAUL_ACCESS_KEY")
            .env_remove("HAUL_SECRET_KEY")
            .stdin(Stdio::null());
        if arguments.len() > 1
            && !arguments.iter().any(|argument| argument.as_ref() == "--volume")
            && ["store", "serve"].map(OsStr::new).contains(&arguments[0].as_ref())
        {
            // Small volumes keep the tests fast: each new store creates a volume.
            command.args(["--volume", "16MiB"]);
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[impl AsRef<OsStr>]) -> Finished {
        Finished(self.command(arguments).output().unwrap())
    }

    /// Runs the program with `input` on stdin.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> Finished {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Finished(child.wait_with_output().unwrap())
    }

    /// Starts `haul serve` on free ports, and waits for its first line.
    pub(crate) fn serve(&self) -> Serving {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        Self::start(&mut self.command(&arguments))
    }

    /// Starts a server, and waits for its first line.
    pub(crate) fn start(command: &mut Command) -> Serving {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Serving { child, stdout, stderr, line }
    }
}

/// A running server, killed on drop.
pub(crate) struct Serving {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
    pub(crate) line: String,
}

impl Serving {
    /// Stops all threads of the process: they run on for a moment after the signal.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        let tasks = format!("/proc/{}/task", self.child.id());
        eventually("all threads are stopped", || {
            std::fs::read_dir(&tasks).unwrap().flatten().all(|task| {
                let stat = std::fs::read_to_string(task.path().join("stat")).unwrap();
                stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
            })
        });
    }

    /// Returns the address that follows `what` in the first line of stdout.
    pub(crate) fn address(&self, what: &str) -> &str {
        let (_, rest) = self.line.split_once(&format!("{what} on http://")).unwrap();
        rest.split([',', '\n']).next().unwrap()
    }

    /// Sends one request on a new connection; returns the status and the whole response.
    pub(crate) fn request(&self, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let address = self.address("S3");
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        )
        .unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let status = std::str::from_utf8(&answer[9..12]).unwrap().parse().unwrap();
        (status, answer)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Begins a request with a body, and returns when the server waits for the body.
    pub(crate) fn begin_put(&self, path: &str, bytes: usize) -> TcpStream {
        let address = self.address("S3");
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "PUT {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Expect: 100-continue\r\nContent-Length: {bytes}\r\n\r\n"
        )
        .unwrap();
        let mut answer = [0; 25];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Returns the next line of stderr.
    pub(crate) fn stderr_line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "stderr is closed");
        line
    }

    /// Waits for the exit; returns the exit code (`None` after a kill), and the rest of stdout and
    /// stderr.
    pub(crate) fn wait(mut self) -> (Option<i32>, String, String) {
        let code = self.child.wait().unwrap().code();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut stderr).unwrap();
        (code, stdout, stderr)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // The process may have exited already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
