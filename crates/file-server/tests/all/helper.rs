//! A directory, and a server of it on a thread.

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use haul_file_server::{Acceptor, Address, Config, Handle, Listener, Server, Stats, TcpOptions};
pub(crate) use haul_testing::noise;
use haul_testing::{Endpoint, Transport, eventually, server_certificate};
use haul_tls::{Alpn, CertificateFiles, Identities};
use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_uid;
use tempfile::TempDir;

/// A directory on a disk: the usual temporary one may well be in memory.
pub(crate) struct Place {
    dir: TempDir,
    transport: Transport,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::over(Transport::Plain)
    }

    /// A directory that is served over this transport.
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

    /// A file that is on the medium and not in memory.
    pub(crate) fn write_cold(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.write(name, bytes);
        evict(&path);
        path
    }

    /// One thread that serves this directory, changed from the defaults by `change`.
    pub(crate) fn serve(&self, change: impl FnOnce(&mut Config)) -> Running {
        Running::over(self.transport, self.config(change))
    }

    /// The same, as a user to whom nothing belongs. Only root can have that.
    pub(crate) fn serve_as_nobody(&self) -> Option<Running> {
        if !geteuid().is_root() {
            haul_testing::skip("only root can be somebody else");
            return None;
        }
        let config = self.config(|_| {});
        std::fs::set_permissions(self.path(""), Permissions::from_mode(0o755)).unwrap();
        // A user is one of a thread, and of those that it starts.
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
        // A test changes files faster than people do.
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

/// A server on a socket that this process listens on before the server exists.
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
    let file = std::fs::File::open(path).unwrap();
    file.sync_all().unwrap();
    let file = std::os::fd::OwnedFd::from(file);
    // A page that was just sent may still belong to a packet.
    eventually("no page is in use", || {
        haul_disk::evict(&file, 0, u64::MAX).unwrap();
        resident(path) == 0
    });
}

/// How many bytes of a file are in the page cache.
pub(crate) fn resident(path: &Path) -> u64 {
    let file = std::os::fd::OwnedFd::from(std::fs::File::open(path).unwrap());
    haul_disk::resident(&file, 0, u64::MAX).unwrap().resident_bytes
}

/// A server that runs, until this is dropped.
pub(crate) struct Running {
    pub(crate) address: Endpoint,
    pub(crate) admin: Option<Endpoint>,
    handle: Arc<Handle>,
    thread: Option<JoinHandle<Result<(), haul_file_server::Error>>>,
}

impl Running {
    pub(crate) fn over(transport: Transport, config: Config) -> Self {
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

    /// The counts once so many requests are answered to their end: a client may have the last byte
    /// before it is counted.
    pub(crate) fn after(&self, answers: u64) -> Stats {
        let all = |stats: &Stats| stats.statuses.iter().map(|row| row.1).sum::<u64>();
        self.wait_until("all are answered", |stats| all(stats) >= answers);
        assert_eq!(all(&self.stats()), answers);
        self.stats()
    }

    /// Waits until `is_so` of the counts.
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&Stats) -> bool) {
        eventually(what, || is_so(&self.stats()));
    }

    /// Waits for its end.
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
