//! Measures reading many small files from a spinning disk in several orders.
//!
//! The benchmark writes a tree to a simulated drive, ages it by replacing files, and reads it with
//! cold caches: in directory order, by inode number, and by physical position. Requests, seeks and
//! times are those of the simulated drive, so they do not depend on the load of this machine.
//!
//! # Sources
//! \[Jacobson91\] on the gain from sorting requests; `docs/spinning-disk.md` on the limits of the
//! results.

mod layout;
mod options;
mod tree;

use haul_measure::{Result, Watcher};

use crate::benchmark::Benchmark;
use crate::contest::{Contest, Field, Outcome, Stage, new_report, number};
use crate::report::Report;
pub use crate::simulated::Drive;
pub use options::ReadOrderBench;
use tree::{Order, Pass, Tree};

/// An order of reading, with a number of threads.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Strategy {
    order: Order,
    threads: usize,
}

/// The columns of the table: times are by the clock of the drive.
const FIELDS: &[Field<Strategy, Pass>] = &[
    number("threads", "threads", 0).label(|it| it.threads.into()),
    Field::label("order", "order", |strategy| strategy.order.name().into()),
    number("service_s", "service s", 2).spread(8, service_s),
    number("files_per_s", "files/s", 0).rank(2).median(|it| Some(it.files as f64 / service_s(it)?)),
    number("seeks", "seeks", 0).median(|pass| Some(pass.requests.seeks as f64)),
    number("travel_cylinders", "cylinders", 0).median(|it| Some(it.requests.seek_cylinders as f64)),
    number("requests", "requests", 0).rank(1).median(reads),
    number("read_bytes", "B read", 0).rank(3).median(|it| Some(it.requests.bytes_read as f64)),
];

fn service_s(pass: &Pass) -> Option<f64> {
    Some(pass.requests.service_ns() as f64 / 1e9)
}

fn reads(pass: &Pass) -> Option<f64> {
    Some(pass.requests.reads as f64)
}

impl Benchmark for ReadOrderBench {
    const NAME: &'static str = "read-order";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let mut report = new_report(Self::NAME, FIELDS, note(self));
        for (number, drive) in self.drive.iter().enumerate() {
            let name = drive.name();
            watcher.step(number, self.drive.len(), &format!("{name}: writing the tree"));
            let tree = Tree::new(self, drive, watcher)?;
            let mut contest = contest(self);
            let (of, rounds) = (self.drive.len(), self.rounds);
            contest.run(&Stage { name, number, of, rounds, watcher }, |strategy| {
                tree.read(strategy.order, strategy.threads, watcher).map(Outcome::Measured)
            })?;
            let table = format!("{name} (simulated), ext4");
            contest.report(&mut report, &table, |strategy| strategy.threads.to_string());
            add_ratios(&contest, if number == 0 { None } else { Some(name) }, &mut report);
        }
        Ok(report)
    }
}

fn contest(options: &ReadOrderBench) -> Contest<Strategy, Pass> {
    let orders = |threads: &usize| {
        let threads = *threads;
        Order::ALL.map(move |order| Strategy { order, threads })
    };
    Contest::new(FIELDS, options.threads.iter().flat_map(orders))
}

fn note(options: &ReadOrderBench) -> String {
    let ReadOrderBench { files, dirs, replacements, rounds, longest, .. } = options;
    format!(
        "Simulated (docs/spinning-disk.md): {files} files of 1 to {} KiB in {dirs} directories, \
         written directory by directory; then, {replacements} times, half as many written anywhere \
         and as many removed; a disk of {} GiB, {rounds} \
         interleaved rounds with cold caches. A row includes directories, inodes, extent queries \
         and data. Service is the busy time of the drive by its own clock. Numbers are medians. A ratio \"a_vs_b\" is the service time of b divided by that of a.",
        longest >> 10,
        options.disk_size >> 30
    )
}

/// Adds the ratios between the service times of the orders with the first number of threads, and
/// those of physical order with more threads. The names have a suffix for all drives but the first.
fn add_ratios(contest: &Contest<Strategy, Pass>, drive: Option<&str>, report: &mut Report) {
    let strategies = || contest.entries.iter().map(|entry| entry.strategy);
    let Some(Strategy { threads, .. }) = strategies().next() else { return };
    let suffix = drive.map(|drive| format!("_{drive}")).unwrap_or_default();
    let [unsorted, inode, physical] = Order::ALL.map(|order| Strategy { order, threads });
    for (name, slower, faster) in [
        ("physical_vs_unsorted", unsorted, physical),
        ("physical_vs_inode", inode, physical),
        ("inode_vs_unsorted", unsorted, inode),
    ] {
        report.ratio(format!("{name}{suffix}"), contest.ratio(&slower, &faster, service_s));
    }
    for parallel in strategies().filter(|it| it.order == Order::Physical && it.threads != threads) {
        let name = format!("physical_{threads}_vs_{}_threads{suffix}", parallel.threads);
        report.ratio(name, contest.ratio(&parallel, &physical, service_s));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use haul_disk_sim::{Counters, ServiceTime};

    use super::*;

    fn pass(service_s: u64) -> [Option<Pass>; 1] {
        let service = ServiceTime { seek_ns: service_s * 1_000_000_000, ..ServiceTime::default() };
        [Some(Pass { files: 100, requests: Counters { service, ..Counters::default() } })]
    }

    #[test]
    fn ratios_are_of_service_times() {
        let mut contest = contest(&ReadOrderBench::parse_from([""]));
        contest.record_all([217, 28, 19, 100, 20, 10].map(pass));
        let mut report = new_report("read-order", FIELDS, String::new());
        add_ratios(&contest, None, &mut report);
        report.assert_ratios(&[
            ("physical_vs_unsorted", 217.0 / 19.0),
            ("physical_vs_inode", 28.0 / 19.0),
            ("inode_vs_unsorted", 217.0 / 28.0),
            ("physical_1_vs_4_threads", 10.0 / 19.0),
        ]);
        report.ratios.clear();
        add_ratios(&contest, Some("drive"), &mut report);
        assert!(report.ratios.keys().all(|name| name.ends_with("_drive")));
    }
}
