//! The plan: tables, and a byte map as its model.

use haul_sorted_write::plan::{Costs, Entry, Extent, Plan, Rules, plan, travel_bytes};
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

type Ends = Vec<(u64, u64)>;

/// The requests and the reads of these writes, each as where it begins and ends.
fn of(writes: &[(u64, u32)], rules: &Rules) -> (Ends, Ends) {
    let plan = plan(&mut entries(writes), rules);
    let ends = |extent: &Extent| (extent.offset, extent.end());
    let requests = plan.requests.iter().map(|request| ends(&request.extent)).collect();
    (requests, plan.reads.iter().map(ends).collect())
}

#[test]
fn neighbours_become_one_request_and_only_what_is_missing_is_read() {
    let page = 4096;
    for (writes, requests, reads) in [
        // Nothing, a page, a part of one.
        (&[][..], &[][..], &[][..]),
        (&[(page, 4096)], &[(page, 2 * page)], &[]),
        (&[(page + 1, 1)], &[(page, 2 * page)], &[(page, 2 * page)]),
        // Neighbours in any order; two halves of a page need no read.
        (&[(2 * page, 4096), (page, 4096)], &[(page, 3 * page)], &[]),
        (&[(2048, 2048), (0, 2048)], &[(0, page)], &[]),
        // A write over a border reads both its ends, in one read since that is as good.
        (&[(4000, 200)], &[(0, 2 * page)], &[(0, 2 * page)]),
        (&[(4000, 20_000)], &[(0, 6 * page)], &[(0, page), (5 * page, 6 * page)]),
        // A hole within a page.
        (&[(0, 100), (200, 3896)], &[(0, page)], &[(0, page)]),
    ] {
        let expected = (requests.to_vec(), reads.to_vec());
        assert_eq!(of(writes, &RULES), expected, "{writes:?}");
    }
}

#[test]
fn a_gap_is_filled_where_that_is_cheaper_than_the_requests_it_saves() {
    // 10,000 bytes pass in the time of a request.
    for (gap, read_ends, fills) in [
        (1, 0, false),
        (4096, 0, false),
        (4096, 1, true),
        (5000, 1, false),
        (4999, 1, true),
        (9999, 2, true),
        (10_000, 2, false),
    ] {
        assert_eq!(COSTS.fills(gap, read_ends), fills, "{gap} {read_ends}");
    }
    assert!(Costs::SPINNING.fills(24_999, 1) && !Costs::SPINNING.fills(25_000, 1));
    assert!(Costs::SOLID.fills(8192, 1) && !Costs::SOLID.fills(12_288, 1));
    let page = 4096;
    for (writes, requests, reads) in [
        // Whole pages with a page between: nothing would be read otherwise.
        (&[(0, 4096), (2 * page, 4096)][..], &[(0, page), (2 * page, 3 * page)][..], &[][..]),
        // One of them in part.
        (&[(0, 4000), (2 * page, 4096)], &[(0, 3 * page)], &[(0, 2 * page)]),
        // Both, two pages between.
        (&[(0, 4000), (3 * page + 1, 4095)], &[(0, 4 * page)], &[(0, 4 * page)]),
        // One, two pages between: twice their bytes are more than one request.
        (&[(0, 4000), (3 * page, 4096)], &[(0, page), (3 * page, 4 * page)], &[(0, page)]),
    ] {
        let expected = (requests.to_vec(), reads.to_vec());
        assert_eq!(of(writes, &RULES), expected, "{writes:?}");
    }
}

#[test]
fn requests_end_at_the_limits_of_the_device_and_of_the_file() {
    let page = 4096;
    let rules = Rules { request_bytes_max: 2 * page, ..RULES };
    let three = [(0, 2 * page), (2 * page, 4 * page), (4 * page, 5 * page)];
    assert_eq!(of(&[(0, 5 * 4096)], &rules), (three.to_vec(), vec![]));
    let middle = [(0, 2 * page), (2 * page, 4 * page)];
    assert_eq!(of(&[(100, 3 * 4096)], &rules).0, middle);
    // The file ends 100 bytes into its third page.
    let rules = Rules { units_end: 2 * page, ..RULES };
    let (requests, reads) = of(&[(page, 4096 + 50), (3 * page, 7)], &rules);
    assert_eq!(requests, [(page, 2 * page), (2 * page, 2 * page + 50), (3 * page, 3 * page + 7)]);
    assert_eq!(reads, []);
    let bytewise = Rules { unit_bytes: 1, units_end: 100, ..RULES };
    assert_eq!(of(&[(90, 20), (110, 5)], &bytewise).0, [(90, 100), (100, 115)]);
    let plan = plan(&mut entries(&[(page, 4096 + 50)]), &rules);
    assert_eq!(plan.requests.iter().map(|r| r.is_units).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn of_overlapping_writes_the_last_stands() {
    let shown = |writes: &[(u64, u32)]| {
        let rules = Rules { unit_bytes: 1, ..RULES };
        let plan = plan(&mut entries(writes), &rules);
        plan.pieces.iter().map(|p| (p.number, p.offset, p.bytes, p.from)).collect::<Vec<_>>()
    };
    assert_eq!(shown(&[(10, 10), (10, 10)]), [(1, 10, 10, 0)]);
    assert_eq!(shown(&[(10, 10), (12, 2)]), [(0, 10, 2, 0), (1, 12, 2, 0), (0, 14, 6, 4)]);
    assert_eq!(shown(&[(12, 2), (10, 10)]), [(1, 10, 10, 0)]);
    assert_eq!(shown(&[(10, 10), (15, 10)]), [(0, 10, 5, 0), (1, 15, 10, 0)]);
    assert_eq!(shown(&[(15, 10), (10, 10)]), [(1, 10, 10, 0), (0, 20, 5, 5)]);
    assert_eq!(shown(&[(0, 4), (4, 4)]), [(0, 0, 4, 0), (1, 4, 4, 0)]);
    let nested = [(0, 100), (10, 80), (20, 60), (30, 40), (0, 25)];
    let expected = [(4, 0, 25, 0), (2, 25, 5, 5), (3, 30, 40, 0), (2, 70, 10, 50)];
    let behind = [(1, 80, 10, 70), (0, 90, 10, 90)];
    assert_eq!(shown(&nested), [&expected[..], &behind].concat());
}

#[test]
fn the_way_of_the_head_is_what_lies_between_requests() {
    let extent = |offset, bytes| Extent { offset, bytes };
    assert_eq!(travel_bytes([]), 0);
    assert_eq!(travel_bytes([extent(100, 10)]), 100);
    assert_eq!(travel_bytes([extent(0, 10), extent(10, 5), extent(20, 5), extent(0, 5)]), 30);
}

/// What the file holds after the plan was carried out on `file`, checking what each request is.
fn carried_out(plan: &Plan, writes: &[(u64, u32)], rules: &Rules, file: &[u8]) -> Vec<u8> {
    let mut after = file.to_vec();
    let mut at = 0;
    for request in &plan.requests {
        let extent = request.extent;
        assert!(extent.offset >= at, "upward, and nothing twice");
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
                bytes[index(at - extent.offset)] = Some(mark(piece.number));
            }
        }
        for (at, byte) in (extent.offset..).zip(bytes) {
            after[index(at)] = byte.expect("no hole is left in a request");
        }
    }
    after
}

fn index(at: u64) -> usize {
    usize::try_from(at).unwrap()
}

fn mark(number: u32) -> u8 {
    u8::try_from(number % 250).unwrap() + 1
}

proptest! {
    #[test]
    fn a_plan_writes_what_writing_one_by_one_would(
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
            expected[from..from + *bytes as usize].fill(mark(number));
        }
        let plan = plan(&mut entries(&writes), &rules);
        prop_assert!(carried_out(&plan, &writes, &rules, &file) == expected);
        let pieces: u64 = plan.pieces.iter().map(|piece| u64::from(piece.bytes)).sum();
        let changed = |at: &usize| writes.iter().any(|(from, bytes)| {
            (index(*from)..index(*from) + *bytes as usize).contains(at)
        });
        prop_assert_eq!(pieces, (0..file.len()).filter(changed).count() as u64, "each byte once");
    }
}

/// The time this thread was at work: others on the machine do not count.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
}

#[test]
fn a_million_records_are_planned() {
    let records: u64 = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    // Release builds print a figure worth looking at: cargo test --release -- --nocapture.
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state >> 20
    };
    for (what, file_bytes) in [("few overlap", 100 << 30), ("all overlap", 200 << 20)] {
        let writes: Vec<(u64, u32)> = (0..records)
            .map(|_| (random() % file_bytes, u32::try_from(random() % 3900).unwrap() + 100))
            .collect();
        let mut entries = entries(&writes);
        let rules = Rules { costs: Costs::SPINNING, ..RULES };
        let begun = cpu_ns();
        let plan = plan(&mut entries, &rules);
        let ns = (cpu_ns() - begun) / records;
        println!("{what}: {ns} ns of CPU a record, {} requests", plan.requests.len());
        assert!(plan.requests.windows(2).all(|two| two[0].extent.end() <= two[1].extent.offset));
        assert!(plan.requests.len() as u64 <= records);
    }
}
