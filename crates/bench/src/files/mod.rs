//! Serving files over HTTP, beside nginx.
//!
//! Each server has one core, and the load another one: its connections are kept, and it asks for
//! the next page when it has the one before, or at a fixed rate. Servers take turns; the one that
//! comes first is measured twice in each round, which shows the noise. One answer of many is
//! compared byte by byte.
//!
//! # Sources
//! \[HdrHistogram\] for latencies that count from when a request was due.

mod client;
mod connection;
mod contender;
mod measure;
mod rows;
mod schedule;
mod site;

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use haul_disk::probe;

use crate::error::Result;
use crate::host::{Host, load};
use crate::net::congestion::Congestion;
use crate::net::cores::Pinned;
use crate::net::nginx::Nginx;
use crate::net::place::Place;
use crate::net::programs::ours;
use crate::net::window::Load;
use crate::report::Report;
use crate::watch::Watcher;
use contender::Servers;
use measure::Bench;
use rows::{BAR, COLUMNS, Line};

/// What is measured, and how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory to make the files in, on the disk that counts.
    pub dir: PathBuf,
    /// The program `haul`; without it ours is left out.
    pub program: Option<PathBuf>,
    /// Where nginx is looked for: directories as in `PATH`.
    pub path: OsString,
    /// Which parts.
    pub parts: Vec<Part>,
    /// The lengths of hot files.
    pub hot_bytes: Vec<u64>,
    /// How many hot files there are of each length.
    pub hot_files: usize,
    /// How long a big file is.
    pub big_bytes: u64,
    /// How many big files there are; the first four are downloaded for CPU, all beside hot ones.
    pub big_files: usize,
    /// How much memory a server has, page cache included, while it serves hot files and cold ones.
    pub memory_bytes: u64,
    /// How many connections ask for hot files.
    pub connections: usize,
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
    /// Small files that are in memory, as many as possible.
    Hot,
    /// Big files in memory.
    Warm,
    /// Big files that are not.
    Cold,
    /// How long hot files take, beside downloads of cold ones and at rest.
    Latency,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Hot, Self::Warm, Self::Cold, Self::Latency];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Warm => "warm",
            Self::Cold => "cold",
            Self::Latency => "latency",
        }
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let found = Self::ALL.into_iter().find(|part| part.name() == text);
        found.ok_or_else(|| "it is hot, warm, cold or latency".to_owned())
    }
}

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// Files of that length, as many as possible.
    Hot(u64),
    Warm,
    Cold,
    /// Hot files at a fixed rate.
    Rest,
    /// The same, beside downloads.
    Beside,
}

impl Options {
    /// The defaults, in `dir`: some seven minutes with nginx.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            program: None,
            path: OsString::new(),
            parts: Part::ALL.to_vec(),
            hot_bytes: vec![1 << 10, 4 << 10, 16 << 10],
            hot_files: 1000,
            big_bytes: 256 << 20,
            big_files: 16,
            memory_bytes: 256 << 20,
            connections: 64,
            rounds: 5,
            time: Duration::from_secs(1),
            congestion: None,
        }
    }

    /// How long a closed load runs.
    fn load(&self) -> Load {
        Load { settle: self.time / 10, measure: self.time }
    }
}

/// Measures, and tells what came out. What it made is removed, and its servers are killed, however
/// it ends; files stay when the process is killed.
///
/// # Errors
/// [`crate::Error::Missing`] where there is only one core; when the files cannot be made, or ours
/// fails, or a server sent something else than was asked for. A rival that cannot start is told in
/// its rows.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let place = Place::new(&options.dir, "files")?;
    let (cores, dir) = (place.cores, place.scratch.path());
    let storage = probe(dir)?;
    let mut report = Report::new("files", Host::here().with_storage("", &storage), COLUMNS, BAR);
    let nginx = Nginx::find(&options.path);
    let version = nginx.as_ref().and_then(|nginx| nginx.version.clone());
    report.host.versions.extend(version.map(|version| ("nginx".to_owned(), version)));
    report.notes.push(note(options));
    report.notes.extend(ours(options.program.as_deref()));
    if nginx.is_none() {
        report.notes.push("nginx was not found on PATH, and so not measured.".to_owned());
    }
    report.notes.extend(load());
    let congestion = Congestion::set(options.congestion.as_deref())?;
    report.notes.push(congestion.note.clone());
    let _pinned = Pinned::to(cores.load)?;
    let root = dir.join("site");
    let servers = Servers { haul: options.program.clone(), nginx, cores, root };
    let mut bench = Bench::new(options, watcher, servers, dir)?;
    let lines = bench.all()?;
    report.notes.append(&mut bench.notes);
    report.rows = lines.iter().map(Line::row).collect();
    report.ratios = rows::ratios(&lines);
    Ok(report)
}

fn note(options: &Options) -> String {
    let Options { rounds, time, connections, hot_files, big_bytes, big_files, .. } = options;
    format!(
        "Rounds: {rounds}, each server in turn; numbers are medians, ratios are medians of pairs of \
         one round. One core for the server, one for the load, on loopback. hot: {hot_files} files of \
         a length, {connections} connections, {} ms; requests are for a second in which the server's \
         core is busy. warm, cold: 4 files of {} MiB on 2 connections, in memory, or not and from a server \
         that was just started; seconds of CPU are those of the server's processes, and of all on its core, for 10^9 bytes. \"cached\" is \
         what of the files is in the page cache afterwards. latency: files of 16 KiB, a quarter of \
         the server's memory of {} MiB, each as likely as the other, asked for at 30 % of the rate the \
         slowest can; times count from when a request was due. Beside them 2 connections \
         download {big_files} big files. \"again\" is the first server once more.",
        time.as_millis(),
        big_bytes >> 20,
        options.memory_bytes >> 20,
    )
}
