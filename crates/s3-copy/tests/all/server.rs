//! A server under test, a client of it, and everything that a bucket has as text.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use haul_file_store::Options as StoreOptions;
use haul_s3_copy::{Credentials, Endpoint, Event, Events, Options, Summary};
use haul_s3_server::{Config, Server};
use haul_store_pool::Pool;
use haul_testing::http::{Message, Peer};
use tempfile::TempDir;
use tokio::sync::oneshot;

pub(crate) type Header<'a> = (&'a str, &'a str);

/// A Haul server that runs until it is dropped.
pub(crate) struct Running {
    pub(crate) s3: Client,
    credentials: Option<Credentials>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _dir: TempDir,
}

impl Running {
    pub(crate) fn new() -> Self {
        Self::with(None)
    }

    pub(crate) fn with(credentials: Option<Credentials>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let small = StoreOptions { volume_bytes: 16 << 20, ..StoreOptions::default() };
        let store = Arc::new(Pool::open(&[dir.path().to_owned()], &small).unwrap().0);
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let keys = credentials.clone().map(|keys| haul_s3_server::Credentials {
            access_key: keys.access_key,
            secret_key: keys.secret_key,
        });
        let config = Config { listen: local, admin: local, credentials: keys, ..Config::default() };
        let (stop, stopped) = oneshot::channel::<()>();
        let (ready, address) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let server = Server::bind(config, store).unwrap();
                ready.send(server.addresses().listen).unwrap();
                server.run(async { drop(stopped.await) }).await.unwrap();
            });
        });
        let s3 = Client(address.recv().unwrap());
        Self { s3, credentials, stop: Some(stop), thread: Some(thread), _dir: dir }
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        let credentials = self.credentials.clone();
        Endpoint { credentials, ..Endpoint::new(format!("http://{}", self.s3.0)) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// A client that opens a connection for each request, and does not sign.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client(pub(crate) SocketAddr);

impl Client {
    pub(crate) fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[Header<'_>],
        body: &[u8],
    ) -> Message {
        let mut peer = Peer::connect(self.0).unwrap();
        let fields: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\n{fields}Content-Length: {length}\r\n\
             Connection: close\r\n\r\n",
            self.0
        );
        let mut request = head.into_bytes();
        request.extend_from_slice(body);
        peer.send(&request);
        peer.response_to(method).unwrap()
    }

    /// Sends a request that must succeed.
    pub(crate) fn ok(
        &self,
        method: &str,
        target: &str,
        headers: &[Header<'_>],
        body: &[u8],
    ) -> Message {
        let response = self.send(method, target, headers, body);
        let text = String::from_utf8_lossy(&response.body);
        assert!((200..300).contains(&response.status), "{method} {target}: {text}");
        response
    }

    pub(crate) fn put(&self, target: &str, body: &[u8]) {
        self.ok("PUT", target, &[], body);
    }

    pub(crate) fn enable_versioning(&self, bucket: &str) {
        let xml = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
        self.put(&format!("/{bucket}?versioning"), xml.as_bytes());
    }

    /// Uploads an object in parts.
    pub(crate) fn put_parts(&self, target: &str, headers: &[Header<'_>], parts: &[Vec<u8>]) {
        let created = self.ok("POST", &format!("{target}?uploads"), headers, b"");
        let id = values(created.text(), "UploadId").remove(0);
        let mut list = String::new();
        for (number, part) in (1..).zip(parts) {
            let target = format!("{target}?partNumber={number}&uploadId={id}");
            let stored = self.ok("PUT", &target, &[], part);
            let etag = stored.field("etag").unwrap();
            list += &format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>");
        }
        let body = format!("<CompleteMultipartUpload>{list}</CompleteMultipartUpload>");
        self.ok("POST", &format!("{target}?uploadId={id}"), &[], body.as_bytes());
    }

    /// Returns everything that a client can see of a bucket, apart from times and version IDs.
    pub(crate) fn everything(&self, bucket: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for setting in ["versioning", "tagging", "cors", "lifecycle", "object-lock", "policy"] {
            let found = self.send("GET", &format!("/{bucket}?{setting}"), &[], b"");
            let body = String::from_utf8_lossy(&found.body).into_owned();
            let body = if found.status == 200 { body } else { String::new() };
            lines.push(format!("{setting}: {} {body}", found.status));
        }
        let (mut key_marker, mut version_marker) = (String::new(), String::new());
        loop {
            let target = format!(
                "/{bucket}?versions&encoding-type=url&key-marker={key_marker}\
                 &version-id-marker={version_marker}"
            );
            let page = self.ok("GET", &target, &[], b"");
            for entry in entries(page.text()) {
                lines.push(self.version(bucket, entry));
            }
            match values(page.text(), "NextKeyMarker").pop() {
                Some(next) => key_marker = next,
                None => return lines,
            }
            version_marker = values(page.text(), "NextVersionIdMarker").pop().unwrap_or_default();
        }
    }

    fn version(&self, bucket: &str, entry: &str) -> String {
        let value = |name: &str| values(entry, name).pop().unwrap_or_default();
        let (key, id, latest) = (value("Key"), value("VersionId"), value("IsLatest"));
        if value("ETag").is_empty() {
            return format!("{key}: delete marker, latest: {latest}");
        }
        let target = format!("/{bucket}/{}?versionId={id}", key.replace('+', "%20"));
        let found = self.ok("GET", &target, &[], b"");
        let mut headers: Vec<_> = found
            .fields
            .iter()
            .map(|(name, value)| format!("{}: {value}", name.to_ascii_lowercase()))
            .filter(|line| {
                ["content-", "cache-", "expires", "etag", "x-amz-meta", "x-amz-object-lock"]
                    .iter()
                    .chain(&["x-amz-tagging", "x-amz-website"])
                    .any(|name| line.starts_with(name))
            })
            .collect();
        headers.sort();
        let tags = self.ok("GET", &format!("{target}&tagging"), &[], b"").text().to_owned();
        let tags = values(&tags, "Tag").join(",");
        let bytes = found.body.len();
        format!("{key}: latest: {latest} {bytes} bytes [{tags}] {}", headers.join("; "))
    }
}

/// Returns the texts of the elements with a name.
pub(crate) fn values(xml: &str, name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let rest = xml.split(&open).skip(1);
    rest.map(|rest| rest.split(&close).next().unwrap().to_owned()).collect()
}

/// Returns the versions and delete markers of a page, in their order.
fn entries(xml: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (name, end) in [("<Version>", "</Version>"), ("<DeleteMarker>", "</DeleteMarker>")] {
        for (at, _) in xml.match_indices(name) {
            found.push((at, xml[at..].split(end).next().unwrap()));
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, text)| text).collect()
}

/// A receiver of events that keeps their texts, and stops after some copied objects.
pub(crate) struct Recorded {
    pub(crate) lines: RefCell<Vec<String>>,
    left: Cell<u64>,
}

impl Default for Recorded {
    fn default() -> Self {
        Self { lines: RefCell::default(), left: Cell::new(u64::MAX) }
    }
}

impl Events for Recorded {
    fn is_stopped(&self) -> bool {
        self.left.get() == 0
    }

    fn happened(&self, event: &Event<'_>, _summary: &Summary) {
        if matches!(event, Event::Copied { .. }) {
            self.left.set(self.left.get().saturating_sub(1));
        }
        self.lines.borrow_mut().push(format!("{event:?}"));
    }
}

/// Returns the options of a copy between two servers.
pub(crate) fn options(from: &Running, to: &Running) -> Options {
    Options { jobs: 8, ..Options::new(from.endpoint(), to.endpoint()) }
}

/// Copies, and stops after `objects`. Returns the summary and the events.
pub(crate) fn copy_some(options: &Options, objects: u64) -> (Summary, Vec<String>) {
    let events = Recorded { lines: RefCell::default(), left: Cell::new(objects) };
    let summary = haul_s3_copy::run(options, &events).unwrap();
    (summary, events.lines.into_inner())
}

/// Copies everything, without a failure.
pub(crate) fn copy(options: &Options) -> Summary {
    let (summary, lines) = copy_some(options, u64::MAX);
    let failed: Vec<_> = lines.iter().filter(|line| line.starts_with("Failed")).collect();
    assert_eq!((summary.failed, summary.is_stopped), (0, false), "{failed:#?}");
    summary
}
