//! Compares HTTP file servers: `haul files`, nginx, and a server of few lines in Go.
//!
//! wrk requests small files from memory as fast as possible. Big files that are not in memory are
//! downloaded once each, with the part of them that is in the page cache afterwards; and hot files
//! are requested while cold ones are downloaded, with little memory.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul_testing::tls::Authority;

use crate::benchmark::Benchmark;
use crate::memory_limit::MemoryLimit;
use crate::named::named;
use crate::net::bench::{Bench, Case, Contender, Rival, Tools};
use crate::net::client::Request;
use crate::net::meter::Used;
use crate::net::nginx::{NGINX, SENDFILE, file_server};
use crate::net::programs::{HAUL, Program};
use crate::net::sample::{CACHE, CPU, CPU_PER_GB, P99, RATE, Sample, TRANSFER_RATE, short};
use crate::net::server::{Server, Start};
use crate::net::site::Files;
use crate::net::wrk::Load;
use crate::net::{files_command, with_tls};
use crate::options::{NetOptions, count, size_in};
use crate::reads::joined;
use crate::report::Report;
use haul_measure::{Error, Result, Watcher};

/// Options of `haul bench files`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// The options of every benchmark of servers.
    #[command(flatten)]
    pub net: NetOptions,
    /// Parts to measure: hot, close, tls, cold, latency
    ///
    /// hot: CPU time of the server per request for files in memory, over persistent connections.
    /// close: the same with a new connection for each request. tls: the same as hot over TLS 1.3.
    /// cold: CPU time per GB for big files that are not in memory, and the part of them that is in
    /// the page cache afterwards. latency: latency of hot files, alone and during downloads of cold
    /// files, with the memory of --memory; needs root and the memory cgroup.
    #[arg(long = "only", value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "hot,cold,latency")]
    pub parts: Vec<Part>,
    /// Sizes of hot files, 1 B to 16MiB; each size is measured separately
    #[arg(long = "sizes", value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "1KiB,4KiB,16KiB,1MiB")]
    #[arg(value_parser = size_in(1..=16 << 20, "a size from 1 B to 16MiB"))]
    pub hot_bytes: Vec<u64>,
    /// Number of hot files of each size, at most 64 MiB of them
    #[arg(long = "files", value_name = "N", default_value = "1000")]
    #[arg(value_parser = count(1..=20_000))]
    pub hot_files: usize,
    /// Numbers of connections that request hot files; each is measured separately
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "64")]
    #[arg(value_parser = count(1..=1000))]
    pub connections: Vec<usize>,
    /// Size of each big file, 1MiB to 1TiB
    #[arg(long = "big", value_name = "SIZE", default_value = "256MiB")]
    #[arg(value_parser = size_in(1 << 20..=1 << 40, "a size from 1MiB to 1TiB"))]
    pub big_bytes: u64,
    /// Number of big files; the part cold uses four of them
    #[arg(long, value_name = "N", default_value = "16", value_parser = count(1..=10_000))]
    pub big_files: usize,
    /// Memory of a server during the part latency, including the page cache
    #[arg(long = "memory", value_name = "SIZE", default_value = "256MiB")]
    #[arg(value_parser = size_in(32 << 20..=1 << 44, "a size of at least 32MiB, which a server needs"))]
    pub memory_bytes: u64,
}

named! {
    /// A part of the benchmark.
    pub enum Part {
        /// Files in memory, over persistent connections.
        Hot = "hot",
        /// Files in memory, with a connection for each request.
        Close = "close",
        /// Files in memory, over TLS.
        Tls = "tls",
        /// Downloads of big files that are not in memory.
        Cold = "cold",
        /// The latency of hot files, alone and during downloads of cold ones.
        Latency = "latency",
    }
}

/// The maximum total size of the hot files of one size.
const HOT_BYTES_MAX: u64 = 64 << 20;
/// The number of clients that download big files.
const DOWNLOADS: usize = 2;
/// The maximum number of big files in the part cold.
const COLD_FILES_MAX: usize = 4;
/// The size in bytes of the files whose latency is measured, and the pause of each connection
/// before it requests one. The pauses leave most of the server's time to the downloads.
const QUICK_BYTES: u64 = 16 << 10;
const QUICK_PAUSE: Duration = Duration::from_millis(20);

static GO: Program = Program::go(include_str!("serve.go"));

static COPY: Rival = Rival::new(&HAUL, "haul", "--cold copy", |at| haul(at, "copy"));
static SPLICE: Rival = Rival::new(&HAUL, "haul_splice", "--cold splice", |at| haul(at, "splice"));
static HAUL_TLS: Rival =
    Rival::new(&HAUL, "haul_tls", "TLS", |at| Ok(with_tls(haul(at, "copy")?, at)));
static NGINX_SENDFILE: Rival = Rival::new(&NGINX, "nginx_sendfile", "sendfile, tcp_nopush", |at| {
    file_server(at, false, SENDFILE)
});
static NGINX_THREADS: Rival =
    Rival::new(&NGINX, "nginx_aio_threads", "sendfile, aio threads", |at| {
        file_server(at, false, "sendfile on;\ntcp_nopush on;\naio threads;\n")
    });
static NGINX_DIRECT: Rival =
    Rival::new(&NGINX, "nginx_directio", "directio 1m, aio threads", |at| {
        let direct = "sendfile on;\naio threads;\ndirectio 1m;\noutput_buffers 4 1m;\n";
        file_server(at, false, direct)
    });
static NGINX_TLS: Rival = Rival::new(&NGINX, "nginx_tls", "sendfile, tcp_nopush, TLS", |at| {
    file_server(at, true, SENDFILE)
});
static GO_FILES: Rival = Rival::new(&GO, "go", "http.ServeFile, GOMAXPROCS=1", |at| {
    let mut command = Command::new(at.program);
    command.arg(at.address.to_string()).arg(at.site).env("GOMAXPROCS", "1");
    Ok(command)
});

static HOT_RIVALS: [&Rival; 3] = [&COPY, &NGINX_SENDFILE, &GO_FILES];
static TLS_RIVALS: [&Rival; 2] = [&HAUL_TLS, &NGINX_TLS];
static COLD_RIVALS: [&Rival; 6] =
    [&COPY, &SPLICE, &NGINX_SENDFILE, &NGINX_THREADS, &NGINX_DIRECT, &GO_FILES];

fn haul(at: &Start<'_>, cold: &str) -> Result<Command> {
    let mut command = files_command(at);
    command.args(["--cold", cold]);
    Ok(command)
}

impl Benchmark for Options {
    const NAME: &'static str = "files";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let rivals = [&COLD_RIVALS[..], &TLS_RIVALS].concat();
        let mut bench = Bench::new(Self::NAME, &self.net, &rivals, watcher)?;
        let wanted = |part: Part| self.parts.contains(&part);
        if wanted(Part::Tls) {
            let issued = Authority::new().issue(&["localhost"]);
            bench.tools.tls = Some(issued.write(bench.tools.scratch.path(), "site"));
        }
        for bytes in self.hot_bytes.iter().copied() {
            if [Part::Hot, Part::Close, Part::Tls].into_iter().any(wanted) {
                hot(&mut bench, self, bytes)?;
            }
        }
        if wanted(Part::Cold) || wanted(Part::Latency) {
            let root = bench.tools.site.clone();
            let big = Files::create(&root, "big", self.big_files, self.big_bytes, watcher)?;
            if wanted(Part::Cold) {
                cold(&mut bench, &big.first(COLD_FILES_MAX))?;
            }
            if wanted(Part::Latency) {
                latency(&mut bench, self, &big)?;
            }
        }
        Ok(bench.report)
    }
}

fn hot(bench: &mut Bench<'_>, options: &Options, bytes: u64) -> Result<()> {
    let number = usize::try_from(HOT_BYTES_MAX / bytes).unwrap_or(usize::MAX);
    let number = number.min(options.hot_files);
    let (root, watcher) = (bench.tools.site.clone(), bench.tools.watcher);
    let files = Files::create(&root, &format!("hot-{bytes}"), number, bytes, watcher)?;
    let requests = files.requests();
    let all =
        options.connections.iter().flat_map(|it| options.parts.iter().map(move |p| (*it, *p)));
    for (connections, part) in all {
        let (rivals, table): (&[&'static Rival], _) = match part {
            Part::Hot => (&HOT_RIVALS, "files in memory"),
            Part::Close => (&HOT_RIVALS, "files in memory, a connection for each request"),
            Part::Tls => (&TLS_RIVALS, "files in memory, over TLS"),
            Part::Cold | Part::Latency => continue,
        };
        let (is_tls, close) = (part == Part::Tls, part == Part::Close);
        let load = Load { tls: is_tls, close, ..Load::new(&requests, connections, bytes) };
        let name = short(bytes);
        let case = Case {
            table,
            load: format!("{name} x {connections}, {part}"),
            key: format!("{part}_{name}_x{connections}"),
            figures: &[CPU, RATE],
            rivals,
        };
        let prepare = |tools: &Tools<'_>, one: &mut Contender| {
            files.load()?;
            let server = one.server(tools)?;
            // The client compares bytes without TLS only; wrk checks their number.
            if is_tls { Ok(()) } else { files.compare(server.address) }?;
            tools.load(server, &load).map(drop)
        };
        bench.run(&case, prepare, |tools, one| tools.load(one.server(tools)?, &load))?;
    }
    Ok(())
}

/// Downloads each file once, from servers that were just started: a server that counts requests
/// would otherwise treat a file as hot in the next round.
fn cold(bench: &mut Bench<'_>, big: &Files) -> Result<()> {
    let case = Case {
        table: "big files that are not in memory",
        load: "cold".to_owned(),
        key: "cold".to_owned(),
        figures: &[CPU_PER_GB, TRANSFER_RATE, CACHE],
        rivals: &COLD_RIVALS,
    };
    let measure = |tools: &Tools<'_>, one: &mut Contender| {
        big.evict(tools.cores)?;
        let server = one.restart(tools)?;
        let (before, start) = (server.meter.usage(), Instant::now());
        let next = AtomicUsize::new(0);
        let bytes = download(server, big, || next.fetch_add(1, Ordering::Relaxed))?;
        let (wall, used) = (start.elapsed(), before.until(&server.meter.usage()));
        let cached_percent = Some(big.cached_percent()?);
        Ok(Sample { wall, bytes, used, cached_percent, ..Sample::default() })
    };
    bench.run(&case, |tools, one| big.compare(one.server(tools)?.address), measure)?;
    bench.stop_servers();
    Ok(())
}

/// Downloads the files whose indexes `next` returns with [`DOWNLOADS`] clients, until an index has no
/// file. Returns the number of bytes.
fn download(server: &Server, files: &Files, next: impl Fn() -> usize + Sync) -> Result<u64> {
    let client = || -> Result<u64> {
        let mut bytes = 0;
        while let Some(name) = files.names.get(next()) {
            let received = Request::get(server.address, &format!("/{name}")).download(None)?;
            if received != files.bytes {
                return Err(Error::Missing(format!("{name} has {received} bytes")));
            }
            bytes += received;
        }
        Ok(bytes)
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..DOWNLOADS).map(|_| scope.spawn(client)).collect();
        clients.into_iter().map(joined).sum()
    })
}

/// Measures the latency of hot files with little memory, first without downloads, then during
/// downloads. Each measurement starts a new server.
fn latency(bench: &mut Bench<'_>, options: &Options, big: &Files) -> Result<()> {
    if let Err(Error::Missing(why)) = MemoryLimit::new(options.memory_bytes) {
        bench.report.notes.push(format!("Latency during downloads was not measured: {why}."));
        return Ok(());
    }
    bench.stop_servers();
    let number = usize::try_from(options.memory_bytes / 4 / QUICK_BYTES).unwrap_or(1).max(1);
    let (root, watcher) = (bench.tools.site.clone(), bench.tools.watcher);
    let quick = Files::create(&root, "quick", number, QUICK_BYTES, watcher)?;
    let (requests, connections) = (quick.requests(), options.connections[0]);
    let load = Load { pause: QUICK_PAUSE, ..Load::new(&requests, connections, QUICK_BYTES) };
    for during_downloads in [false, true] {
        let beside_downloads = |tools: &Tools<'_>, server: &Server| {
            let (over, next) = (AtomicBool::new(false), AtomicUsize::new(0));
            let next = || match over.load(Ordering::Relaxed) {
                true => usize::MAX,
                false => next.fetch_add(1, Ordering::Relaxed) % big.names.len(),
            };
            thread::scope(|scope| {
                let downloads = scope.spawn(|| download(server, big, next));
                let sample = tools.load(server, &load);
                over.store(true, Ordering::Relaxed);
                let bytes = joined(downloads)?;
                // The CPU time belongs to both, and requests are few.
                Ok(Sample { bytes, used: Used::default(), ..sample? })
            })
        };
        let measure = |tools: &Tools<'_>, one: &mut Contender| {
            quick.evict(tools.cores)?;
            big.evict(tools.cores)?;
            let limit = MemoryLimit::new(options.memory_bytes)?;
            let server = one.server(tools)?;
            // Each file is requested twice, so that a server that counts requests treats it as hot.
            quick.compare(server.address)?;
            quick.compare(server.address)?;
            let sample = match during_downloads {
                true => beside_downloads(tools, server),
                false => tools.load(server, &load),
            };
            // A cgroup can be removed only after its processes have ended.
            one.stop();
            drop(limit);
            sample
        };
        let (load, key) = match during_downloads {
            true => ("beside downloads".to_owned(), "hot_during_cold".to_owned()),
            false => ("at rest".to_owned(), "hot_at_rest".to_owned()),
        };
        let (table, figures, rivals) = ("hot files, with little memory", &[P99], &COLD_RIVALS);
        bench.run(&Case { table, load, key, figures, rivals }, |_, _| Ok(()), measure)?;
    }
    fs::remove_dir_all(root.join("quick")).map_err(Error::other("remove the hot files"))
}
