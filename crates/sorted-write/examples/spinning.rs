//! What sorting is worth on a spinning disk, by the model of one: no clock, so the same figures
//! everywhere. `cargo run -p haul-sorted-write --example spinning -- RECORDS GIGABYTES`
//!
//! Requests are made as the writer makes them: units of a page, read before they are written where
//! a record covers them in part, a window read and then written, a generation of 64 MiB at a time.
#![expect(clippy::print_stdout, reason = "a program that tells figures")]

use haul_disk_sim::{Drive, Kind, MS, Parameters, Random, Request, SECTOR_BYTES};
use haul_sorted_write::plan::{Costs, Entry, Extent, Plan, Rules, plan};

const PAGE: u64 = 4096;
const GENERATION_BYTES: u64 = 64 << 20;

/// How a plan is carried out.
#[derive(Clone, Copy)]
struct How {
    costs: Costs,
    window_bytes: u64,
    syncs_windows: bool,
    lanes: usize,
}

/// As the writer does it.
const OURS: How =
    How { costs: Costs::SPINNING, window_bytes: 64 << 20, syncs_windows: true, lanes: 4 };

const NO_GAPS: Costs = Costs { request_us: 0, bytes_per_second: 0 };

/// A drive, and the time.
struct Asked {
    drive: Drive,
    now: u64,
}

impl Asked {
    fn new(bytes: u64) -> Self {
        Self { drive: Drive::new(Parameters::deskstar_7k1000c(), bytes), now: 0 }
    }

    /// Asks for all, so many at a time, of which the drive takes the one it is nearest to.
    fn ask(&mut self, kind: Kind, extents: impl Iterator<Item = Extent>, lanes: usize) {
        let mut extents = extents.peekable();
        let mut waiting: Vec<Request> = Vec::new();
        loop {
            while waiting.len() < lanes
                && let Some(Extent { offset, bytes }) = extents.next()
            {
                let (sector, sectors) = (offset / SECTOR_BYTES, bytes / SECTOR_BYTES);
                waiting.push(Request { kind, sector, sectors, arrived_ns: self.now });
            }
            let Some(next) = self.drive.choose(&waiting) else { return };
            self.now = self.drive.serve(&waiting.remove(next));
        }
    }

    fn sync(&mut self) {
        self.ask(Kind::Sync, std::iter::once(Extent { offset: 0, bytes: 0 }), 1);
    }

    fn seconds(mut self) -> f64 {
        self.sync();
        f64::from(u32::try_from(self.now / MS).unwrap_or(u32::MAX)) / 1000.0
    }

    fn carry_out(&mut self, plan: &Plan, how: How) {
        let mut rest = &plan.requests[..];
        while !rest.is_empty() {
            let mut bytes = 0_u64;
            let fits = rest.iter().take_while(|request| {
                bytes += request.extent.bytes;
                bytes <= how.window_bytes
            });
            let (window, behind) = rest.split_at(fits.count().max(1));
            let reads = window[0].reads.start..window[window.len() - 1].reads.end;
            self.ask(Kind::Read, plan.reads[reads].iter().copied(), how.lanes);
            self.ask(Kind::Write, window.iter().map(|request| request.extent), how.lanes);
            if how.syncs_windows && !behind.is_empty() {
                self.sync();
            }
            rest = behind;
        }
    }
}

fn planned(entries: &[Entry], costs: Costs) -> Plan {
    let rules = Rules { unit_bytes: PAGE, units_end: 1 << 62, request_bytes_max: 1 << 20, costs };
    plan(&mut entries.to_vec(), &rules)
}

/// Each record by itself, in the order given.
fn as_given(entries: &[Entry], bytes: u64) -> f64 {
    let mut asked = Asked::new(bytes);
    for entry in entries {
        asked.carry_out(&planned(&[*entry], NO_GAPS), How { syncs_windows: false, ..OURS });
    }
    asked.seconds()
}

fn sorted(entries: &[Entry], bytes: u64, generation_bytes: u64, how: How) -> (f64, usize) {
    let mut asked = Asked::new(bytes);
    let (mut rest, mut requests) = (entries, 0);
    while !rest.is_empty() {
        let mut filled = 0;
        let fits = rest.iter().take_while(|entry| {
            filled += u64::from(entry.bytes) + 64;
            filled <= generation_bytes
        });
        let (generation, behind) = rest.split_at(fits.count().max(1));
        let plan = planned(generation, how.costs);
        requests += plan.requests.len() + plan.reads.len();
        asked.carry_out(&plan, how);
        rest = behind;
    }
    (asked.seconds(), requests)
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
    let given = as_given(&entries, bytes);
    println!("as given: {given:.0} s");
    // All is read in one sweep and written in one, in order, with memory for everything.
    let all = How { costs: NO_GAPS, window_bytes: u64::MAX, syncs_windows: false, lanes: 1 };
    let (bound, _) = sorted(&entries, bytes, u64::MAX, all);
    println!("one sweep to read and one to write: {bound:.0} s");
    for (name, how) in [
        ("sorted", OURS),
        ("sorted, no gap filled", How { costs: NO_GAPS, ..OURS }),
        ("sorted, one request at a time", How { lanes: 1, ..OURS }),
        ("sorted, windows not synced", How { syncs_windows: false, ..OURS }),
    ] {
        let (seconds, requests) = sorted(&entries, bytes, GENERATION_BYTES, how);
        let times = given / seconds;
        println!("{name}: {seconds:.0} s, {requests} requests, {times:.1} times as fast");
    }
}
