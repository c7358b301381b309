//! Compares the CPU time of `haul serve` per request with that of `haul files` and nginx, which
//! send the same bytes from files, and with calls of the store in one process.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use haul_disk::error_chain;
use haul_file_store::{Attributes, Precondition, Store};

use crate::benchmark::Benchmark;
use crate::log::process_cpu;
use crate::named::named;
use crate::net::bench::{Bench, Case, Contender, Rival, Tools};
use crate::net::nginx::{NGINX, SENDFILE, file_server};
use crate::net::objects::{Access, BUCKET, Objects, create_bucket};
use crate::net::presigned::Signer;
use crate::net::programs::HAUL;
use crate::net::sample::{CPU, RATE, Sample};
use crate::net::server::{Server, Start};
use crate::net::signed_put::Dialect;
use crate::net::wrk::Load;
use crate::net::{Pinned, files_command, serve_command, signed_serve, with_tls};
use crate::options::{NetOptions, count, size_in};
use crate::reads::joined;
use crate::report::Report;
use haul_measure::{Error, Result, Watcher};
use haul_testing::tls::Authority;

/// Options of `haul bench serve`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// The options of every benchmark of servers.
    #[command(flatten)]
    pub net: NetOptions,
    /// Parts to measure: get, put
    ///
    /// get: CPU time of the server per GET of objects in memory, anonymous and presigned, beside
    /// haul files and nginx. put: CPU time of the server per PUT of 4 KiB, of new keys and of keys
    /// that exist, in each way of signing and framing, beside Store::put with as many threads in one
    /// process.
    #[arg(long = "only", value_name = "LIST", value_delimiter = ',', default_value = "get,put")]
    pub parts: Vec<Part>,
    /// Sizes of the objects, 1 B to 1GiB; each size is measured separately
    #[arg(long = "sizes", value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "4KiB,64KiB,1MiB,64MiB")]
    #[arg(value_parser = size_in(1..=1 << 30, "a size from 1 B to 1GiB"))]
    pub object_bytes: Vec<u64>,
    /// Number of connections, and of threads that call Store::put
    #[arg(long, value_name = "N", default_value = "16", value_parser = count(1..=1000))]
    pub connections: usize,
}

named! {
    /// A part of the benchmark.
    pub enum Part {
        /// GET requests for objects in memory.
        Get = "get",
        /// PUT requests of small objects.
        Put = "put",
    }
}

/// The length in bytes of the objects that are stored.
const PUT_BYTES: u64 = 4 << 10;
/// The number of requests that are signed before a measurement: more than a server answers.
const SIGNED_REQUESTS: usize = 40_000;
/// The number of keys that are overwritten.
const OVERWRITTEN: usize = 1000;

static SERVE: Rival =
    Rival::new(&HAUL, "serve", "serve, anonymous", |at| Ok(serve_command(at, None)));
static SIGNED: Rival = Rival::new(&HAUL, "serve_presigned", "serve, presigned", signed_serve);
static FILES: Rival = Rival::new(&HAUL, "files", "files", |at| Ok(files_command(at)));
static NGINX_FILES: Rival =
    Rival::new(&NGINX, "nginx", "sendfile, tcp_nopush", |at| file_server(at, false, SENDFILE));
static STORE: Rival = Rival::new(&HAUL, "store", "Store::put", no_command);

fn no_command(_: &Start<'_>) -> Result<Command> {
    Err(Error::Missing("the store has no server".to_owned()))
}

static GET_RIVALS: [&Rival; 4] = [&SERVE, &SIGNED, &FILES, &NGINX_FILES];
static HASH: Rival = Rival::new(&HAUL, "hash", "serve, signed hash", signed_serve);
static CHUNKS: Rival = Rival::new(&HAUL, "chunks", "serve, signed chunks", signed_serve);
static TRAILER: Rival =
    Rival::new(&HAUL, "chunks_trailer", "serve, signed chunks, trailer", signed_serve);
static TLS: Rival = Rival::new(&HAUL, "tls", "serve, unsigned chunks, TLS", |at| {
    Ok(with_tls(signed_serve(at)?, at))
});
static PUT_RIVALS: [&Rival; 6] = [&SERVE, &HASH, &CHUNKS, &TRAILER, &TLS, &STORE];

impl Benchmark for Options {
    const NAME: &'static str = "serve";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let rivals = [&GET_RIVALS[..], &PUT_RIVALS[1..]].concat();
        let mut bench = Bench::new(Self::NAME, &self.net, &rivals, watcher)?;
        if self.parts.contains(&Part::Get) {
            for bytes in self.object_bytes.iter().copied() {
                get(&mut bench, self, bytes)?;
            }
        }
        if self.parts.contains(&Part::Put) {
            let issued = Authority::new().issue(&["localhost"]);
            bench.tools.tls = Some(issued.write(bench.tools.scratch.path(), "server"));
            put(&mut bench, self)?;
        }
        bench.stop_servers();
        Ok(bench.report)
    }
}

fn get(bench: &mut Bench<'_>, options: &Options, bytes: u64) -> Result<()> {
    let access = |rival: &Rival| match rival.key {
        "serve" => Access::Anonymous,
        "serve_presigned" => Access::Presigned,
        _ => Access::Files,
    };
    let objects = Objects::create(bench, bytes, options.connections, access)?;
    objects.get(bench, &[CPU, RATE], &GET_RIVALS)
}

fn put(bench: &mut Bench<'_>, options: &Options) -> Result<()> {
    let dir = bench.tools.scratch.path().join("store");
    let pinned = Pinned::to(bench.tools.cores.server)?;
    let store = open(&dir)?;
    drop(pinned);
    for (load, key) in [("new keys", "new"), ("overwrites", "overwrite")] {
        // An overwrite is of one of the objects that the load before has stored in the same round.
        let keys = |tools: &Tools<'_>| match key {
            "new" => vec![format!("new/{}/%d", tools.next_number())],
            _ => (0..OVERWRITTEN).map(|number| format!("overwritten/{number}")).collect(),
        };
        let measure = |tools: &Tools<'_>, one: &mut Contender| {
            let keys = keys(tools);
            if one.rival.key == STORE.key {
                return put_in_process(tools, &store, &keys, options.connections);
            }
            let dialect = dialect(one.rival);
            let server = one.server(tools)?;
            if let Some(dialect) = dialect {
                let load = signed_load(dialect, options.connections);
                let requests = signed_requests(dialect, server, &keys);
                return tools.load(server, &Load { whole_requests: &requests, ..load });
            }
            let put = |key: &String| format!("PUT /{BUCKET}/{key}");
            let requests: Vec<_> = keys.iter().map(put).collect();
            let load = Load::new(&requests, options.connections, 0);
            tools.load(server, &Load { body_bytes: PUT_BYTES, ..load })
        };
        let prepare = |tools: &Tools<'_>, one: &mut Contender| {
            match dialect(one.rival) {
                Some(dialect) => {
                    let server = one.server(tools)?;
                    let path = format!("/{BUCKET}");
                    let bucket = [Signer::new(server.address).put(Dialect::Hash, &path, b"")];
                    let load = signed_load(dialect, 1);
                    tools.load(server, &Load { whole_requests: &bucket, ..load })?;
                }
                None if one.rival.key == SERVE.key => {
                    create_bucket(tools, one.server(tools)?.address, BUCKET, Access::Anonymous)?;
                }
                None => {}
            }
            measure(tools, one).map(drop)
        };
        let (load, key) = (format!("PUT 4k, {load}"), format!("put_4k_{key}"));
        let (table, figures, rivals) = ("PUT", &[CPU, RATE], &PUT_RIVALS);
        bench.run(&Case { table, load, key, figures, rivals }, prepare, measure)?;
    }
    store.close().map_err(|error| failed(&error))
}

/// Returns the dialect of a client of this server.
fn dialect(rival: &Rival) -> Option<Dialect> {
    Some(match rival.key {
        "hash" => Dialect::Hash,
        "chunks" => Dialect::Chunks,
        "chunks_trailer" => Dialect::ChunksWithTrailer,
        "tls" => Dialect::UnsignedChunks,
        _ => return None,
    })
}

/// Returns a load of signed requests.
fn signed_load(dialect: Dialect, connections: usize) -> Load<'static> {
    // The SDKs send unsigned chunks over TLS only.
    Load { tls: dialect == Dialect::UnsignedChunks, ..Load::new(&[], connections, 0) }
}

/// Returns requests that store objects with these keys; a number replaces the `%d` of a single one.
fn signed_requests(dialect: Dialect, server: &Server, keys: &[String]) -> Vec<Vec<u8>> {
    let signer = Signer::new(server.address);
    let body = vec![b'x'; usize::try_from(PUT_BYTES).unwrap_or_default()];
    let request = |number: usize| {
        let key = keys[number % keys.len()].replace("%d", &number.to_string());
        signer.put(dialect, &format!("/{BUCKET}/{key}"), &body)
    };
    (0..SIGNED_REQUESTS).map(request).collect()
}

fn failed(error: &haul_file_store::Error) -> Error {
    Error::Missing(format!("cannot store the objects: {}", error_chain(error)))
}

/// Opens a store with a bucket.
fn open(dir: &Path) -> Result<Store> {
    let options = haul_file_store::Options::default();
    let (store, _recovered) = Store::open(dir, options).map_err(|error| failed(&error))?;
    store.create_bucket(BUCKET).map_err(|error| failed(&error))?;
    Ok(store)
}

/// Stores objects with `threads` threads on the core of the server, and returns the CPU time of this
/// process. Another key follows each time, or a number replaces the `%d` of a single key.
fn put_in_process(
    tools: &Tools<'_>,
    store: &Store,
    keys: &[String],
    threads: usize,
) -> Result<Sample> {
    let body = vec![b'x'; usize::try_from(PUT_BYTES).unwrap_or_default()];
    let next = AtomicUsize::new(0);
    let (start, before) = (Instant::now(), process_cpu());
    let writer = || -> Result<()> {
        let attributes = Attributes::new();
        while start.elapsed() < tools.options.time {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let key = keys[number % keys.len()].replace("%d", &number.to_string());
            let put = store.put(BUCKET, &key, &body, &attributes, &Precondition::None);
            put.map_err(|error| failed(&error))?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let pinned = Pinned::to(tools.cores.server)?;
        let writers: Vec<_> = (0..threads).map(|_| scope.spawn(writer)).collect();
        drop(pinned);
        writers.into_iter().try_for_each(joined)
    })?;
    let mut sample = Sample { wall: start.elapsed(), ..Sample::default() };
    sample.requests = next.into_inner() as u64;
    sample.used.process = Some(process_cpu().saturating_sub(before));
    Ok(sample)
}
