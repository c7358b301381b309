//! A server under test, and a simple client that can also send malformed requests.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use haul_disk::Disk;
use haul_disk_sim::MemoryDisk;
use haul_file_store::{Options, Store};
use haul_s3_server::{
    Config, Credentials, EncryptionKeys, EventTargets, Inherited, KeyFile, KeyRing, Limits,
    Listener, Listening, Logs, Providers, Server, TcpOptions,
};
use haul_store_pool::{OpenWith, Pool};
use haul_testing::{ClientStream, Endpoint, PATIENCE, Transport, server_certificate};
use haul_tls::{Acceptor, Alpn, CertificateFiles, Identities};
use tempfile::TempDir;
use tokio::sync::oneshot;

pub(crate) use crate::reply::{Reply, assert_refused};

/// The default of a Tokio runtime.
const BLOCKING_THREADS_MAX: usize = 512;

/// A server that runs until it is dropped.
pub(crate) struct Running {
    pub(crate) s3: Client,
    pub(crate) admin: Client,
    /// The address for websites.
    pub(crate) website: Option<Client>,
    dir: Option<TempDir>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The setup of a server.
struct Setup {
    transport: Transport,
    credentials: Option<Credentials>,
    keys: Option<Arc<KeyRing>>,
    key_file: Option<Arc<dyn KeyFile>>,
    encryption: Option<Arc<EncryptionKeys>>,
    providers: Option<Arc<Providers>>,
    admin: &'static str,
    domains: Vec<String>,
    /// The domains of websites; `None` for a server without websites.
    website_domains: Option<Vec<String>>,
    limits: Limits,
    blocking_threads_max: usize,
    logs: Logs,
    events: Option<Arc<EventTargets>>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            transport: Transport::Plain,
            credentials: None,
            keys: None,
            key_file: None,
            encryption: None,
            providers: None,
            admin: "127.0.0.1:0",
            domains: Vec::new(),
            website_domains: None,
            limits: Limits::default(),
            blocking_threads_max: BLOCKING_THREADS_MAX,
            logs: Logs::default(),
            events: None,
        }
    }
}

/// The variable with the number of directories of the stores that are served: with more than one, the
/// tests run over a pool.
const MEMBERS: &str = "HAUL_TEST_MEMBERS";

pub(crate) fn members() -> usize {
    std::env::var(MEMBERS).map_or(1, |members| members.parse().expect("a number of members"))
}

/// Returns `true`, and skips the test, if a pool is tested: the test looks into the only directory.
pub(crate) fn needs_one_directory() -> bool {
    let is_pool = members() > 1;
    if is_pool {
        haul_testing::skip("it looks into the only directory of a store");
    }
    is_pool
}

/// Opens the store in a directory, or the pool in directories below it.
pub(crate) fn open(dir: &Path, options: Options) -> Pool {
    let is_store = dir.join("STORE").exists();
    let dirs: Vec<PathBuf> = match members() {
        2.. if !is_store => (0..members()).map(|member| dir.join(member.to_string())).collect(),
        _ => vec![dir.to_owned()],
    };
    Pool::open(&dirs, &options).unwrap().0
}

/// Opens a new store on a disk in memory, or a pool on several.
pub(crate) fn open_in_memory(options: Options) -> Pool {
    let disks: Vec<Arc<dyn Disk>> =
        (0..members()).map(|_| Arc::new(MemoryDisk::default()) as _).collect();
    Pool::open_on(&disks, &OpenWith::default(), &options).unwrap().0
}

impl Running {
    /// Starts a server without credentials, with a bucket named `bucket`.
    pub(crate) fn new() -> Self {
        Self::over(Transport::Plain)
    }

    /// Starts a server over this transport without credentials, with a bucket named `bucket`.
    pub(crate) fn over(transport: Transport) -> Self {
        let server = Self::over_with(transport, Limits::default());
        assert_eq!(server.s3.put("/bucket", b"").status, 200);
        server
    }

    pub(crate) fn with(credentials: Option<Credentials>, limits: Limits) -> Self {
        Self::on(tempfile::tempdir().unwrap(), credentials, limits)
    }

    /// Starts a server over this transport, without credentials and without buckets.
    pub(crate) fn over_with(transport: Transport, limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), small());
        let mut server = Self::serve(store, Setup { transport, limits, ..Setup::default() });
        server.dir = Some(dir);
        server
    }

    /// Starts a server on an existing store.
    pub(crate) fn on(dir: TempDir, credentials: Option<Credentials>, limits: Limits) -> Self {
        let store = open(dir.path(), small());
        let mut server = Self::serve(store, Setup { credentials, limits, ..Setup::default() });
        server.dir = Some(dir);
        server
    }

    /// Starts a server with these domains, with a bucket named `bucket`.
    pub(crate) fn with_domains(domains: &[&str], credentials: Option<Credentials>) -> Self {
        let store = open_in_memory(small());
        let domains = domains.iter().map(|domain| (*domain).to_owned()).collect();
        store.create_bucket("bucket").unwrap();
        Self::serve(store, Setup { domains, credentials, ..Setup::default() })
    }

    /// Starts a server with websites, with a bucket named `bucket`.
    pub(crate) fn with_websites(domains: &[&str], credentials: Option<Credentials>) -> Self {
        let store = open_in_memory(small());
        let website_domains = Some(domains.iter().map(|domain| (*domain).to_owned()).collect());
        store.create_bucket("bucket").unwrap();
        let limits = Limits { log_delivery_time: Duration::from_millis(20), ..Limits::default() };
        Self::serve(store, Setup { website_domains, credentials, limits, ..Setup::default() })
    }

    /// Starts a server with these encryption keys, on a store in this directory.
    pub(crate) fn with_encryption(dir: TempDir, keys: Option<&str>) -> Self {
        let store = open(dir.path(), small());
        let encryption = keys.map(|text| Arc::new(EncryptionKeys::parse(text).unwrap()));
        let mut server = Self::serve(store, Setup { encryption, ..Setup::default() });
        server.dir = Some(dir);
        server
    }

    /// Starts a server on a disk in memory, with these logs.
    pub(crate) fn with_logs(credentials: Option<Credentials>, logs: Logs) -> Self {
        let store = open_in_memory(small());
        Self::serve(store, Setup { credentials, logs, ..Setup::default() })
    }

    /// Starts a server with the keys of a key file, on a store in this directory. Its admin address
    /// is a public one.
    pub(crate) fn with_keys(
        dir: TempDir,
        credentials: Option<Credentials>,
        keys: &Arc<KeyRing>,
        logs: Logs,
    ) -> Self {
        let store = open(dir.path(), small());
        let keys = Some(Arc::clone(keys));
        let setup = Setup { credentials, keys, admin: "0.0.0.0:0", logs, ..Setup::default() };
        let mut server = Self::serve(store, setup);
        server.admin.0.address.set_ip([127, 0, 0, 1].into());
        server.dir = Some(dir);
        server
    }

    /// Starts a server with the policies of a key file and with OpenID Connect providers.
    pub(crate) fn with_providers(
        administrator: Credentials,
        keys: &Arc<KeyRing>,
        providers: Providers,
    ) -> Self {
        let (keys, providers) = (Some(Arc::clone(keys)), Some(Arc::new(providers)));
        let credentials = Some(administrator);
        Self::serve(
            open_in_memory(small()),
            Setup { credentials, keys, providers, ..Setup::default() },
        )
    }

    /// Starts a server with the keys of a key file and with encryption keys.
    pub(crate) fn with_keys_and_encryption(
        credentials: Option<Credentials>,
        keys: &Arc<KeyRing>,
        encryption: &str,
    ) -> Self {
        let store = open_in_memory(small());
        let keys = Some(Arc::clone(keys));
        let encryption = Some(Arc::new(EncryptionKeys::parse(encryption).unwrap()));
        Self::serve(store, Setup { credentials, keys, encryption, ..Setup::default() })
    }

    /// Starts a server with the keys of a key file, and with these event targets.
    pub(crate) fn with_keys_and_events(
        credentials: Option<Credentials>,
        keys: &Arc<KeyRing>,
        targets: &Arc<EventTargets>,
    ) -> Self {
        let event_queues = Some(targets.queues());
        let store = open_in_memory(Options { event_queues, ..small() });
        let (keys, events) = (Some(Arc::clone(keys)), Some(Arc::clone(targets)));
        Self::serve(store, Setup { credentials, keys, events, ..Setup::default() })
    }

    /// Starts a server with the keys of a key file, which the console can change.
    pub(crate) fn with_key_file(
        credentials: Option<Credentials>,
        keys: &Arc<KeyRing>,
        key_file: Option<Arc<dyn KeyFile>>,
        logs: Logs,
    ) -> Self {
        let store = open_in_memory(small());
        let keys = Some(Arc::clone(keys));
        Self::serve(store, Setup { credentials, keys, key_file, logs, ..Setup::default() })
    }

    /// Starts a server on a store with these options, with a bucket named `bucket`.
    pub(crate) fn with_options(options: Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), options);
        let mut server = Self::serve(store, Setup::default());
        server.dir = Some(dir);
        assert_eq!(server.s3.put("/bucket", b"").status, 200);
        server
    }

    /// Starts a server on an existing store with these options.
    pub(crate) fn with_store(dir: TempDir, options: Options) -> Self {
        let store = open(dir.path(), options);
        let mut server = Self::serve(store, Setup::default());
        server.dir = Some(dir);
        server
    }

    /// Starts a server with event targets and encryption keys, on a store in this directory.
    pub(crate) fn with_events(
        dir: TempDir,
        targets: &Arc<EventTargets>,
        encryption: &str,
        options: Options,
    ) -> Self {
        let event_queues = Some(targets.queues());
        let lifecycle_events = targets.lifecycle_events();
        let store = open(dir.path(), Options { event_queues, lifecycle_events, ..options });
        let encryption = Some(Arc::new(EncryptionKeys::parse(encryption).unwrap()));
        let events = Some(Arc::clone(targets));
        let mut server = Self::serve(store, Setup { encryption, events, ..Setup::default() });
        server.dir = Some(dir);
        server
    }

    /// Starts a server on a disk in memory, with a bucket named `bucket`.
    pub(crate) fn in_memory(disk: &MemoryDisk) -> Self {
        Self::with_blocking_threads(disk, BLOCKING_THREADS_MAX)
    }

    /// Starts a server on a disk in memory, with a bucket named `bucket` and a limit on the number
    /// of threads for blocking calls.
    pub(crate) fn with_blocking_threads(disk: &MemoryDisk, blocking_threads_max: usize) -> Self {
        let options = Options { volume_bytes: 4 << 20, big_object_bytes: 1 << 20, ..small() };
        let store = Pool::from(Store::open_on(Arc::new(disk.clone()), options).unwrap().0);
        let setup = Setup { blocking_threads_max, ..Setup::default() };
        let server = Self::serve(store, setup);
        assert_eq!(server.s3.put("/bucket", b"").status, 200);
        server
    }

    /// Starts a server with these encryption keys, on a disk in memory.
    pub(crate) fn encrypted_in_memory(disk: &MemoryDisk, keys: &str) -> Self {
        let options = Options { volume_bytes: 4 << 20, big_object_bytes: 64 << 10, ..small() };
        let store = Pool::from(Store::open_on(Arc::new(disk.clone()), options).unwrap().0);
        let encryption = Some(Arc::new(EncryptionKeys::parse(keys).unwrap()));
        Self::serve(store, Setup { encryption, ..Setup::default() })
    }

    /// Starts a server on a disk in memory with these limits, without buckets.
    pub(crate) fn in_memory_with(disk: &MemoryDisk, limits: Limits) -> Self {
        let store = Pool::from(Store::open_on(Arc::new(disk.clone()), small()).unwrap().0);
        Self::serve(store, Setup { limits, ..Setup::default() })
    }

    fn serve(store: Pool, setup: Setup) -> Self {
        let Setup { transport, credentials, keys, encryption, providers, admin, .. } = setup;
        let Setup { key_file, limits, blocking_threads_max, logs, domains, .. } = setup;
        let website = setup.website_domains.is_some().then(|| "127.0.0.1:0".parse().unwrap());
        let website_domains = setup.website_domains.unwrap_or_default();
        let store = Arc::new(store);
        let [listen, admin]: [SocketAddr; 2] =
            ["127.0.0.1:0", admin].map(|address| address.parse().unwrap());
        let is_plain_http_allowed = !admin.ip().is_loopback();
        let inherited = Inherited { listen: inherited(transport), ..Inherited::default() };
        let tls = (transport == Transport::Tls).then(acceptor);
        let config = Config { listen, admin, credentials, keys, tls, ..Config::default() };
        let config =
            Config { is_plain_http_allowed, encryption, providers, limits, domains, ..config };
        let events = setup.events;
        let config = Config { key_file, website, website_domains, events, ..config };
        let (stop, stopped) = oneshot::channel();
        let (ready, addresses) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .max_blocking_threads(blocking_threads_max)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listening = Listening::with_inherited(config, inherited).unwrap();
                let listening = listening.with_logs(logs);
                let server = Server::new(listening, store).unwrap();
                ready.send(server.addresses()).unwrap();
                server.run(async { drop(stopped.await) }).await.unwrap();
            });
            // Bounds the wait for a call of the store that never returns.
            runtime.shutdown_timeout(PATIENCE);
        });
        let addresses = addresses.recv().unwrap();
        Self {
            s3: Client(Endpoint { address: addresses.listen, transport }),
            admin: Client(Endpoint { address: addresses.admin, transport: Transport::Plain }),
            website: addresses
                .website
                .map(|address| Client(Endpoint { address, transport: Transport::Plain })),
            dir: None,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Returns the directory of the store.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.as_ref().unwrap().path()
    }

    /// Requests the server to stop, without waiting for it.
    pub(crate) fn request_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Stops the server and waits until it has stopped.
    pub(crate) fn join(&mut self) {
        self.request_stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// Stops the server and returns its directory.
    pub(crate) fn into_dir(mut self) -> TempDir {
        self.join();
        self.dir.take().unwrap()
    }
}

fn acceptor() -> Acceptor {
    let dir = tempfile::tempdir().unwrap();
    let [chain, key] = server_certificate().write(dir.path(), "server");
    let identities = Identities::load(vec![CertificateFiles { chain, key }]).unwrap();
    Acceptor::new(identities, Alpn::Http1).unwrap()
}

pub(crate) fn small() -> Options {
    Options { volume_bytes: 16 << 20, ..Options::default() }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.request_stop();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// A client that opens a connection per request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client(pub(crate) Endpoint);

pub(crate) type Header<'a> = (&'a str, &'a str);

impl Client {
    pub(crate) fn get(&self, target: &str) -> Reply {
        self.send("GET", target, &[], b"")
    }

    pub(crate) fn put(&self, target: &str, body: &[u8]) -> Reply {
        self.send("PUT", target, &[], body)
    }

    pub(crate) fn head(&self, target: &str) -> Reply {
        self.send("HEAD", target, &[], b"")
    }

    pub(crate) fn delete(&self, target: &str) -> Reply {
        self.send("DELETE", target, &[], b"")
    }

    pub(crate) fn post(&self, target: &str, body: &str) -> Reply {
        self.send("POST", target, &[], body.as_bytes())
    }

    pub(crate) fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[Header],
        body: &[u8],
    ) -> Reply {
        self.raw(&self.request(method, target, headers, body))
    }

    /// Returns the bytes of a request with this body.
    pub(crate) fn request(
        &self,
        method: &str,
        target: &str,
        headers: &[Header],
        body: &[u8],
    ) -> Vec<u8> {
        let length = body.len().to_string();
        let mut all = vec![("content-length", length.as_str())];
        all.extend_from_slice(headers);
        [&self.head_bytes(method, target, &all), body].concat()
    }

    /// Returns the head of a request.
    pub(crate) fn head_bytes(&self, method: &str, target: &str, headers: &[Header]) -> Vec<u8> {
        let mut head = format!("{method} {target} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            head += &format!("host: {}\r\n", self.0.address);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        (head + "\r\n").into_bytes()
    }

    /// Sends these bytes and reads until the server closes the connection. Also reads the response
    /// of a server that closes before it has received all bytes.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Reply {
        let mut stream = self.connect();
        drop(stream.write_all(bytes));
        Reply::read(&mut stream)
    }

    pub(crate) fn connect(&self) -> ClientStream {
        self.0.connect().unwrap()
    }
}

/// Returns the listening socket that a server over this transport inherits.
fn inherited(transport: Transport) -> Option<Listener> {
    let listen = || {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        Listener::inherit(socket.into(), TcpOptions::default()).unwrap()
    };
    (transport == Transport::Inherited).then(listen)
}

/// Returns pseudorandom bytes, the same on each call.
pub(crate) fn noise(bytes: usize) -> Vec<u8> {
    haul_testing::noise(1, bytes)
}
