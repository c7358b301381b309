//! Carrying it out: relays take turns, one kind of traffic after the other.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::Options;
use super::bulk::{bulk, ring};
use super::contender::{Relays, Way};
use super::exchange::{Ends, Talk, Until};
use super::pipes::{Costs, costs};
use super::rows::Line;
use super::traffic::Traffic;
use crate::error::{Error, Result};
use crate::net::contest::{first_again, told};
use crate::net::sample::Sample;
use crate::net::server::Server;
use crate::net::usage::Meter;
use crate::rounds::turns;
use crate::watch::Watcher;

/// Everything a measurement needs.
pub(super) struct Bench<'a> {
    options: &'a Options,
    watcher: &'a dyn Watcher,
    contenders: Vec<Contender>,
    backend: TcpListener,
    ring: OwnedFd,
    dir: PathBuf,
}

/// A relay in a row of turns.
struct Contender {
    way: Way,
    server: Option<Server>,
    /// Why it is not measured, or not any longer.
    not: Option<String>,
}

impl<'a> Bench<'a> {
    /// Starts all relays: they are there until the end, and idle while others are measured.
    pub(super) fn new(
        options: &'a Options,
        watcher: &'a dyn Watcher,
        relays: &Relays,
        dir: &Path,
    ) -> Result<Self> {
        let what = || "listen on 127.0.0.1".to_owned();
        let backend = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::other(what()))?;
        backend.set_nonblocking(true).map_err(Error::other(what()))?;
        let to = backend.local_addr().map_err(Error::other(what()))?;
        // The standard library's backlog is short for what hundreds of connections want at once.
        rustix::net::listen(&backend, 4096).map_err(Error::other(what()))?;
        let mut contenders = Vec::new();
        for (number, way) in relays.ways().into_iter().enumerate() {
            let dir = dir.join(format!("relay-{number}"));
            fs::create_dir(&dir).map_err(Error::other(format!("make {}", dir.display())))?;
            let mut not = None;
            let server = told(relays.start(way, to, &dir), way.is_ours(), &mut not)?;
            contenders.push(Contender { way, server, not });
        }
        let (ring, dir) = (ring()?, dir.to_path_buf());
        Ok(Self { options, watcher, contenders, backend, ring, dir })
    }

    /// One kind of traffic through all of them, the first of them twice.
    pub(super) fn traffic(&mut self, traffic: Traffic) -> Result<Vec<Line>> {
        let who = first_again(0..self.contenders.len());
        let line =
            |&(which, again): &(usize, bool)| Line::new(traffic, self.contenders[which].way, again);
        let mut lines: Vec<_> = who.iter().map(line).collect();
        for turn in turns(self.options.rounds, who.len()) {
            self.watcher.check()?;
            let Contender { way, server, not } = &self.contenders[who[turn.which].0];
            let Some(server) = server.as_ref().filter(|_| not.is_none()) else { continue };
            let name = way.family.program();
            let what = format!("{}: {name}, {}", traffic.name(), way.setting);
            self.watcher.step(turn.done, turn.of, &what);
            let sample = self.one(traffic, server, *way);
            let contender = &mut self.contenders[who[turn.which].0];
            let sample = told(sample, contender.way.is_ours(), &mut contender.not)?;
            lines[turn.which].samples.0.extend(sample);
        }
        for (line, (which, _)) in lines.iter_mut().zip(who) {
            line.not.clone_from(&self.contenders[which].not);
        }
        Ok(lines)
    }

    fn ends(&self, server: &Server) -> Ends<'_> {
        Ends { relay: server.address, backend: &self.backend, watcher: self.watcher }
    }

    fn one(&self, traffic: Traffic, server: &Server, way: Way) -> Result<Sample> {
        let (ends, load) = (self.ends(server), self.options.load());
        // Processes of connections that are kept are there from beginning to end.
        let kept = traffic.exchange().is_none_or(|exchange| exchange.kept);
        let meter = Meter { forks: way.forks && !kept, ..server.meter };
        match (traffic, traffic.exchange()) {
            (Traffic::Bulk { flows }, _) => bulk(ends, &self.ring, flows, load, meter),
            (_, Some(exchange)) => Talk::new(ends, exchange)?.run(Until::Time(load), meter),
            (_, None) => Ok(Sample::default()),
        }
    }

    /// What a connection costs each of them besides time.
    pub(super) fn costs(&mut self) -> Result<Vec<(Way, Result<Costs, String>)>> {
        let mut all = Vec::new();
        for at in 0..self.contenders.len() {
            self.watcher.check()?;
            let contender = &self.contenders[at];
            let (way, of) = (contender.way, self.contenders.len());
            self.watcher.step(at, of, &format!("pipes: {}", way.family.program()));
            let counted = match (&contender.server, &contender.not) {
                (Some(server), None) => {
                    costs(self.ends(server), server, &self.options.path, &self.dir)
                }
                (_, why) => Err(Error::Missing(why.clone().unwrap_or_default())),
            };
            let mut not = None;
            let counted = told(counted, way.is_ours(), &mut not)?;
            all.push((way, counted.ok_or_else(|| not.unwrap_or_default())));
        }
        Ok(all)
    }
}
