//! S3 servers in this process on stores in memory, with credentials and without.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use haul_disk_sim::MemoryDisk;
use haul_file_store::{Attributes, NewBucket, Precondition};
use haul_s3_server::{Config, Credentials, EncryptionKeys, Listening, Server};
use tokio::sync::oneshot;

use super::{ANY, Reply, RequestParts};
use crate::formats::store::{BUCKET, open, put};

/// The number of inputs after which a server starts again with a new store, because a simulated disk
/// records all writes.
const INPUTS_MAX: u32 = 300;

/// The access key of servers with credentials.
pub(crate) const ACCESS_KEY: &str = "AKIAFUZZ";

/// The key for encrypted objects.
const ENCRYPTION_KEY: &str = "haul-encryption-key-1 6b+WOZ1T3cqZMxgThRcXAQBrS5mXKdDUphvpxptl9/4=";

/// A secret key that no input has.
pub(crate) const SECRET_KEY: &str = "JBQq7fJ0hYfLz2vM0cW4pT8sXk1nR6dG";

/// A server that is started by its first request.
#[derive(Debug)]
pub(crate) struct S3Server {
    running: Mutex<Option<Running>>,
    has_credentials: bool,
}

/// A server that accepts every client.
pub(crate) static OPEN: S3Server = S3Server { running: Mutex::new(None), has_credentials: false };

/// A server that accepts signed requests only.
pub(crate) static SIGNED: S3Server = S3Server { running: Mutex::new(None), has_credentials: true };

#[derive(Debug)]
struct Running {
    address: SocketAddr,
    inputs: u32,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(has_credentials: bool) -> Self {
        let store = open(&MemoryDisk::default()).unwrap();
        store.create_bucket(BUCKET).unwrap();
        put(&store, "key", b"content").unwrap();
        let none = Attributes::new();
        let locked = NewBucket::with_object_lock(none.clone());
        store.create_bucket_with("locked", &locked).unwrap();
        store.put("locked", "key", b"content", &none, &Precondition::None).unwrap();
        let keys =
            || Credentials { access_key: ACCESS_KEY.to_owned(), secret_key: SECRET_KEY.to_owned() };
        let credentials = has_credentials.then(keys);
        let encryption = EncryptionKeys::parse(ENCRYPTION_KEY).unwrap();
        let config = Config {
            listen: ANY,
            admin: ANY,
            credentials,
            encryption: Some(Arc::new(encryption)),
            ..Config::default()
        };
        let (stop, stopped) = oneshot::channel();
        let (ready, addresses) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listening = Listening::bind(config).unwrap();
                let server = Server::new(listening, Arc::new(store.into())).unwrap();
                ready.send(server.addresses()).unwrap();
                server.run(async { drop(stopped.await) }).await.unwrap();
            });
        });
        let address = addresses.recv().unwrap().listen;
        Self { address, inputs: 0, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl S3Server {
    /// Returns the address for the requests of an input.
    pub(crate) fn address(&self) -> SocketAddr {
        let mut guard = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if guard.as_ref().is_some_and(|server| server.inputs >= INPUTS_MAX) {
            *guard = None;
        }
        let server = guard.get_or_insert_with(|| Running::start(self.has_credentials));
        server.inputs += 1;
        server.address
    }
}

/// Sends a request without fields, and returns the response.
///
/// # Panics
/// As [`RequestParts::send`], and if there is no response.
pub(crate) fn request(address: SocketAddr, line: &str, body: &[u8]) -> Reply {
    let request = RequestParts { line: line.as_bytes(), fields: b"", body };
    request.send(address).expect("the server responds")
}
