//! Tests that the loss of any single page loses only the records in this page.

use std::sync::Arc;

use haul_append_log::{Lsn, Position, segment_name};
use haul_disk::Disk;
use haul_disk_sim::{Crashes, Medium, MemoryDisk, crash_everywhere};
use haul_testing::{Random, seed};

use crate::payload::{id_of, ids, payload};
use crate::recovery::{bytes_of, report, start};
use crate::{open_on, put, put_long, small};

const PAGE: usize = 4096;
const SEGMENT: usize = 1 << 20;
/// The smallest id of the records that the files contained before they were recycled.
const EARLIER: u64 = 1000;

/// The bytes that replace the content of a lost page.
#[derive(Debug, Clone, Copy)]
enum Loss {
    Zeros,
    Random,
    /// The page at the same offset of another segment.
    OtherSegment,
}

/// Creates a closed log with two full segments, a partly filled one and a prepared one. If
/// `is_recycled`, all but the first are in recycled files. Its records have random lengths up to
/// ten pages.
fn log(is_recycled: bool) -> (Medium, Vec<Position>) {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let mut first = 1;
    if is_recycled {
        while log.spare_segments() < 2 {
            put_long(&log, EARLIER..EARLIER + 40);
            log.truncate_front(log.synced()).unwrap();
        }
        first = log.synced().segment();
    }
    let mut random = Random(seed());
    println!("SEED={}", random.0);
    let mut positions = Vec::new();
    while log.synced() < Lsn::new(first + 2, 500_000) {
        let bytes = usize::try_from(8 + random.below(40_000)).unwrap();
        positions.push(put(&log, &payload(positions.len() as u64, bytes)));
    }
    log.truncate_front(positions[0].lsn).unwrap();
    log.close().unwrap();
    (disk.medium(), positions)
}

fn lose(medium: &mut Medium, number: u32, page: usize, loss: Loss, other: u32) {
    let at = page * PAGE..(page + 1) * PAGE;
    let lost = match loss {
        Loss::Zeros => vec![0; PAGE],
        Loss::Random => {
            let mut random = Random(page as u64 + 1);
            (0..PAGE / 8).flat_map(|_| random.number().to_le_bytes()).collect()
        }
        Loss::OtherSegment => medium.file(&segment_name(other))[at.clone()].to_vec(),
    };
    medium.file(&segment_name(number))[at].copy_from_slice(&lost);
}

/// Loses each page in turn, checks the delivered records, and returns how often damage was reported.
fn lose_each_page(medium: &Medium, positions: &[Position]) -> usize {
    let names = MemoryDisk::on(medium).list("").unwrap();
    let number = |name: &String| name.strip_suffix(".segment")?.parse::<u32>().ok();
    let numbers: Vec<u32> = names.iter().filter_map(number).collect();
    let whole = start(medium, report()).unwrap();
    assert_eq!(whole.recovered.damage, []);
    drop(whole);
    let last = *positions.last().unwrap();
    let (mut reported, mut pages) = (0, 0);
    for (number, loss) in numbers.iter().flat_map(|number| {
        [Loss::Zeros, Loss::Random, Loss::OtherSegment].map(|loss| (*number, loss))
    }) {
        let other = *numbers.iter().find(|other| **other != number).unwrap();
        // Covers every page with records, and some pages without.
        let end = match number.cmp(&last.lsn.segment()) {
            std::cmp::Ordering::Less => SEGMENT / PAGE,
            std::cmp::Ordering::Equal => bytes_of(last).end / PAGE + 3,
            std::cmp::Ordering::Greater => 3,
        };
        let step = if let Loss::Zeros = loss { 1 } else { 4 };
        for page in (0..end).step_by(step).chain([SEGMENT / PAGE - 2, SEGMENT / PAGE - 1]) {
            let mut left = medium.clone();
            lose(&mut left, number, page, loss, other);
            let is_in = |at: &&Position| {
                let bytes = bytes_of(**at);
                let is_segment = at.lsn.segment() == number;
                is_segment && bytes.start < (page + 1) * PAGE && bytes.end > page * PAGE
            };
            let lost: Vec<u64> = positions
                .iter()
                .enumerate()
                .filter(|(_, at)| is_in(at))
                .map(|(id, _)| id as u64)
                .collect();
            let opened = start(&left, report()).unwrap();
            let mut found = ids(&opened.records);
            found.retain(|id, _| *id < EARLIER);
            let expected = (0..positions.len() as u64).filter(|id| !lost.contains(id));
            assert!(found.keys().copied().eq(expected), "page {page} of {number}: {loss:?}");
            let damage = &opened.recovered.damage;
            // If the page of the close record is lost, no later record proves that the page was
            // durable.
            let is_end = number == last.lsn.segment() && page >= bytes_of(last).end / PAGE;
            assert!(
                lost.is_empty() || is_end || !damage.is_empty(),
                "page {page} of {number}: {loss:?}"
            );
            let header_damage = &opened.recovered.header_damage;
            if page == 0 || page == SEGMENT / PAGE - 1 {
                let offset = (page * PAGE) as u64;
                assert!(damage.is_empty() && header_damage.len() == 1, "{header_damage:?}");
                assert_eq!(header_damage[0].offset, offset);
                assert!(header_damage[0].file.ends_with(segment_name(number)));
                // No record is affected, so the log opens with `OnDamage::Refuse`.
                assert_eq!(start(&left, small()).unwrap().records.len(), opened.records.len());
            } else {
                assert_eq!(header_damage, &[]);
            }
            reported += usize::from(!damage.is_empty() || !header_damage.is_empty());
            pages += 1;
        }
    }
    println!("{pages} pages lost, {reported} reported");
    reported
}

#[test]
fn each_lost_page_costs_only_the_records_in_it() {
    let (medium, positions) = log(false);
    assert!(lose_each_page(&medium, &positions) > 500);
}

#[test]
fn each_lost_page_of_recycled_files_costs_only_the_records_in_it() {
    let (medium, positions) = log(true);
    assert!(lose_each_page(&medium, &positions) > 500);
}

#[test]
fn log_continues_after_losing_first_page_of_last_segment() {
    let (medium, positions) = log(false);
    let last = positions.last().unwrap().lsn.segment();
    let mut left = medium.clone();
    lose(&mut left, last, 0, Loss::Zeros, 1);
    let disk = MemoryDisk::on(&left);
    for round in 0..2 {
        let opened = open_on(Arc::new(disk.clone()), report()).unwrap();
        assert_eq!(opened.records.len(), positions.len() + round);
        assert_eq!(opened.recovered.header_damage.len(), 1, "the page is still lost");
        put(&opened.log, &payload(5000 + round as u64, 100));
    }
}

#[test]
fn header_of_another_use_of_the_file_is_ignored() {
    let (medium, positions) = log(false);
    // If a write is lost, one header page keeps an older valid header with another nonce.
    for page in [0, SEGMENT / PAGE - 1] {
        let mut left = medium.clone();
        for copy in [0, 2048] {
            let at = page * PAGE + copy;
            crate::damage::set_header(&mut left.file(&segment_name(1))[at..], 24, 77);
        }
        let opened = start(&left, report()).unwrap();
        assert_eq!(opened.records.len(), positions.len(), "page {page}");
        assert_eq!(opened.recovered.header_damage[0].offset, (page * PAGE) as u64);
    }
}

/// A crash may leave different nonces in the two header pages of a prepared segment, but not in
/// those of a segment with records. In neither case may recovery report damage.
#[test]
fn crash_never_causes_header_damage() {
    let crashes = Crashes { draws: 1, again_one_in: 32, ..Crashes::default() };
    let workload = |disk: &MemoryDisk| {
        let mut next = 0;
        for _ in 0..2 {
            let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
            let mut fill = |log: &haul_append_log::Log, records: u64| {
                put_long(log, next..next + records);
                next += records;
            };
            fill(&log, 50);
            log.truncate_front(log.synced()).unwrap();
            fill(&log, 40);
            let back = put(&log, &payload(9000, 100)).lsn;
            log.truncate_back(back).unwrap();
            fill(&log, 2);
        }
    };
    let states = crash_everywhere(&crashes, workload, |(), crash| {
        let opened = open_on(Arc::new(crash.disk.clone()), small()).unwrap();
        assert_eq!(opened.recovered.header_damage, []);
        put(&opened.log, &payload(9001, 100));
        drop(opened);
        let medium = crash.disk.medium();
        let opened = open_on(Arc::new(MemoryDisk::on(&medium)), small()).unwrap();
        assert_eq!(opened.recovered.header_damage, []);
        assert!(opened.records.iter().any(|(_, bytes)| id_of(bytes) == Some(9001)));
        let segments: Vec<u32> = opened.log.segments().iter().map(|s| s.number).collect();
        drop(opened);
        for number in segments {
            let mut medium = medium.clone();
            let file = medium.file(&segment_name(number));
            assert_eq!(file[..48], file[SEGMENT - PAGE..][..48], "segment {number}");
        }
    });
    assert!(states > 300, "{states}");
}
