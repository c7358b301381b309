//! Relaying TCP connections, beside the programs others use for it.
//!
//! Each relay has one core; clients and backend share another one and are ours, so that every
//! relay gets the same bytes. Relays take turns; the one that comes first is measured twice in
//! each round, which shows the noise. What is sent is counted at both ends, and one message of
//! many is compared byte by byte.

mod bulk;
mod contender;
mod exchange;
mod measure;
mod peer;
mod pipes;
mod rows;
mod traffic;

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::error::Result;
use crate::host::{Host, load};
use crate::net::congestion::Congestion;
use crate::net::cores::Pinned;
use crate::net::place::Place;
use crate::net::programs::ours;
use crate::net::window::Load;
use crate::report::Report;
use crate::watch::Watcher;
use contender::Relays;
use measure::Bench;
use rows::{BAR, COLUMNS, Line};
use traffic::Traffic;

/// What is measured, and how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where configurations and what relays say are kept meanwhile.
    pub dir: PathBuf,
    /// The program `haul`; without it ours is left out.
    pub program: Option<PathBuf>,
    /// Where rivals are looked for: directories as in `PATH`.
    pub path: OsString,
    /// The program that holds the relay of tokio, if it was built.
    pub compare: Option<PathBuf>,
    /// The rivals that are measured, by their programs' names; all that are there, by default.
    pub rivals: Option<Vec<String>>,
    /// Which parts.
    pub parts: Vec<Part>,
    /// Numbers of flows in bulk.
    pub flows: Vec<usize>,
    /// The lengths of messages.
    pub message_bytes: Vec<u64>,
    /// How often each is measured, in turn.
    pub rounds: usize,
    /// How long each is measured.
    pub time: Duration,
    /// What TCP's congestion control is set to meanwhile.
    pub congestion: Option<String>,
}

/// A part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// As many bytes as possible in one direction.
    Bulk,
    /// There and back, of many lengths, and two kinds of use.
    Messages,
    /// Connections that are short.
    Connections,
    /// Pipes and descriptors of a connection.
    Pipes,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Bulk, Self::Messages, Self::Connections, Self::Pipes];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Messages => "messages",
            Self::Connections => "connections",
            Self::Pipes => "pipes",
        }
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let found = Self::ALL.into_iter().find(|part| part.name() == text);
        found.ok_or_else(|| "it is bulk, messages, connections or pipes".to_owned())
    }
}

/// The rivals' names, as they are chosen by.
pub const RIVALS: [&str; 5] = ["haproxy", "nginx", "go", "socat", "tokio"];

impl Options {
    /// The defaults, with files in `dir`: some eight minutes with all rivals.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            program: None,
            path: OsString::new(),
            compare: None,
            rivals: None,
            parts: Part::ALL.to_vec(),
            flows: vec![1, 16],
            message_bytes: vec![64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20],
            rounds: 5,
            time: Duration::from_millis(400),
            congestion: None,
        }
    }

    fn load(&self) -> Load {
        Load { settle: self.time / 5, measure: self.time }
    }

    /// What goes through, row by row.
    fn traffic(&self) -> Vec<Traffic> {
        let wanted = |part: Part| self.parts.contains(&part);
        let bulk = self.flows.iter().map(|flows| Traffic::Bulk { flows: *flows });
        let messages = self.message_bytes.iter().map(|bytes| Traffic::Messages { bytes: *bytes });
        let messages = messages.chain([Traffic::Chat, Traffic::Files]);
        let connections = [0, 1 << 10].map(|bytes| Traffic::Connections { bytes });
        bulk.filter(|_| wanted(Part::Bulk))
            .chain(messages.filter(|_| wanted(Part::Messages)))
            .chain(connections.into_iter().filter(|_| wanted(Part::Connections)))
            .collect()
    }
}

/// Measures, and tells what came out. What it made is removed, and its relays are killed, however
/// it ends; files stay when the process is killed.
///
/// # Errors
/// [`crate::Error::Missing`] where there is only one core; when ours fails, or other bytes came
/// through a relay than were sent. A rival that cannot start is told in its rows.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let place = Place::new(&options.dir, "relay")?;
    let (cores, dir) = (place.cores, place.scratch.path());
    let mut report = Report::new("relay", Host::here(), COLUMNS, BAR);
    watcher.step(0, 1, "starting the relays");
    let relays = Relays::find(options, cores, dir)?;
    report.host.versions.extend(relays.versions(&options.path));
    report.notes.push(note(options));
    report.notes.extend(ours(options.program.as_deref()));
    let missing = relays.missing();
    if !missing.is_empty() {
        report.notes.push(format!("Not there, and so not measured: {}.", missing.join(", ")));
    }
    report.notes.extend(load());
    let congestion = Congestion::set(options.congestion.as_deref())?;
    report.notes.push(congestion.note.clone());
    let _pinned = Pinned::to(cores.load)?;
    let mut bench = Bench::new(options, watcher, &relays, dir)?;
    let mut lines = Vec::new();
    for traffic in options.traffic() {
        lines.extend(bench.traffic(traffic)?);
    }
    report.rows = lines.iter().map(Line::row).collect();
    report.ratios = rows::ratios(&lines);
    if options.parts.contains(&Part::Pipes) {
        for (way, costs) in bench.costs()? {
            report.rows.push(rows::costs_row(way, &costs));
            if let Ok(costs) = costs {
                report.ratios.extend(rows::costs_ratios(way, costs));
            }
        }
    }
    Ok(report)
}

fn note(options: &Options) -> String {
    let Options { rounds, time, .. } = options;
    format!(
        "Rounds: {rounds}, each relay in turn, {} ms; numbers are medians, ratios are medians of pairs \
         of one round. One core for the relay, one for clients and backend, on loopback. CPU is that of \
         the relay's processes; core is all that ran on its core. bulk: as much as goes, in one direction. messages: \
         8 connections are kept, and each asks when it has its answer. connections: 8 at a time. GB are of 10^9 \
         bytes, there and back. pipes: of connections that bring 1 MiB each, after as many before; \
         descriptors: of connections that have done so and are idle. \"again\" is the first relay once more.",
        time.as_millis(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_known_by_their_names_and_choose_what_goes_through() {
        for part in Part::ALL {
            assert_eq!(part.name().parse(), Ok(part));
        }
        assert!("all".parse::<Part>().unwrap_err().contains("pipes"));
        let count =
            |parts: &[Part]| Options { parts: parts.to_vec(), ..Options::new("d") }.traffic().len();
        assert_eq!(Part::ALL.map(|part| count(&[part])), [2, 9, 2, 0]);
        assert_eq!(count(&Part::ALL), 13);
    }
}
