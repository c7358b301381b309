//! Measures the relays under one workload after the other.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::bulk::{bulk, ring};
use super::costs::{costs, costs_ratios, costs_row};
use super::exchange::{Ends, Exchanges};
use super::options::Options;
use super::relays::Relays;
use super::workload::Load;
use crate::contest::Stage;
use crate::net::comparison::Comparison;
use crate::net::sample::Extent;
use crate::net::usage::Meter;
use crate::report::Report;
use haul_measure::{Error, Result, Watcher};

/// The running relays, the backend, and the results.
pub(super) struct Bench<'a> {
    pub(super) comparison: Comparison<Load>,
    options: &'a Options,
    watcher: &'a dyn Watcher,
    backend: TcpListener,
    ring: OwnedFd,
    dir: PathBuf,
}

impl<'a> Bench<'a> {
    /// Starts all relays. Each relay runs until the end of the benchmark, and is idle while another
    /// relay is measured.
    pub(super) fn new(
        options: &'a Options,
        watcher: &'a dyn Watcher,
        relays: &Relays,
        mut comparison: Comparison<Load>,
        dir: &Path,
    ) -> Result<Self> {
        let what = || "listen on 127.0.0.1".to_owned();
        let backend = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::other(what()))?;
        backend.set_nonblocking(true).map_err(Error::other(what()))?;
        let to = backend.local_addr().map_err(Error::other(what()))?;
        // Enlarges the accept queue: the length that the standard library sets is too short for
        // hundreds of simultaneous connections.
        rustix::net::listen(&backend, 4096).map_err(Error::other(what()))?;
        let mut number = 0;
        comparison.for_each(|one| {
            number += 1;
            let dir = dir.join(format!("relay-{number}"));
            fs::create_dir(&dir).map_err(Error::other(format!("create {}", dir.display())))?;
            one.server = Some(relays.start(one.variant, to, &dir)?);
            Ok(())
        })?;
        let (ring, dir) = (ring()?, dir.to_path_buf());
        Ok(Self { comparison, options, watcher, backend, ring, dir })
    }

    /// Measures one workload with all relays.
    pub(super) fn measure(&mut self, load: Load) -> Result<()> {
        let Self { comparison, options, watcher, backend, ring, .. } = self;
        let extent = Extent::Time { settle: options.time / 5, measure: options.time };
        let stage = Stage::only(options.rounds, *watcher);
        comparison.run(
            load,
            &stage,
            |_| true,
            |one| {
                let server = one.server()?;
                let ends = Ends { relay: server.address, backend, watcher: *watcher };
                let exchange = load.exchange();
                // A relay that forks keeps the process of a persistent connection for the whole
                // measurement, so the CPU time of its processes is known.
                let persistent = exchange.is_none_or(|exchange| exchange.persistent);
                let meter = Meter { forks: one.variant.forks && !persistent, ..server.meter };
                match (load, exchange) {
                    (_, Some(exchange)) => Exchanges::new(ends, exchange)?.run(extent, meter),
                    (Load::Bulk { flows }, None) => bulk(ends, ring, flows, extent, meter),
                    (_, None) => Err(Error::Missing("no such workload".to_owned())),
                }
            },
        )
    }

    /// Counts the pipes and descriptors of a connection through each relay.
    pub(super) fn measure_costs(&mut self, report: &mut Report) -> Result<()> {
        let Self { comparison, options, watcher, backend, dir, .. } = self;
        let of = comparison.contenders.len();
        let mut number = 0;
        let found = comparison.for_each(|one| {
            watcher.check()?;
            watcher.step(number, of, &format!("pipes: {}", one.variant.program));
            number += 1;
            let server = one.server()?;
            let ends = Ends { relay: server.address, backend, watcher: *watcher };
            Ok((one.variant, costs(ends, server, &options.path, dir)?))
        })?;
        for one in &comparison.contenders {
            let costs = found.iter().find(|found| found.0 == one.variant).map(|found| found.1);
            report.ratios.extend(costs.into_iter().flat_map(|c| costs_ratios(one.variant, c)));
            let failure = || one.failure.clone().unwrap_or_default();
            report.rows.push(costs_row(one.variant, costs.ok_or_else(failure)));
        }
        Ok(())
    }
}
