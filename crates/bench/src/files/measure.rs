//! Carrying it out: servers take turns, claim by claim.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::client::Client;
use super::connection::Lengths;
use super::contender::{Servers, Way};
use super::rows::Line;
use super::site::{Pages, Site};
use super::{Claim, Options, Part};
use crate::error::{Error, Result};
use crate::memory_limit::MemoryLimit;
use crate::net::contest::{first_again, told};
use crate::net::sample::Sample;
use crate::net::server::Server;
use crate::net::window::Load;
use crate::rounds::turns;
use crate::watch::Watcher;

/// How many download big files at a time.
const DOWNLOADS: usize = 2;
/// How many big files are downloaded for CPU.
const DOWNLOADED_MAX: usize = 4;
/// The length of the files whose latency is measured.
const QUICK_BYTES: u64 = 16 << 10;
/// Of the rate the slowest can, how much is asked for.
const RATE: f64 = 0.3;

/// Everything a measurement needs.
pub(super) struct Bench<'a> {
    options: &'a Options,
    watcher: &'a dyn Watcher,
    servers: Servers,
    site: Site,
    hot: Vec<(u64, Pages)>,
    quick: Pages,
    big: Pages,
    dir: PathBuf,
    started: usize,
    pub(super) notes: Vec<String>,
}

/// A server in a row of turns.
struct Contender {
    way: Way,
    server: Option<Server>,
    lengths: Lengths,
    /// Why it is not measured.
    not: Option<String>,
}

impl Contender {
    fn told<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        told(result, self.way.is_ours(), &mut self.not)
    }
}

impl<'a> Bench<'a> {
    /// Makes the files.
    pub(super) fn new(
        options: &'a Options,
        watcher: &'a dyn Watcher,
        servers: Servers,
        dir: &Path,
    ) -> Result<Self> {
        let wanted = |part: Part| options.parts.contains(&part);
        watcher.step(0, 1, "making the files");
        fs::create_dir(&servers.root)
            .map_err(Error::other(format!("make {}", servers.root.display())))?;
        let mut site = Site::new(&servers.root, servers.cores);
        let mut hot = Vec::new();
        for bytes in options.hot_bytes.iter().filter(|_| wanted(Part::Hot)) {
            let pages = site.add(&format!("hot-{bytes}"), options.hot_files, *bytes, watcher)?;
            hot.push((*bytes, pages));
        }
        let quick = usize::try_from(options.memory_bytes / 4 / QUICK_BYTES).unwrap_or(1).max(1);
        let quick = if wanted(Part::Latency) { quick } else { 0 };
        let quick = site.add("quick", quick, QUICK_BYTES, watcher)?;
        let big = [Part::Warm, Part::Cold, Part::Latency].into_iter().any(wanted);
        let big = if big { options.big_files } else { 0 };
        let big = site.add("big", big, options.big_bytes, watcher)?;
        let (dir, notes) = (dir.to_path_buf(), Vec::new());
        Ok(Self { options, watcher, servers, site, hot, quick, big, dir, started: 0, notes })
    }

    /// All parts that are wanted.
    pub(super) fn all(&mut self) -> Result<Vec<Line>> {
        let mut contenders = self.contenders(true)?;
        let mut lines = Vec::new();
        let wanted = |part: Part| self.options.parts.contains(&part);
        let (warm, cold, latency) = (wanted(Part::Warm), wanted(Part::Cold), wanted(Part::Latency));
        let hot = self.hot.iter().map(|(bytes, _)| Claim::Hot(*bytes));
        let big = [(warm, Claim::Warm), (cold, Claim::Cold)];
        let claims: Vec<_> =
            hot.chain(big.into_iter().filter(|one| one.0).map(|one| one.1)).collect();
        for claim in claims {
            lines.extend(self.claim(claim, &mut contenders)?);
        }
        drop(contenders);
        if latency {
            match MemoryLimit::new(self.options.memory_bytes) {
                Ok(limit) => {
                    drop(limit);
                    lines.extend(self.latencies()?);
                }
                Err(Error::Missing(why)) => {
                    self.notes.push(format!("Not measured, latency beside downloads: {why}."));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(lines)
    }

    fn contenders(&mut self, start: bool) -> Result<Vec<Contender>> {
        let mut contenders = Vec::new();
        for way in self.servers.ways() {
            let lengths = Lengths::of(&self.site);
            let mut contender = Contender { way, server: None, lengths, not: None };
            if start {
                contender.server = contender.told(self.start(way))?;
            }
            contenders.push(contender);
        }
        Ok(contenders)
    }

    fn start(&mut self, way: Way) -> Result<Server> {
        self.started += 1;
        let dir = self.dir.join(format!("server-{}", self.started));
        fs::create_dir(&dir).map_err(Error::other(format!("make {}", dir.display())))?;
        let server = self.servers.start(way, &dir)?;
        server.ok_or_else(|| Error::Missing(format!("there is no {}", way.server())))
    }

    /// One claim by all who take part, the first of them twice.
    fn claim(&mut self, claim: Claim, contenders: &mut [Contender]) -> Result<Vec<Line>> {
        let who = first_again(
            (0..contenders.len()).filter(|which| contenders[*which].way.takes_part(claim)),
        );
        let line = |&(which, again): &(usize, bool)| Line::new(claim, contenders[which].way, again);
        let mut lines: Vec<_> = who.iter().map(line).collect();
        for (which, _) in &who {
            let contender = &mut contenders[*which];
            let prepared = self.prepare(claim, contender);
            contender.told(prepared)?;
        }
        for turn in turns(self.options.rounds, who.len()) {
            self.watcher.check()?;
            let contender = &mut contenders[who[turn.which].0];
            let what = format!("{}: {}", claim.name(), contender.way.setting());
            self.watcher.step(turn.done, turn.of, &what);
            if contender.not.is_none() {
                let sample = self.one(claim, contender);
                let sample = contender.told(sample)?;
                lines[turn.which].samples.0.extend(sample);
            }
        }
        for (line, (which, _)) in lines.iter_mut().zip(who) {
            line.not.clone_from(&contenders[which].not);
        }
        Ok(lines)
    }

    fn pages(&self, claim: Claim) -> Pages {
        match claim {
            Claim::Hot(bytes) => {
                let found = self.hot.iter().find(|(of, _)| *of == bytes);
                found.map_or(0..0, |(_, pages)| pages.clone())
            }
            Claim::Warm | Claim::Cold => {
                self.big.start..self.big.end.min(self.big.start + DOWNLOADED_MAX)
            }
            Claim::Rest | Claim::Beside => self.quick.clone(),
        }
    }

    /// Fetches all pages once as they will be, and compares every byte.
    fn prepare(&mut self, claim: Claim, contender: &mut Contender) -> Result<()> {
        if contender.not.is_some() {
            return Ok(());
        }
        self.downloaded(claim, contender, true).map(drop)
    }

    fn one(&mut self, claim: Claim, contender: &mut Contender) -> Result<Sample> {
        let (Claim::Hot(_), Some(server)) = (claim, &contender.server) else {
            let sample = self.downloaded(claim, contender, false)?;
            let cached_bytes = Some(self.site.in_memory(&self.pages(claim))?);
            return Ok(Sample { cached_bytes, ..sample });
        };
        let to = (server.address, &mut contender.lengths);
        let mut client = Client::new(&self.site, self.watcher, to, self.options.connections)?;
        client.closed(&self.pages(claim), self.options.load(), server.meter)
    }

    /// All pages of a claim once. Cold ones come from a server that was just started: whoever counts
    /// how often something is asked for would otherwise take them for hot in the next round.
    fn downloaded(
        &mut self,
        claim: Claim,
        contender: &mut Contender,
        compare_all: bool,
    ) -> Result<Sample> {
        let is_cold = claim == Claim::Cold;
        let fresh = if is_cold { Some(self.start(contender.way)?) } else { None };
        let Some(server) = fresh.as_ref().or(contender.server.as_ref()) else {
            return Err(Error::Missing("it does not run".to_owned()));
        };
        let pages = self.pages(claim);
        self.site.ready(is_cold, &pages)?;
        let to = (server.address, &mut contender.lengths);
        let mut client = Client::new(&self.site, self.watcher, to, DOWNLOADS)?;
        client.compare_all = compare_all;
        client.download(&pages, server.meter)
    }

    /// Hot files at a fixed rate with little memory, at rest and beside downloads: each time by a
    /// server that was just started, so that none knows what was asked for before.
    fn latencies(&mut self) -> Result<Vec<Line>> {
        let mut contenders = self.contenders(false)?;
        contenders.retain(|one| one.way.takes_part(Claim::Beside));
        let mut slowest = f64::INFINITY;
        for contender in &mut contenders {
            let rate = self.capacity(contender);
            let rate = contender.told(rate)?;
            slowest = rate.into_iter().fold(slowest, f64::min);
        }
        let per_second = slowest * RATE;
        if !per_second.is_finite() {
            return Ok(Vec::new());
        }
        self.notes.push(format!("Latency was measured at {per_second:.0} requests a second."));
        let who = first_again(0..contenders.len());
        let line = |claim| {
            let line =
                |&(which, again): &(usize, bool)| Line::new(claim, contenders[which].way, again);
            who.iter().map(line).collect::<Vec<_>>()
        };
        let (mut rest, mut beside) = (line(Claim::Rest), line(Claim::Beside));
        for turn in turns(self.options.rounds, who.len()) {
            self.watcher.check()?;
            let contender = &mut contenders[who[turn.which].0];
            let what = format!("latency: {}", contender.way.setting());
            self.watcher.step(turn.done, turn.of, &what);
            if contender.not.is_some() {
                continue;
            }
            let both = self.latency(contender, per_second);
            if let Some((at_rest, loaded)) = contender.told(both)? {
                rest[turn.which].samples.0.push(at_rest);
                beside[turn.which].samples.0.push(loaded);
            }
        }
        for (at, (which, _)) in who.into_iter().enumerate() {
            rest[at].not.clone_from(&contenders[which].not);
            beside[at].not.clone_from(&contenders[which].not);
        }
        rest.append(&mut beside);
        Ok(rest)
    }

    /// How many hot files a second it can.
    fn capacity(&mut self, contender: &mut Contender) -> Result<f64> {
        let server = self.start(contender.way)?;
        let to = (server.address, &mut contender.lengths);
        let connections = self.options.connections;
        let mut client = Client::new(&self.site, self.watcher, to, connections)?;
        client.compare_all = true;
        client.download(&self.quick, server.meter)?;
        client.download(&(self.big.start..self.big.end.min(self.big.start + 1)), server.meter)?;
        client.compare_all = false;
        let load = Load { settle: Duration::ZERO, measure: self.options.time / 2 };
        let sample = client.closed(&self.quick, load, server.meter)?;
        Ok(sample.per_second().unwrap_or_default())
    }

    fn latency(&mut self, contender: &mut Contender, rate: f64) -> Result<(Sample, Sample)> {
        let all = 0..self.site.pages.len();
        self.site.forget(&all)?;
        let _limit = MemoryLimit::new(self.options.memory_bytes)?;
        let server = self.start(contender.way)?;
        let connections = self.options.connections;
        let quick = self.quick.clone();
        let measured = |downloads: usize, lengths: &mut Lengths| -> Result<Sample> {
            let to = (server.address, lengths);
            let mut client = Client::new(&self.site, self.watcher, to, connections + downloads)?;
            // Twice, so that whoever counts how often something is asked for has seen it often.
            for _ in 0..2 {
                client.download(&quick, server.meter)?;
            }
            let before = server.meter.usage();
            let time = 2 * self.options.time;
            let opened = client.open(&quick, (rate, time), (&self.big, downloads))?;
            let used = before.until(&server.meter.usage());
            let (done, bytes) = (opened.latencies.count(), opened.downloaded);
            let (wall, latencies) = (opened.wall, opened.latencies);
            Ok(Sample { wall, done, bytes, used, latencies, cached_bytes: None })
        };
        let rest = measured(0, &mut contender.lengths)?;
        let beside = measured(DOWNLOADS, &mut contender.lengths)?;
        Ok((rest, beside))
    }
}
