//! Starts a server as a process group on the core reserved for servers, and kills it on drop.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

use super::cores::{Cores, Pinned};
use super::meter::{Meter, listens, processes};
use crate::guardian::Guardian;
use crate::log::rivals::last_line;
use haul_measure::{Error, Result};

/// The time within which a started server must listen.
const START_MAX: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A shell script that waits for EOF on stdin, which the end of this process causes, and then kills
/// the process group `$1`.
const KILL: &str = r#"
cat > /dev/null
kill -s KILL -- "-$1"
"#;

/// The inputs of a server to start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) program: &'a Path,
    pub(crate) address: SocketAddr,
    /// An empty directory for the server's log, configuration and data.
    pub(crate) dir: &'a Path,
    /// The directory of the files that file servers serve.
    pub(crate) site: &'a Path,
    /// The address to which relays connect.
    pub(crate) target: SocketAddr,
    /// The files of the certificate and its key, for servers with TLS.
    pub(crate) tls: Option<&'a [PathBuf; 2]>,
}

impl Start<'_> {
    /// Writes a configuration file; returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let file = self.dir.join(name);
        let written = fs::write(&file, text);
        written.map_err(Error::other(format!("write {}", file.display()))).map(|()| file)
    }
}

/// A listening server. Its processes are killed when this value is dropped or this process ends.
#[derive(Debug)]
pub(crate) struct Server {
    name: String,
    pub(crate) address: SocketAddr,
    pub(crate) meter: Meter,
    child: Child,
    log: PathBuf,
    guardian: Option<Guardian>,
}

impl Server {
    /// Starts a server on one core, and waits until it listens.
    ///
    /// # Errors
    /// [`Error::Missing`] with the last line of the server's output if the server ends or does not
    /// listen within 30 seconds.
    pub(crate) fn start(
        name: &str,
        mut command: Command,
        at: &Start<'_>,
        core: usize,
        cores: Cores,
    ) -> Result<Self> {
        let log = at.dir.join("log");
        let file = File::create(&log).and_then(|file| Ok((file.try_clone()?, file)));
        let (out, error) = file.map_err(Error::other(format!("create a log for {name}")))?;
        command.stdin(Stdio::null()).stdout(out).stderr(error).process_group(0);
        let pinned = Pinned::to(core)?;
        let child = command.spawn().map_err(Error::other(format!("start {name}")))?;
        drop(pinned);
        let group = child.id();
        let guardian = Guardian::with(KILL, &[group.to_string().as_ref()]);
        let (name, meter) = (name.to_owned(), Meter { group, cores });
        let mut server = Self { name, address: at.address, meter, child, log, guardian: None };
        server.guardian = Some(guardian?);
        server.wait_until_it_listens()?;
        Ok(server)
    }

    fn wait_until_it_listens(&mut self) -> Result<()> {
        let end = Instant::now() + START_MAX;
        let what = format!("wait for {}", self.name);
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().map_err(Error::other(&what))? {
                let line = self.last_line();
                return Err(Error::Missing(format!("{} ended ({status}): {line}", self.name)));
            }
            let is_listening = |file: &&str| {
                let tcp = fs::read_to_string(format!("/proc/net/{file}"));
                tcp.is_ok_and(|tcp| listens(&tcp, self.address.port()))
            };
            if ["tcp", "tcp6"].iter().any(is_listening) {
                return Ok(());
            }
            thread::sleep(POLL_INTERVAL);
        }
        let (name, line) = (&self.name, self.last_line());
        Err(Error::Missing(format!("{name} did not listen within {START_MAX:?}: {line}")))
    }

    /// Returns the last line of the server's output.
    fn last_line(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        last_line(&String::from_utf8_lossy(&log)).to_owned()
    }

    /// Returns the number of open descriptors of the server's processes.
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
        // The guardian kills the group by its id, which is the process id of the child. The kernel
        // does not reuse this id before `wait` below, so no unrelated group is killed.
        drop(self.guardian.take());
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Returns an address of 127.0.0.1 at which no socket listens. If another process takes the address
/// before the server does, the server fails to start.
pub(crate) fn free_address() -> Result<SocketAddr> {
    free_port().map_err(Error::other("find a free port on 127.0.0.1"))
}

/// Reserves the port with a socket that does not listen: a process that this one starts meanwhile
/// holds a copy until it executes its program, and a copy of a listening socket would look like the
/// server.
fn free_port() -> io::Result<SocketAddr> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    Ok(SocketAddr::try_from(getsockname(&socket)?)?)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn shell(script: &str, address: SocketAddr, dir: &Path) -> Result<Server> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let program = Path::new("sh");
        let at = Start { program, address, dir, site: dir, target: address, tls: None };
        Server::start("it", command, &at, 0, Cores { server: 0, load: 0 })
    }

    #[test]
    fn ended_server_is_reported_with_its_last_line() {
        let dir = tempfile::tempdir().unwrap();
        let address = free_address().unwrap();
        TcpStream::connect(address).unwrap_err();
        let error = shell("echo why not >&2; exit 3", address, dir.path()).unwrap_err();
        assert_eq!(error.to_string(), "it ended (exit status: 3): why not");
    }

    #[test]
    fn dropped_server_is_killed_with_all_its_processes() {
        // This process listens in place of the server, which is enough for `start` to succeed.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let address = listener.local_addr().unwrap();
        let server = shell("sleep 600 & sleep 600 & wait", address, dir.path()).unwrap();
        let group = server.meter.group;
        assert!(server.descriptors().unwrap() >= 3);
        drop(server);
        haul_testing::eventually("all processes have ended", || processes(group).is_empty());
    }
}
