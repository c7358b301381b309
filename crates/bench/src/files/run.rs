//! Measures the servers under one workload after the other.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::options::{Options, Part};
use super::servers::Servers;
use super::workload::{Load, takes_part};
use crate::contest::Stage;
use crate::memory_limit::MemoryLimit;
use crate::net::comparison::{Comparison, Variant};
use crate::net::http::client::{Client, Schedule, random};
use crate::net::http::site::{Pages, Site};
use crate::net::sample::{Extent, Sample};
use crate::net::server::Server;
use haul_measure::{Error, Result, Watcher};

/// The number of connections that download big files.
const DOWNLOADS: usize = 2;
/// The maximum number of big files downloaded in one measurement of the CPU time.
const DOWNLOADED_MAX: usize = 4;
/// The sizes in bytes of the files of the matrix, the maximal total of the files of one size, and
/// the numbers of connections.
const MATRIX_BYTES: [u64; 7] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 8 << 20];
const MATRIX_TOTAL_BYTES: u64 = 64 << 20;
const MATRIX_CONNECTIONS: [usize; 3] = [1, 64, 1000];
/// The sizes in bytes of the files that are sent over TLS.
const TLS_BYTES: [u64; 2] = [4 << 10, 1 << 20];
/// The size in bytes of the files whose latency is measured.
const SHORT_BYTES: u64 = 16 << 10;
/// The request rate at which latency is measured, as a fraction of the rate that the slowest server
/// can handle.
const RATE: f64 = 0.3;

/// The benchmark of file servers: its inputs, and its results so far.
pub(super) struct Bench<'a> {
    pub(super) comparison: Comparison<Load>,
    /// The workloads measured so far.
    pub(super) workloads: Vec<Load>,
    tools: Tools<'a>,
}

/// The options, the files and the installed servers: the inputs of every measurement.
struct Tools<'a> {
    options: &'a Options,
    watcher: &'a dyn Watcher,
    servers: &'a Servers,
    site: Site,
    hot: Vec<(u64, Pages)>,
    matrix: Vec<(u64, Pages)>,
    tls: Vec<(u64, Pages)>,
    short: Pages,
    big: Pages,
    dir: PathBuf,
    started: usize,
}

impl<'a> Bench<'a> {
    /// Creates the files that the selected parts need.
    pub(super) fn new(
        options: &'a Options,
        watcher: &'a dyn Watcher,
        servers: &'a Servers,
        comparison: Comparison<Load>,
        dir: &Path,
    ) -> Result<Self> {
        let wanted = |part: Part| options.parts.contains(&part);
        watcher.step(0, 1, "creating the files");
        let mut site = Site::new(&servers.root, servers.cores);
        let mut hot = Vec::new();
        for bytes in options.hot_bytes.iter().copied().filter(|_| wanted(Part::Hot)) {
            let pages = site.add(&format!("hot-{bytes}"), options.hot_files, bytes, watcher)?;
            hot.push((bytes, pages));
        }
        let mut add = |name, all: &[u64], is_wanted: bool| {
            let add = |bytes: &u64| {
                let count = usize::try_from(MATRIX_TOTAL_BYTES / bytes).unwrap_or(usize::MAX);
                let count = count.min(options.hot_files);
                Ok((*bytes, site.add(&format!("{name}-{bytes}"), count, *bytes, watcher)?))
            };
            all.iter().filter(|_| is_wanted).map(add).collect::<Result<Vec<_>>>()
        };
        let matrix = add("matrix", &MATRIX_BYTES, wanted(Part::Matrix))?;
        let tls = add("tls", &TLS_BYTES, wanted(Part::Tls))?;
        let short = usize::try_from(options.memory_bytes / 4 / SHORT_BYTES).unwrap_or(1).max(1);
        let short = if wanted(Part::Latency) { short } else { 0 };
        let short = site.add("quick", short, SHORT_BYTES, watcher)?;
        let big = [Part::Warm, Part::Cold, Part::Latency].into_iter().any(wanted);
        let big = if big { options.big_files } else { 0 };
        let big = site.add("big", big, options.big_bytes, watcher)?;
        let dir = dir.to_path_buf();
        let tools = Tools {
            options,
            watcher,
            servers,
            site,
            hot,
            matrix,
            tls,
            short,
            big,
            dir,
            started: 0,
        };
        Ok(Self { comparison, workloads: Vec::new(), tools })
    }

    /// Measures the selected parts. `notes` receives the rate at which latency was measured, or the
    /// reason why latency could not be measured.
    pub(super) fn run(&mut self, notes: &mut Vec<String>) -> Result<()> {
        let Self { comparison, tools, .. } = self;
        comparison.for_each(|one| {
            one.server = Some(tools.start(one.variant)?);
            Ok(())
        })?;
        let wanted = |part: Part| tools.options.parts.contains(&part);
        let (warm, cold, latency) = (wanted(Part::Warm), wanted(Part::Cold), wanted(Part::Latency));
        let mut loads: Vec<_> = tools.hot.iter().map(|(bytes, _)| Load::Hot(*bytes)).collect();
        loads.extend(tools.matrix.iter().flat_map(|(bytes, _)| matrix(*bytes)));
        loads.extend(tools.tls.iter().map(|(bytes, _)| Load::Tls(*bytes)));
        loads.extend(warm.then_some(Load::Warm));
        loads.extend(cold.then_some(Load::Cold));
        for load in loads {
            self.measure_throughput(load)?;
        }
        self.comparison.contenders.iter_mut().for_each(|one| one.server = None);
        if !latency {
            return Ok(());
        }
        match MemoryLimit::new(self.tools.options.memory_bytes).map(drop) {
            Ok(()) => self.measure_latency(notes),
            Err(Error::Missing(why)) => {
                notes.push(format!("Latency during downloads was not measured: {why}."));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Measures hot, warm or cold files. Before the first round, each server sends every page (a
    /// served file) once, and all bytes are compared.
    fn measure_throughput(&mut self, load: Load) -> Result<()> {
        let Self { comparison, tools, .. } = self;
        comparison.for_each(|one| match one.server() {
            Ok(server) if takes_part(one.variant, load) => {
                tools.download(load, one.variant, server, true).map(drop)
            }
            _ => Ok(()),
        })?;
        let stage = Stage::only(tools.options.rounds, tools.watcher);
        comparison.run(
            load,
            &stage,
            |variant| takes_part(variant, load),
            |one| {
                let server = one.server()?;
                match load {
                    Load::Hot(_) | Load::Matrix { .. } | Load::Tls(_) => tools.closed(load, server),
                    _ => tools.download(load, one.variant, server, false),
                }
            },
        )?;
        self.workloads.push(load);
        Ok(())
    }

    /// Measures the latency of hot files at a fixed rate and with little memory, first without
    /// downloads, then during downloads. Each measurement starts a new server, which has no state
    /// from earlier requests.
    fn measure_latency(&mut self, notes: &mut Vec<String>) -> Result<()> {
        let Self { comparison, tools, .. } = self;
        let selected = |variant: &Variant| takes_part(variant, Load::DuringDownloads);
        let rates = comparison.for_each(|one| match selected(one.variant) {
            true => tools.capacity(one.variant),
            false => Ok(f64::INFINITY),
        })?;
        let per_second = RATE * rates.into_iter().fold(f64::INFINITY, f64::min);
        if !per_second.is_finite() {
            return Ok(());
        }
        notes.push(format!("Latency was measured at {per_second:.0} requests per second."));
        for (number, load) in [Load::AtRest, Load::DuringDownloads].into_iter().enumerate() {
            let Tools { options, watcher, .. } = *tools;
            let stage = Stage { name: "", number, of: 2, rounds: options.rounds, watcher };
            comparison.run(load, &stage, selected, |one| {
                tools.latency(one.variant, per_second, load == Load::DuringDownloads)
            })?;
            self.workloads.push(load);
        }
        Ok(())
    }
}

/// Returns the workloads of the matrix with files of `bytes` bytes.
fn matrix(bytes: u64) -> impl Iterator<Item = Load> {
    [true, false].into_iter().flat_map(move |keep_alive| {
        MATRIX_CONNECTIONS.into_iter().map(move |connections| Load::Matrix {
            bytes,
            connections,
            keep_alive,
        })
    })
}

impl Tools<'_> {
    fn start(&mut self, variant: &Variant) -> Result<Server> {
        self.started += 1;
        let dir = self.dir.join(format!("server-{}", self.started));
        fs::create_dir(&dir).map_err(Error::other(format!("create {}", dir.display())))?;
        self.servers.start(variant, &dir)
    }

    fn client(&self, load: Load, server: &Server, connections: usize) -> Result<Client<'_>> {
        let tls = self.servers.tls.as_ref().filter(|_| matches!(load, Load::Tls(_)));
        let tls = tls.map(|tls| &tls.client);
        Client::new(&self.site, self.watcher, server.address, connections, tls)
    }

    fn pages(&self, load: Load) -> Pages {
        let of = |all: &[(u64, Pages)], bytes| {
            all.iter().find(|one| one.0 == bytes).map(|one| one.1.clone()).unwrap_or_default()
        };
        match load {
            Load::Hot(bytes) => of(&self.hot, bytes),
            Load::Matrix { bytes, .. } => of(&self.matrix, bytes),
            Load::Tls(bytes) => of(&self.tls, bytes),
            Load::Warm | Load::Cold => {
                self.big.start..self.big.end.min(self.big.start + DOWNLOADED_MAX)
            }
            Load::AtRest | Load::DuringDownloads => self.short.clone(),
        }
    }

    /// Fetches random pages as fast as possible.
    fn closed(&self, load: Load, server: &Server) -> Result<Sample> {
        let time = self.options.time;
        let extent = Extent::Time { settle: time / 10, measure: time };
        let (connections, keep_alive) = match load {
            Load::Matrix { connections, keep_alive, .. } => (connections, keep_alive),
            _ => (self.options.connections, true),
        };
        let mut client = self.client(load, server, connections)?;
        client.keep_alive = keep_alive;
        let sample = client.fetch(random(&self.pages(load), 1), extent, server.meter)?;
        Ok(Sample { bytes: 0, ..sample })
    }

    /// Fetches each page of `load` once. Cold pages come from a newly started server: a server that
    /// counts requests per file would otherwise treat the pages as hot in the next round.
    fn download(
        &mut self,
        load: Load,
        variant: &Variant,
        server: &Server,
        compare_all: bool,
    ) -> Result<Sample> {
        let restarted = if load == Load::Cold { Some(self.start(variant)?) } else { None };
        let server = restarted.as_ref().unwrap_or(server);
        let pages = self.pages(load);
        if load == Load::Cold {
            self.site.evict(&pages)?
        } else {
            self.site.load(&pages)?
        }
        let mut client = self.client(load, server, DOWNLOADS)?;
        client.compare_all = compare_all;
        let sample = client.fetch_once(&pages, server.meter)?;
        let cached_bytes = Some(self.site.resident_bytes(&pages)?);
        Ok(Sample { requests: 0, cached_bytes, ..sample })
    }

    /// Returns the number of requests per second for hot files that a server can handle, after
    /// comparing all bytes of these files and of one big file.
    fn capacity(&mut self, variant: &Variant) -> Result<f64> {
        let server = self.start(variant)?;
        let mut client = self.client(Load::AtRest, &server, self.options.connections)?;
        client.compare_all = true;
        client.fetch_once(&self.short, server.meter)?;
        let first = self.big.start..self.big.end.min(self.big.start + 1);
        client.fetch_once(&first, server.meter)?;
        client.compare_all = false;
        let extent = Extent::Time { settle: Duration::ZERO, measure: self.options.time / 2 };
        let sample = client.fetch(random(&self.short, 1), extent, server.meter)?;
        Ok(sample.per_second().unwrap_or_default())
    }

    fn latency(&mut self, variant: &Variant, rate: f64, with_downloads: bool) -> Result<Sample> {
        self.site.evict(&(0..self.site.pages.len()))?;
        let _limit = MemoryLimit::new(self.options.memory_bytes)?;
        let server = self.start(variant)?;
        let downloads = if with_downloads { DOWNLOADS } else { 0 };
        let mut client =
            self.client(Load::AtRest, &server, self.options.connections + downloads)?;
        // Fetches the files twice, so that a server that counts requests treats them as hot.
        for _ in 0..2 {
            client.fetch_once(&self.short, server.meter)?;
        }
        let schedule = Schedule::new(rate, 2 * self.options.time);
        client.fetch_at_rate(schedule, &self.short, (&self.big, downloads), server.meter)
    }
}
