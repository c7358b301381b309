//! A server: a process, or a group of them, on a core of its own.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::cores::{Cores, Pinned};
use super::proc_facts::listens;
use super::usage::{Meter, processes};
use crate::error::{Error, Result};
use crate::guardian::Guardian;

/// A server that does not listen after so long will not.
const START_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Ends the group once this process has dropped it, or is gone.
const KILL: &str = r#"
cat > /dev/null
kill -s KILL -- "-$1"
"#;

/// How a server is started.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    pub(crate) name: &'a str,
    pub(crate) command: Command,
    pub(crate) address: SocketAddr,
    pub(crate) cores: Cores,
    /// Where what it says is kept.
    pub(crate) dir: &'a Path,
    /// Whether it starts processes for connections.
    pub(crate) forks: bool,
}

/// It listens. When this is dropped, or this process ends, it and its processes are killed.
#[derive(Debug)]
pub(crate) struct Server {
    name: String,
    pub(crate) address: SocketAddr,
    pub(crate) meter: Meter,
    child: Child,
    said: PathBuf,
    guardian: Option<Guardian>,
}

impl Server {
    /// Starts it, and waits until it listens.
    ///
    /// # Errors
    /// [`Error::Missing`] when it ends instead, with its last words.
    pub(crate) fn start(start: Start<'_>) -> Result<Self> {
        let Start { name, mut command, address, cores, dir, forks } = start;
        let said = dir.join(format!("{}.said", address.port()));
        let what = |what: &str| format!("{what} {name}");
        let file = File::create(&said).map_err(Error::other(what("keep what is said by")))?;
        let out = file.try_clone().map_err(Error::other(what("keep what is said by")))?;
        command.stdin(Stdio::null()).stdout(out).stderr(file).process_group(0);
        let pinned = Pinned::to(cores.server)?;
        let child = command.spawn().map_err(Error::other(what("start")))?;
        drop(pinned);
        let meter = Meter { group: child.id(), cores, forks };
        let guardian = Guardian::with(KILL, &[child.id().to_string().as_ref()]);
        let mut server =
            Self { name: name.to_owned(), address, meter, child, said, guardian: None };
        server.guardian = Some(guardian?);
        server.wait_until_it_listens()?;
        Ok(server)
    }

    fn wait_until_it_listens(&mut self) -> Result<()> {
        let end = Instant::now() + START_MAX;
        let what = format!("wait for {}", self.name);
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().map_err(Error::other(&what))? {
                let said = self.last_words();
                return Err(Error::Missing(format!("{} ended ({status}): {said}", self.name)));
            }
            let tcp = fs::read_to_string("/proc/net/tcp").map_err(Error::other(&what))?;
            if listens(&tcp, self.address.port()) {
                return Ok(());
            }
            thread::sleep(LOOK_EVERY);
        }
        let (name, said) = (&self.name, self.last_words());
        Err(Error::Missing(format!("{name} did not listen within {START_MAX:?}: {said}")))
    }

    /// What it said last.
    pub(crate) fn last_words(&self) -> String {
        let said = fs::read(&self.said).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rfind(|line| !line.trim().is_empty());
        last.unwrap_or("it said nothing").to_owned()
    }

    /// How many descriptors its processes have open.
    pub(crate) fn descriptors(&self) -> Result<usize> {
        let count = |process: &u32| -> io::Result<usize> {
            Ok(fs::read_dir(format!("/proc/{process}/fd"))?.count())
        };
        let all: io::Result<Vec<_>> = processes(self.meter.group).iter().map(count).collect();
        let what = || format!("count the descriptors of {}", self.name);
        Ok(all.map_err(Error::other(what()))?.iter().sum())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its number stays its own until it is waited for, so nobody else's group is killed.
        drop(self.guardian.take());
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A port of this host nobody listens on now. Somebody may before it is used; then the server says
/// so.
pub(crate) fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map_err(Error::other("find a free port on 127.0.0.1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, dir: &Path) -> Result<Server> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let cores = Cores { server: 0, load: 0 };
        let address = free_address().unwrap();
        Server::start(Start { name: "it", command, address, cores, dir, forks: false })
    }

    #[test]
    fn a_server_that_ends_is_told_with_its_last_words() {
        let dir = tempfile::tempdir().unwrap();
        let error = shell("echo why not >&2; exit 3", dir.path()).unwrap_err();
        assert_eq!(error.to_string(), "it ended (exit status: 3): why not");
    }

    #[test]
    fn a_server_is_gone_with_all_its_processes() {
        // It listens by this process, which is enough to start.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & sleep 600 & wait"]);
        let address = listener.local_addr().unwrap();
        let cores = Cores { server: 0, load: 0 };
        let start = Start { name: "it", command, address, cores, dir: dir.path(), forks: true };
        let server = Server::start(start).unwrap();
        let group = server.meter.group;
        assert!(server.descriptors().unwrap() >= 3);
        drop(server);
        let end = Instant::now() + Duration::from_secs(10);
        while !processes(group).is_empty() {
            assert!(Instant::now() < end, "still there: {:?}", processes(group));
            thread::yield_now();
        }
    }
}
