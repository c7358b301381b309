//! Stores objects, and the same bytes in files, and measures how servers send them.

use std::fs;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::bench::{Bench, Case, Contender, Rival, Tools};
use super::client::Request;
use super::presigned::Signer;
use super::sample::{Figure, Sample, short};
use super::site::Files;
use super::wrk::Load;
use haul_measure::{Error, Result};

/// The bucket of all objects that are read.
pub(crate) const BUCKET: &str = "bench";
/// The total length in bytes of the objects of one size, and the bounds of their number.
const TOTAL_BYTES: u64 = 32 << 20;
const OBJECTS_MIN: u64 = 2;
const OBJECTS_MAX: u64 = 1000;
/// The time within which a server that listens must create a bucket, and the time between two
/// attempts.
const READY_MAX: Duration = Duration::from_secs(60);
const READY_INTERVAL: Duration = Duration::from_millis(200);

/// The source from which a server sends the objects, and its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// From a bucket, without a signature.
    Anonymous,
    /// From a bucket, with presigned requests.
    Presigned,
    /// From the files.
    Files,
}

impl Access {
    /// Returns the target of a request.
    fn target(self, method: &str, address: SocketAddr, name: &str) -> String {
        match self {
            Self::Files => format!("/{name}"),
            Self::Anonymous => format!("/{BUCKET}/{name}"),
            Self::Presigned => {
                Signer::new(address).target(method, &format!("/{BUCKET}/{name}"), "")
            }
        }
    }
}

/// Objects of one length.
pub(crate) struct Objects<F> {
    files: Files,
    connections: usize,
    access: F,
}

impl<F: Fn(&Rival) -> Access> Objects<F> {
    /// Creates the files. `access` returns how a rival sends the objects.
    pub(crate) fn create(
        bench: &Bench<'_>,
        bytes: u64,
        connections: usize,
        access: F,
    ) -> Result<Self> {
        let number = (TOTAL_BYTES / bytes).clamp(OBJECTS_MIN, OBJECTS_MAX);
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let (site, watcher) = (bench.tools.site.clone(), bench.tools.watcher);
        let files = Files::create(&site, &short(bytes), number, bytes, watcher)?;
        Ok(Self { files, connections, access })
    }

    /// Measures GET requests in random order. Before the first round, the objects are stored, and
    /// their bytes are compared.
    pub(crate) fn get(
        &self,
        bench: &mut Bench<'_>,
        figures: &'static [Figure],
        rivals: &[&'static Rival],
    ) -> Result<()> {
        let name = short(self.files.bytes);
        let (table, load) = ("GET of objects in memory", format!("GET {name}"));
        let case = Case { table, load, key: format!("get_{name}"), figures, rivals };
        let prepare = |tools: &Tools<'_>, one: &mut Contender| {
            self.store(tools, one)?;
            // Servers admit some objects to their caches only after several requests.
            self.measure(tools, one).map(drop)
        };
        bench.run(&case, prepare, |tools, one| self.measure(tools, one))
    }

    fn store(&self, tools: &Tools<'_>, one: &mut Contender) -> Result<()> {
        let access = (self.access)(one.rival);
        let address = one.server(tools)?.address;
        if access != Access::Files {
            create_bucket(tools, address, BUCKET, access)?;
        }
        self.files.names.iter().try_for_each(|name| {
            let file = self.files.path(name);
            if access != Access::Files {
                let body = fs::read(&file).map_err(Error::other(format!("read {name}")))?;
                Request::put(address, &access.target("PUT", address, name), &body).send()?;
            }
            let target = access.target("GET", address, name);
            Request::get(address, &target).download(Some(&file)).map(drop)
        })
    }

    fn measure(&self, tools: &Tools<'_>, one: &mut Contender) -> Result<Sample> {
        let access = (self.access)(one.rival);
        let server = one.server(tools)?;
        let get = |name: &String| format!("GET {}", access.target("GET", server.address, name));
        let requests: Vec<_> = self.files.names.iter().map(get).collect();
        tools.load(server, &Load::new(&requests, self.connections, self.files.bytes))
    }
}

/// Creates a bucket, as soon as the server can do so.
pub(crate) fn create_bucket(
    tools: &Tools<'_>,
    address: SocketAddr,
    bucket: &str,
    access: Access,
) -> Result<()> {
    let end = Instant::now() + READY_MAX;
    let path = format!("/{bucket}");
    loop {
        tools.watcher.check()?;
        let (put, list) = match access {
            Access::Presigned => {
                let signer = Signer::new(address);
                (signer.target("PUT", &path, ""), signer.target("GET", &path, "list-type=2"))
            }
            _ => (path.clone(), format!("{path}?list-type=2")),
        };
        let created = Request::put(address, &put, &[]).send();
        // Some servers reject a bucket that exists, and others create it again.
        if created.is_ok() || Request::get(address, &list).send().is_ok() {
            return Ok(());
        }
        if Instant::now() > end {
            return created.map(drop);
        }
        thread::sleep(READY_INTERVAL);
    }
}
