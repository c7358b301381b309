//! Random writes: as they come, sorted, sorted and merged; and durable one by one.
//!
//! Records of 100 B to 4 KiB go to random places of a big file, in batches of one to a million,
//! each batch on the medium before the next one begins, whichever way it gets there; with and
//! without an entry in a small index file for each. On a simulated drive the figures are its own; on a directory's disk they are
//! by the clock. Then many writers change random pages, each durable when its call returns: a page
//! file, plain files that sync each write, and databases.
//!
//! # Sources
//! \[Coffman72\] for sweeps; `docs/random-writes.md` says what came out.

mod pages;
mod records;
mod rows;
mod solid;
mod spinning;
mod ways;

use std::path::{Path, PathBuf};
use std::time::Duration;

use haul_disk::probe;
use haul_sorted_write::{Options as SortedOptions, PageFileOptions};

use crate::error::{Error, Result, chain};
use crate::host::{Host, load};
use crate::log::rivals::Rivals;
use crate::log::{Failure, Load, Sample, Scratch, drive};
use crate::read_order::Drive;
use crate::report::Report;
use crate::rounds::turns;
use crate::watch::Watcher;
use pages::Who;
use rows::{BAR, COLUMNS, Facts, Line};
use ways::{Cell, Index, cells};

pub use pages::Places;
pub use ways::Way;

/// What is measured, and how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// A directory on a disk to measure on, too.
    pub dir: Option<PathBuf>,
    /// The simulated drives.
    pub drives: Vec<Drive>,
    /// The ways.
    pub ways: Vec<Way>,
    /// How many records are written, at most.
    pub records: usize,
    /// Numbers of records between syncs; more than there are is one sync in the end.
    pub batches: Vec<usize>,
    /// How many batches are written at most: short ones cost the same each.
    pub batches_max: usize,
    /// The length of the file the records go to.
    pub file_bytes: u64,
    /// The length of the index; 0 to leave it out.
    pub index_bytes: u64,
    /// How often each row is measured, in turn.
    pub rounds: usize,
    /// Seconds by the clock for each second of the drive; at 0 nobody waits.
    pub time_scale: f64,
    /// The scheduler of the simulated device.
    pub scheduler: String,
    /// Which records.
    pub seed: u64,
    /// Numbers of writers of pages; empty to leave pages out.
    pub writers: Vec<usize>,
    /// The length of the file of pages.
    pub pages_bytes: u64,
    /// How long writers of pages write.
    pub time: Duration,
    /// How the page file behaves.
    pub page_file: PageFileOptions,
    /// The program that drives databases, if it was built.
    pub rivals: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dir: None,
            drives: Drive::all()[1..].to_vec(),
            ways: Way::ALL.to_vec(),
            records: 20_000,
            batches: vec![1, 1000, 1_000_000],
            batches_max: 1000,
            file_bytes: 1 << 30,
            index_bytes: 4 << 20,
            rounds: 3,
            time_scale: 0.0,
            scheduler: "none".to_owned(),
            seed: 1,
            writers: vec![16],
            pages_bytes: 512 << 20,
            time: Duration::from_secs(3),
            page_file: PageFileOptions {
                sorted: SortedOptions { generation_bytes: 256 << 20, ..SortedOptions::default() },
                log_bytes_max: 1 << 30,
                ..PageFileOptions::default()
            },
            rivals: None,
        }
    }
}

/// Measures. Disks and files are gone when this returns, those of the ways also when the process is killed.
///
/// # Errors
/// [`Error::Missing`] without root or FUSE where a drive is to be simulated, [`Error::Cancelled`]
/// when it was told to stop, and when what was written is not there. A rival that fails is told in
/// its row.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let mut report = Report::new("random-write", Host::here(), COLUMNS, BAR);
    if let Some(dir) = &options.dir {
        report.host = report.host.with_storage("", &probe(dir)?);
    }
    report.notes.push(note(options));
    let load = load();
    for (number, drive) in options.drives.iter().enumerate() {
        watcher.step(0, 1, &format!("{}: making the files", drive.name()));
        let mut disk = spinning::Disk::new(options, drive, watcher)?;
        let lines = on_drive(&mut disk, options, drive, watcher)?;
        let prefix = match number {
            0 => "spinning".to_owned(),
            _ => format!("spinning_{}", drive.name()),
        };
        report.ratios.extend(rows::ratios_of_ways(&prefix, &lines));
        report.rows.extend(lines.iter().map(Line::row));
        for writers in &options.writers {
            let lines = pages_on_drive(&disk, options, drive, *writers, watcher)?;
            let prefix = format!("{prefix}_");
            report.ratios.extend(rows::ratios_of_pages(&prefix, &lines, *writers));
            report.rows.extend(lines.iter().map(Line::row));
        }
    }
    if let Some(dir) = &options.dir {
        let lines = on_dir(options, dir, watcher)?;
        report.ratios.extend(rows::ratios_of_ways("disk", &lines));
        report.rows.extend(lines.iter().map(Line::row));
        for writers in &options.writers {
            let lines = with_pages(options, dir, *writers, watcher)?;
            report.ratios.extend(rows::ratios_of_pages("", &lines, *writers));
            report.rows.extend(lines.iter().map(Line::row));
        }
    }
    report.notes.extend(load);
    Ok(report)
}

fn note(options: &Options) -> String {
    let Options { records, batches_max, file_bytes, index_bytes, rounds, time_scale, seed, .. } =
        options;
    format!(
        "{records} records of 100 to 4,096 B, {batches_max} batches at most, at random places of a file of {} MiB (seed {seed}), an entry of 64 B for each in an index of {} MiB; all of a batch is on the medium before the next one begins; nothing in memory before; {rounds} rounds, medians. Simulated drives tell their own clock (service; time scale {time_scale}), disks the wall's. Requests, bytes, syncs and seeks are for one record. \"bound\" is the least time of a sweep that reads each unit written in part and one that writes all: no rotation is waited for (docs/random-writes.md). Pages: all rates count until every page is in its place, those acknowledged until the writers stop. A ratio \"a_vs_b\" is how many times faster a is.",
        file_bytes >> 20,
        index_bytes >> 20,
    )
}

/// All ways on a simulated drive, and the bound of each batch.
fn on_drive(
    disk: &mut spinning::Disk,
    options: &Options,
    drive: &Drive,
    watcher: &dyn Watcher,
) -> Result<Vec<Line>> {
    let table = format!("{} (simulated), ext4", drive.name());
    let mut lines = by_turns(options, &table, watcher, &mut |cell| {
        let swept = disk.measure(options, cell, watcher)?;
        Ok(rows::swept(cell, &swept, options.time_scale))
    })?;
    for batch in &options.batches {
        let cell = Cell { way: Way::Merged, index: Index::None, batch: *batch };
        let (records, bound_ns) = disk.bound(options, cell)?;
        let line = rows::bound(&table, cell, records, bound_ns);
        let behind = lines.iter().rposition(|other| other.group == line.group);
        lines.insert(behind.map_or(0, |at| at + 1), line);
    }
    Ok(lines)
}

/// Durable writes of random pages on a simulated drive.
fn pages_on_drive(
    disk: &spinning::Disk,
    options: &Options,
    drive: &Drive,
    writers: usize,
    watcher: &dyn Watcher,
) -> Result<Vec<Line>> {
    // The floor is for a disk that has no rotation to wait for.
    let all: Vec<_> = Who::ALL.into_iter().filter(|who| *who != Who::Floor).collect();
    let line = |who: &Who| Line {
        table: format!("{} (simulated), {}", drive.name(), pages_table(writers)),
        way: who.name().to_owned(),
        ..Line::default()
    };
    let mut lines: Vec<_> = all.iter().map(line).collect();
    for turn in turns(options.rounds, all.len()) {
        let who = all[turn.which];
        watcher.step(turn.done, turn.of, &format!("pages, {writers} writers: {}", who.name()));
        watcher.check()?;
        let (sample, asked) = disk.pages(options, who, writers).map_err(cannot_pages)?;
        lines[turn.which].facts.push(rows::pages_swept(writers, &sample, &asked));
    }
    Ok(lines)
}

fn pages_table(writers: usize) -> String {
    format!("random pages of 4 KiB, durable, {writers} writers")
}

fn cannot_pages(failure: Failure) -> Error {
    Error::other("measure pages")(std::io::Error::other(failure))
}

fn on_dir(options: &Options, dir: &Path, watcher: &dyn Watcher) -> Result<Vec<Line>> {
    watcher.step(0, 1, "making the files");
    let mut dir = solid::Dir::new(options, dir, watcher)?;
    let table = format!("disk, {}", dir.storage.file_system);
    by_turns(options, &table, watcher, &mut |cell| {
        Ok(rows::written(cell, &dir.measure(options, cell, watcher)?))
    })
}

fn by_turns(
    options: &Options,
    table: &str,
    watcher: &dyn Watcher,
    measure: &mut dyn FnMut(Cell) -> Result<Facts>,
) -> Result<Vec<Line>> {
    let all = cells(&options.ways, &options.batches, options.index_bytes > 0);
    let mut lines: Vec<_> = all.iter().map(|cell| Line::of(table, *cell)).collect();
    for turn in turns(options.rounds, all.len()) {
        let cell = all[turn.which];
        let Cell { way, index, batch } = cell;
        let what = format!("{table}: {}, index {}, batches of {batch}", way.name(), index.name());
        watcher.step(turn.done, turn.of, &what);
        watcher.check()?;
        lines[turn.which].facts.push(measure(cell)?);
    }
    Ok(lines)
}

/// What the program that drives databases calls its forms for pages.
const PAGES: &str = "pages/";

/// Durable writes of random pages: ours, plain files, and the databases there are.
fn with_pages(
    options: &Options,
    dir: &Path,
    writers: usize,
    watcher: &dyn Watcher,
) -> Result<Vec<Line>> {
    let rivals = options.rivals.as_deref().map(Rivals::ask).transpose()?;
    let forms = rivals.iter().flat_map(|rivals| &rivals.forms);
    let forms: Vec<_> = forms.filter_map(|form| form.strip_prefix(PAGES)).collect();
    let ours = Who::ALL.map(Who::name);
    let names: Vec<_> = ours.iter().chain(&forms).copied().collect();
    let line = |name: &&str| Line {
        table: pages_table(writers),
        way: (*name).to_owned(),
        ..Line::default()
    };
    let mut lines: Vec<_> = names.iter().map(line).collect();
    for turn in turns(options.rounds, names.len()) {
        let name = names[turn.which];
        watcher.step(turn.done, turn.of, &format!("pages, {writers} writers: {name}"));
        watcher.check()?;
        let scratch = Scratch::new(dir, &format!("haul-bench-pages.{}", std::process::id()))?;
        let sample = match Who::ALL.get(turn.which) {
            Some(who) => with_plain_pages(options, *who, writers, scratch.path()),
            None => rivals.as_ref().map_or_else(
                || Err("not built".into()),
                |rivals| {
                    let pages = options.pages_bytes / 4096;
                    let more = ["--pages".to_owned(), pages.to_string()];
                    let form = format!("{PAGES}{name}");
                    rivals.measure(
                        &form,
                        scratch.path(),
                        &load_of(options, writers),
                        &more,
                        watcher,
                    )
                },
            ),
        };
        match sample {
            Ok(sample) => lines[turn.which].facts.push(rows::pages(writers, &sample)),
            Err(failure) => lines[turn.which].why = Some(chain(&*failure)),
        }
    }
    let failed = lines.iter().take(Who::ALL.len()).find_map(|line| line.why.clone());
    match failed {
        Some(why) => Err(cannot_pages(why.into())),
        None => Ok(lines),
    }
}

fn load_of(options: &Options, writers: usize) -> Load {
    // Nothing is put off before that does not count.
    Load { writers, record_bytes: 4096, settle: Duration::ZERO, measure: options.time }
}

fn with_plain_pages(
    options: &Options,
    who: Who,
    writers: usize,
    dir: &Path,
) -> Result<Sample, Failure> {
    let pages = options.pages_bytes / 4096;
    let contender = pages::open(who, dir, writers, pages, &options.page_file)?;
    contender.warm_up()?;
    rustix::fs::sync();
    let device = probe(dir)?.device;
    if who != Who::Floor {
        return drive(&*contender, &load_of(options, writers), device.as_ref());
    }
    // One call has the pages of all writers.
    let sample = drive(&*contender, &load_of(options, 1), device.as_ref())?;
    Ok(Sample { appends: sample.appends * writers as f64, ..sample })
}
