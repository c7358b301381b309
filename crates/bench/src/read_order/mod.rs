//! The order in which many small files are read from a spinning disk.
//!
//! A tree as years of use leave it is made on a simulated drive, and all of it read with nothing in
//! memory: in the order of the directories, by inode, and by where the files are. What the drive
//! was asked, how far its arm went and how long it took come from the simulator's own counters, so
//! they do not depend on what else this machine does.
//!
//! # Sources
//! \[Jacobson91\] for why order pays; `docs/spinning-disk.md` says what may be claimed from it.

mod layout;
mod order;
mod rows;
mod tree;

use std::str::FromStr;

use haul_disk_sim::Parameters;

use crate::error::Result;
use crate::host::Host;
use crate::report::Report;
use crate::rounds::turns;
use crate::watch::Watcher;
use order::Order;
use rows::{BAR, COLUMNS, Sum};
use tree::Tree;

/// A simulated drive, by its name.
#[derive(Debug, Clone)]
pub struct Drive(Parameters);

impl Drive {
    /// All there are.
    #[must_use]
    pub fn all() -> Vec<Self> {
        Parameters::all().into_iter().map(Self).collect()
    }

    pub(crate) fn parameters(&self) -> &Parameters {
        &self.0
    }

    /// Its name, such as `travelstar-7k320`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name
    }
}

impl PartialEq for Drive {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl FromStr for Drive {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let all = Self::all();
        let names: Vec<_> = all.iter().map(|drive| drive.name().to_owned()).collect();
        let found = all.into_iter().find(|drive| drive.name() == name);
        found.ok_or_else(|| format!("there are {}", names.join(", ")))
    }
}

/// A file system the tree can be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4
    Ext4,
    /// xfs
    Xfs,
}

impl FileSystem {
    fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// Nothing is written out in the background while it is read.
    fn mkfs_options(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &["-q", "-F", "-E", "lazy_itable_init=1"],
            Self::Xfs => &["-q", "-f"],
        }
    }

    fn mount_options(self) -> &'static str {
        match self {
            Self::Ext4 => "noinit_itable",
            Self::Xfs => "",
        }
    }
}

impl FromStr for FileSystem {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = [Self::Ext4, Self::Xfs].into_iter().find(|fs| fs.name() == name);
        found.ok_or_else(|| "there are ext4, xfs".to_owned())
    }
}

/// What is measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// The drives, one after the other.
    pub drives: Vec<Drive>,
    /// What the tree is on.
    pub file_system: FileSystem,
    /// The size of the disk, in memory as far as it is written to.
    pub disk_bytes: u64,
    /// How many files the tree has.
    pub files: usize,
    /// In how many directories.
    pub dirs: usize,
    /// How often half as many files were written, in any directory, and as many removed. 0 is a
    /// tree as it was unpacked.
    pub replacements: usize,
    /// Numbers of threads that read.
    pub threads: Vec<usize>,
    /// How often each is measured, in turn.
    pub rounds: usize,
    /// Seconds by the clock for each second of the drive; at 0 nobody waits, and the drive sees one
    /// request at a time, more or less.
    pub time_scale: f64,
    /// The scheduler of the device.
    pub scheduler: String,
    /// Which tree.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            drives: Drive::all(),
            file_system: FileSystem::Ext4,
            disk_bytes: 16 << 30,
            files: 2000,
            dirs: 40,
            replacements: 6,
            threads: vec![1, 4],
            rounds: 3,
            time_scale: 0.1,
            scheduler: "none".to_owned(),
            seed: 1,
        }
    }
}

/// Measures. The disk is gone when this returns, and also when the process is killed.
///
/// # Errors
/// [`crate::Error::Missing`] without root or FUSE, [`crate::Error::Cancelled`] when it was told to
/// stop, and when what was read is not what was written.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let mut report = Report::new("read-order", Host::here(), COLUMNS, BAR);
    report.notes.push(note(options));
    let ways: Vec<_> = options
        .threads
        .iter()
        .flat_map(|threads| Order::ALL.map(|order| (order, *threads)))
        .collect();
    let steps = options.drives.len() * options.rounds * ways.len();
    for (number, drive) in options.drives.iter().enumerate() {
        let done = number * options.rounds * ways.len();
        watcher.step(done, steps, &format!("{}: making the tree", drive.name()));
        let tree = Tree::new(options, drive, watcher)?;
        let mut sums = vec![Sum::default(); ways.len()];
        for turn in turns(options.rounds, ways.len()) {
            let (order, threads) = ways[turn.which];
            let what = format!("{}: {}, {threads} threads", drive.name(), order.name());
            watcher.step(done + turn.done, steps, &what);
            watcher.check()?;
            let reading = tree.read(order, threads, watcher)?;
            sums[turn.which].add(&reading, tree.virtual_time(reading.elapsed));
        }
        let table = format!("{} (simulated), {}", drive.name(), options.file_system.name());
        let rows = ways.iter().zip(&sums);
        report.rows.extend(rows.map(|((order, threads), sum)| sum.row(&table, *order, *threads)));
        let first = number == 0;
        report.ratios.extend(rows::ratios(&ways, &sums, drive.name(), first));
    }
    Ok(report)
}

fn note(options: &Options) -> String {
    let Options { files, dirs, replacements, rounds, time_scale, scheduler, seed, .. } = options;
    format!(
        "Simulated (docs/spinning-disk.md): {files} files of 1 to 128 KiB in {dirs} directories, written \
         one directory after the other; then, {replacements} times, half as many written anywhere and as \
         many removed (seed {seed}); on a disk of {} GiB, scheduler {scheduler}, {rounds} rounds in turn, nothing in memory before each. A row has all \
         of it: directories, inodes, asking for places, and reading. Service is the time the drive \
         was busy by its own clock; elapsed is by this machine's clock at a time scale of \
         {time_scale}, given in seconds of the drive. Numbers are medians. A ratio \"a_vs_b\" is how \
         many times less service a needs than b.",
        options.disk_bytes >> 30
    )
}
