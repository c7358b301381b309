//! A served directory, and a server on a thread.

use std::fs::{File, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use haul_file_server::{Acceptor, Address, Config, Handle, Listener, Server, Stats, TcpOptions};
pub(crate) use haul_testing::noise;
use haul_testing::{Endpoint, Transport, eventually, raise_descriptor_limit, server_certificate};
use haul_tls::{Alpn, CertificateFiles, Identities};
use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_uid;
use tempfile::TempDir;

/// A directory on a disk: the default directory for temporary files may be in memory.
pub(crate) struct ServedDir {
    dir: TempDir,
    transport: Transport,
}

impl ServedDir {
    pub(crate) fn new() -> Self {
        Self::over(Transport::Plain)
    }

    /// Creates a directory that is served over this transport.
    pub(crate) fn over(transport: Transport) -> Self {
        Self { dir: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), transport }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Writes a file that was modified a while ago, so that its date is sent.
    pub(crate) fn write_old(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.write(name, bytes);
        set_age(&path, 3600);
        path
    }

    /// Writes a file that is on stable storage and not in the page cache.
    pub(crate) fn write_cold(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.write(name, bytes);
        evict(&path);
        path
    }

    /// Serves the directory on one thread, with the default settings and `change`.
    pub(crate) fn serve(&self, change: impl FnOnce(&mut Config)) -> Running {
        Running::over(self.transport, self.config(change))
    }

    /// Serves the directory as a user that owns no files, which requires root.
    pub(crate) fn serve_unprivileged(&self) -> Option<Running> {
        if !geteuid().is_root() {
            haul_testing::skip("only root can change the user");
            return None;
        }
        let config = self.config(|_| {});
        std::fs::set_permissions(self.path(""), Permissions::from_mode(0o755)).unwrap();
        // The user is a property of the thread, and of those that it starts.
        let started = std::thread::spawn(|| {
            set_thread_uid(Uid::from_raw(65534)).unwrap();
            Running::over(Transport::Plain, config)
        });
        Some(started.join().unwrap())
    }

    fn config(&self, change: impl FnOnce(&mut Config)) -> Config {
        let mut config = Config::new(self.dir.path());
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.threads = 1;
        // Tests change files within the default time of validity.
        config.tiers.valid = Duration::ZERO;
        if self.transport == Transport::Tls {
            config.tls = Some(acceptor());
        }
        change(&mut config);
        config
    }
}

fn acceptor() -> Acceptor {
    let dir = tempfile::tempdir().unwrap();
    let [chain, key] = server_certificate().write(dir.path(), "server");
    let identities = Identities::load(vec![CertificateFiles { chain, key }]).unwrap();
    Acceptor::new(identities, Alpn::Http1).unwrap()
}

/// Creates a server on a socket that the process listens on already.
fn inheriting(config: Config) -> Server {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = Listener::inherit(socket.into(), TcpOptions::default()).unwrap();
    Server::with_listener(config, listener).unwrap()
}

fn endpoint(address: &Address, transport: Transport) -> Endpoint {
    let address = match address {
        Address::Tcp(address) => *address,
        Address::Unix(_) => ([127, 0, 0, 1], 0).into(),
    };
    Endpoint { address, transport }
}

/// Syncs a file and drops it from the page cache.
pub(crate) fn evict(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    let file = std::os::fd::OwnedFd::from(file);
    // A page that was just sent may still be referenced by a packet.
    eventually("no page is in use", || {
        haul_disk::evict(&file, 0, u64::MAX).unwrap();
        resident(path) == 0
    });
}

/// Returns the number of bytes of a file in the page cache.
pub(crate) fn resident(path: &Path) -> u64 {
    let file = std::os::fd::OwnedFd::from(File::open(path).unwrap());
    haul_disk::resident(&file, 0, u64::MAX).unwrap().resident_bytes
}

/// A running server, which is stopped when this is dropped.
pub(crate) struct Running {
    pub(crate) address: Endpoint,
    pub(crate) admin: Option<Endpoint>,
    handle: Arc<Handle>,
    thread: Option<JoinHandle<Result<(), haul_file_server::Error>>>,
}

impl Running {
    pub(crate) fn over(transport: Transport, config: Config) -> Self {
        // Several tests at once have hundreds of connections.
        assert!(raise_descriptor_limit(10_000), "this process may open too few files");
        let server = match transport {
            Transport::Inherited => inheriting(config),
            Transport::Plain | Transport::Tls => Server::bind(config).unwrap(),
        };
        let addresses = server.addresses();
        Self {
            address: endpoint(&addresses.listen, transport),
            admin: addresses.admin.as_ref().map(|admin| endpoint(admin, Transport::Plain)),
            handle: server.handle(),
            thread: Some(std::thread::spawn(|| server.run())),
        }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn stats(&self) -> Stats {
        self.handle.stats()
    }

    /// Waits until this number of responses has ended, and returns the statistics: a client may have
    /// the last byte before it is counted.
    pub(crate) fn after(&self, responses: u64) -> Stats {
        let all = |stats: &Stats| stats.statuses.iter().map(|row| row.1).sum::<u64>();
        self.wait_until("all responses have ended", |stats| all(stats) >= responses);
        assert_eq!(all(&self.stats()), responses);
        self.stats()
    }

    /// Waits until the statistics fulfil a condition.
    pub(crate) fn wait_until(&self, condition: &str, is_met: impl Fn(&Stats) -> bool) {
        eventually(condition, || is_met(&self.stats()));
    }

    /// Waits for the end of the server.
    pub(crate) fn ended(mut self) {
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.unwrap().unwrap();
            }
        }
    }
}

/// Sets the time of modification to some seconds ago, or ahead if negative.
pub(crate) fn set_age(path: &Path, seconds: i64) {
    let now = SystemTime::now();
    let age = Duration::from_secs(seconds.unsigned_abs());
    let at = if seconds < 0 { now + age } else { now - age };
    File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
}
