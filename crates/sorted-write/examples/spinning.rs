//! Measures the benefit of sorting on a modelled hard disk. Time is simulated, so the results are
//! reproducible. `cargo run -p haul-sorted-write --example spinning -- RECORDS GIGABYTES`
//!
//! The requests are those that the writer would send: each consists of whole pages; a page that a
//! record covers only partly is read before it is written; all reads of a window precede its
//! writes. Each round writes 64 MiB of buffered records.
#![expect(clippy::print_stdout, reason = "a program that prints measurements")]

use haul_disk_sim::{Drive, Kind, MS, Parameters, Request, SECTOR_BYTES};
use haul_sorted_write::plan::{Costs, Entry, Extent, Plan, Rules, plan};
use haul_testing::Random;

const PAGE: u64 = 4096;
const GENERATION_BYTES: u64 = 64 << 20;

/// A strategy to execute a plan.
#[derive(Clone, Copy)]
struct Strategy {
    costs: Costs,
    window_bytes: u64,
    syncs_windows: bool,
    queue_depth: usize,
}

/// The default strategy of the writer on a rotational disk.
const WRITER: Strategy =
    Strategy { costs: Costs::HDD, window_bytes: 64 << 20, syncs_windows: true, queue_depth: 4 };

const NO_GAPS: Costs = Costs { request_us: 0, bytes_per_second: 0 };

/// A modelled drive and the simulated time.
struct Simulation {
    drive: Drive,
    now: u64,
}

impl Simulation {
    fn new(bytes: u64) -> Self {
        Self { drive: Drive::new(Parameters::deskstar_7k1000c(), bytes), now: 0 }
    }

    /// Submits requests, `queue_depth` at a time; the drive serves the nearest first.
    fn submit(&mut self, kind: Kind, extents: impl Iterator<Item = Extent>, queue_depth: usize) {
        let mut extents = extents.peekable();
        let mut pending: Vec<Request> = Vec::new();
        loop {
            while pending.len() < queue_depth
                && let Some(Extent { offset, bytes }) = extents.next()
            {
                let (sector, sectors) = (offset / SECTOR_BYTES, bytes / SECTOR_BYTES);
                pending.push(Request { kind, sector, sectors, arrived_ns: self.now });
            }
            let Some(next) = self.drive.choose(&pending) else { return };
            self.now = self.drive.serve(&pending.remove(next));
        }
    }

    fn sync(&mut self) {
        self.submit(Kind::Sync, std::iter::once(Extent { offset: 0, bytes: 0 }), 1);
    }

    fn seconds(mut self) -> f64 {
        self.sync();
        f64::from(u32::try_from(self.now / MS).unwrap_or(u32::MAX)) / 1000.0
    }

    fn execute(&mut self, plan: &Plan, strategy: Strategy) {
        let mut rest = &plan.requests[..];
        while !rest.is_empty() {
            let mut bytes = 0_u64;
            let fits = rest.iter().take_while(|request| {
                bytes += request.extent.bytes;
                bytes <= strategy.window_bytes
            });
            let (window, next) = rest.split_at(fits.count().max(1));
            let reads = window[0].reads.start..window[window.len() - 1].reads.end;
            self.submit(Kind::Read, plan.reads[reads].iter().copied(), strategy.queue_depth);
            self.submit(
                Kind::Write,
                window.iter().map(|request| request.extent),
                strategy.queue_depth,
            );
            if strategy.syncs_windows && !next.is_empty() {
                self.sync();
            }
            rest = next;
        }
    }
}

fn plan_with(entries: &[Entry], costs: Costs) -> Plan {
    let rules = Rules { unit_bytes: PAGE, units_end: 1 << 62, request_bytes_max: 1 << 20, costs };
    plan(&mut entries.to_vec(), &rules)
}

/// Writes each record by itself, in the order given.
fn unsorted(entries: &[Entry], bytes: u64) -> f64 {
    let mut simulation = Simulation::new(bytes);
    for entry in entries {
        simulation
            .execute(&plan_with(&[*entry], NO_GAPS), Strategy { syncs_windows: false, ..WRITER });
    }
    simulation.seconds()
}

fn sorted(
    entries: &[Entry],
    bytes: u64,
    generation_bytes: u64,
    strategy: Strategy,
) -> (f64, usize) {
    let mut simulation = Simulation::new(bytes);
    let (mut rest, mut requests) = (entries, 0);
    while !rest.is_empty() {
        let mut filled = 0;
        let fits = rest.iter().take_while(|entry| {
            filled += u64::from(entry.bytes) + 64;
            filled <= generation_bytes
        });
        let (generation, next) = rest.split_at(fits.count().max(1));
        let plan = plan_with(generation, strategy.costs);
        requests += plan.requests.len() + plan.reads.len();
        simulation.execute(&plan, strategy);
        rest = next;
    }
    (simulation.seconds(), requests)
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let records = arguments.next().unwrap_or(20_000);
    let bytes = arguments.next().unwrap_or(2) << 30;
    let mut random = Random(1);
    let entries: Vec<Entry> = (0..u32::try_from(records).unwrap_or(u32::MAX))
        .map(|number| {
            let length = u32::try_from(100 + random.below(3997)).unwrap_or(100);
            Entry { offset: random.below(bytes - 8192), number, bytes: length }
        })
        .collect();
    let baseline = unsorted(&entries, bytes);
    println!("unsorted: {baseline:.0} s");
    // For comparison, with memory for all records: one sweep reads all pages, then another sweep
    // writes them, and the drive receives one request at a time.
    let all =
        Strategy { costs: NO_GAPS, window_bytes: u64::MAX, syncs_windows: false, queue_depth: 1 };
    let (bound, _) = sorted(&entries, bytes, u64::MAX, all);
    println!("one sweep to read and one to write: {bound:.0} s");
    for (name, strategy) in [
        ("sorted", WRITER),
        ("sorted, no gap filled", Strategy { costs: NO_GAPS, ..WRITER }),
        ("sorted, one request at a time", Strategy { queue_depth: 1, ..WRITER }),
        ("sorted, windows not synced", Strategy { syncs_windows: false, ..WRITER }),
    ] {
        let (seconds, requests) = sorted(&entries, bytes, GENERATION_BYTES, strategy);
        let times = baseline / seconds;
        println!("{name}: {seconds:.0} s, {requests} requests, {times:.1} times as fast");
    }
}
