//! Tests the planner with tables, and with a byte array as the model of a file.

use haul_sorted_write::plan::{Costs, Entry, Extent, Plan, Rules, plan, seek_bytes};
use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};

const COSTS: Costs = Costs { request_us: 10, bytes_per_second: 1_000_000_000 };

const RULES: Rules =
    Rules { unit_bytes: 4096, units_end: 1 << 40, request_bytes_max: 1 << 20, costs: COSTS };

fn entries(writes: &[(u64, u32)]) -> Vec<Entry> {
    let entry = |(number, (offset, bytes)): (u32, &(u64, u32))| Entry {
        offset: *offset,
        bytes: *bytes,
        number,
    };
    (0..).zip(writes).map(entry).collect()
}

type Ranges = Vec<(u64, u64)>;

/// Plans the writes; returns the start and end of each request and of each read.
fn ranges(writes: &[(u64, u32)], rules: &Rules) -> (Ranges, Ranges) {
    let plan = plan(&mut entries(writes), rules);
    let range = |extent: &Extent| (extent.offset, extent.end());
    let requests = plan.requests.iter().map(|request| range(&request.extent)).collect();
    (requests, plan.reads.iter().map(range).collect())
}

#[test]
fn neighbours_are_merged_and_only_gaps_are_read() {
    let page = 4096;
    for (writes, requests, reads) in [
        // Without writes there are no requests. Only a partly written page is read.
        (&[][..], &[][..], &[][..]),
        (&[(page, 4096)], &[(page, 2 * page)], &[]),
        (&[(page + 1, 1)], &[(page, 2 * page)], &[(page, 2 * page)]),
        // Neighbours are merged in whichever order they were written. Two halves of a page need no
        // read.
        (&[(2 * page, 4096), (page, 4096)], &[(page, 3 * page)], &[]),
        (&[(2048, 2048), (0, 2048)], &[(0, page)], &[]),
        // If a write crosses page boundaries, its partial pages are read, adjacent pages together.
        (&[(4000, 200)], &[(0, 2 * page)], &[(0, 2 * page)]),
        (&[(4000, 20_000)], &[(0, 6 * page)], &[(0, page), (5 * page, 6 * page)]),
        // A page is read if it has a hole between two writes.
        (&[(0, 100), (200, 3896)], &[(0, page)], &[(0, page)]),
    ] {
        let expected = (requests.to_vec(), reads.to_vec());
        assert_eq!(ranges(writes, &RULES), expected, "{writes:?}");
    }
}

#[test]
fn gap_is_filled_if_cheaper_than_the_saved_requests() {
    // The device transfers 10,000 bytes in the time of a request.
    for (gap, partial_ends, expected) in [
        (1, 0, false),
        (4096, 0, false),
        (4096, 1, true),
        (5000, 1, false),
        (4999, 1, true),
        (9999, 2, true),
        (10_000, 2, false),
    ] {
        assert_eq!(COSTS.should_fill(gap, partial_ends), expected, "{gap} {partial_ends}");
    }
    assert!(Costs::HDD.should_fill(24_999, 1) && !Costs::HDD.should_fill(25_000, 1));
    assert!(Costs::SSD.should_fill(8192, 1) && !Costs::SSD.should_fill(12_288, 1));
    let page = 4096;
    for (writes, requests, reads) in [
        // Two whole pages, one page apart, are not merged, because without merging nothing is read.
        (&[(0, 4096), (2 * page, 4096)][..], &[(0, page), (2 * page, 3 * page)][..], &[][..]),
        // If one of the two pages is written partly, it must be read in any case, so they are
        // merged.
        (&[(0, 4000), (2 * page, 4096)], &[(0, 3 * page)], &[(0, 2 * page)]),
        // Two partly written pages are merged even if they are two pages apart.
        (&[(0, 4000), (3 * page + 1, 4095)], &[(0, 4 * page)], &[(0, 4 * page)]),
        // With one partly written page and a gap of two pages, transferring the gap twice takes
        // more time than a request.
        (&[(0, 4000), (3 * page, 4096)], &[(0, page), (3 * page, 4 * page)], &[(0, page)]),
    ] {
        let expected = (requests.to_vec(), reads.to_vec());
        assert_eq!(ranges(writes, &RULES), expected, "{writes:?}");
    }
}

#[test]
fn requests_end_at_maximum_length_and_at_end_of_file() {
    let page = 4096;
    let rules = Rules { request_bytes_max: 2 * page, ..RULES };
    let three = [(0, 2 * page), (2 * page, 4 * page), (4 * page, 5 * page)];
    assert_eq!(ranges(&[(0, 5 * 4096)], &rules), (three.to_vec(), vec![]));
    let middle = [(0, 2 * page), (2 * page, 4 * page)];
    assert_eq!(ranges(&[(100, 3 * 4096)], &rules).0, middle);
    // The file ends within its third page.
    let rules = Rules { units_end: 2 * page, ..RULES };
    let (requests, reads) = ranges(&[(page, 4096 + 50), (3 * page, 7)], &rules);
    assert_eq!(requests, [(page, 2 * page), (2 * page, 2 * page + 50), (3 * page, 3 * page + 7)]);
    assert_eq!(reads, []);
    let bytewise = Rules { unit_bytes: 1, units_end: 100, ..RULES };
    assert_eq!(ranges(&[(90, 20), (110, 5)], &bytewise).0, [(90, 100), (100, 115)]);
    let plan = plan(&mut entries(&[(page, 4096 + 50)]), &rules);
    assert_eq!(plan.requests.iter().map(|r| r.is_units).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn last_of_overlapping_writes_wins() {
    let pieces = |writes: &[(u64, u32)]| {
        let rules = Rules { unit_bytes: 1, ..RULES };
        let plan = plan(&mut entries(writes), &rules);
        plan.pieces.iter().map(|p| (p.number, p.offset, p.bytes, p.from)).collect::<Vec<_>>()
    };
    assert_eq!(pieces(&[(10, 10), (10, 10)]), [(1, 10, 10, 0)]);
    assert_eq!(pieces(&[(10, 10), (12, 2)]), [(0, 10, 2, 0), (1, 12, 2, 0), (0, 14, 6, 4)]);
    assert_eq!(pieces(&[(12, 2), (10, 10)]), [(1, 10, 10, 0)]);
    assert_eq!(pieces(&[(10, 10), (15, 10)]), [(0, 10, 5, 0), (1, 15, 10, 0)]);
    assert_eq!(pieces(&[(15, 10), (10, 10)]), [(1, 10, 10, 0), (0, 20, 5, 5)]);
    assert_eq!(pieces(&[(0, 4), (4, 4)]), [(0, 0, 4, 0), (1, 4, 4, 0)]);
    let nested = [(0, 100), (10, 80), (20, 60), (30, 40), (0, 25)];
    let expected = [(4, 0, 25, 0), (2, 25, 5, 5), (3, 30, 40, 0), (2, 70, 10, 50)];
    let rest = [(1, 80, 10, 70), (0, 90, 10, 90)];
    assert_eq!(pieces(&nested), [&expected[..], &rest].concat());
}

#[test]
fn travel_is_the_sum_of_gaps_between_requests() {
    let extent = |offset, bytes| Extent { offset, bytes };
    assert_eq!(seek_bytes([]), 0);
    assert_eq!(seek_bytes([extent(100, 10)]), 100);
    assert_eq!(seek_bytes([extent(0, 10), extent(10, 5), extent(20, 5), extent(0, 5)]), 30);
}

/// Executes the plan on a copy of `file`, and checks the constraints on each request.
fn execute(plan: &Plan, writes: &[(u64, u32)], rules: &Rules, file: &[u8]) -> Vec<u8> {
    let mut after = file.to_vec();
    let mut at = 0;
    for request in &plan.requests {
        let extent = request.extent;
        assert!(extent.offset >= at, "requests ascend and do not overlap");
        assert!(extent.bytes <= rules.request_bytes_max && extent.bytes > 0);
        at = extent.end();
        if request.is_units {
            assert!(extent.offset % rules.unit_bytes == 0 && extent.bytes % rules.unit_bytes == 0);
            assert!(at <= rules.units_end);
        }
        let mut bytes: Vec<Option<u8>> = vec![None; index(extent.bytes)];
        for read in &plan.reads[request.reads.clone()] {
            assert!(read.offset >= extent.offset && read.end() <= extent.end());
            for at in read.offset..read.end() {
                bytes[index(at - extent.offset)] = Some(file[index(at)]);
            }
        }
        for piece in &plan.pieces[request.pieces.clone()] {
            let write = writes[piece.number as usize];
            assert_eq!(write.0 + u64::from(piece.from), piece.offset);
            assert!(piece.bytes > 0 && piece.from + piece.bytes <= write.1);
            for at in piece.offset..piece.end() {
                bytes[index(at - extent.offset)] = Some(fill_byte(piece.number));
            }
        }
        for (at, byte) in (extent.offset..).zip(bytes) {
            after[index(at)] = byte.expect("reads and pieces cover the request");
        }
    }
    after
}

fn index(at: u64) -> usize {
    usize::try_from(at).unwrap()
}

fn fill_byte(number: u32) -> u8 {
    u8::try_from(number % 250).unwrap() + 1
}

proptest! {
    #[test]
    fn plan_is_equivalent_to_sequential_writes(
        writes in prop::collection::vec((0_u64..60_000, 1_u32..9000), 0..60),
        unit in prop::sample::select(vec![1_u64, 512, 4096]),
        units_end in 0_u64..18,
        request_bytes_max in prop::sample::select(vec![4096_u64, 8192, 65_536]),
        request_us in 0_u64..20,
    ) {
        let costs = Costs { request_us, ..COSTS };
        let units_end = units_end * 4096;
        let rules = Rules { unit_bytes: unit, units_end, request_bytes_max, costs };
        let file: Vec<u8> = (0..80_000_u32).map(|at| (at % 5) as u8 + 251).collect();
        let mut expected = file.clone();
        for (number, (offset, bytes)) in (0..).zip(&writes) {
            let from = index(*offset);
            expected[from..from + *bytes as usize].fill(fill_byte(number));
        }
        let plan = plan(&mut entries(&writes), &rules);
        prop_assert!(execute(&plan, &writes, &rules, &file) == expected);
        let pieces: u64 = plan.pieces.iter().map(|piece| u64::from(piece.bytes)).sum();
        let changed = |at: &usize| writes.iter().any(|(from, bytes)| {
            (index(*from)..index(*from) + *bytes as usize).contains(at)
        });
        prop_assert_eq!(pieces, (0..file.len()).filter(changed).count() as u64, "pieces cover each written byte once");
    }
}

/// Returns the CPU time of this thread, which does not depend on the load of the machine.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
}

#[test]
fn a_million_records_are_planned() {
    let records: u64 = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    // The command `cargo test --release -- --nocapture` shows the measured times.
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state >> 20
    };
    for (name, file_bytes) in [("few overlap", 100 << 30), ("all overlap", 200 << 20)] {
        let writes: Vec<(u64, u32)> = (0..records)
            .map(|_| (random() % file_bytes, u32::try_from(random() % 3900).unwrap() + 100))
            .collect();
        let mut entries = entries(&writes);
        let rules = Rules { costs: Costs::HDD, ..RULES };
        let started = cpu_ns();
        let plan = plan(&mut entries, &rules);
        let ns = (cpu_ns() - started) / records;
        println!("{name}: {ns} ns of CPU a record, {} requests", plan.requests.len());
        assert!(plan.requests.windows(2).all(|pair| pair[0].extent.end() <= pair[1].extent.offset));
        assert!(plan.requests.len() as u64 <= records);
    }
}
