//! Failed calls and power cuts during writes and reads of runs.

use std::sync::Arc;

use haul_disk::{Disk, Op};
use haul_disk_sim::{Crashes, MemoryDisk, crash_everywhere};
use haul_testing::noise;
use rustix::io::Errno;

use super::{NAME, Pair, open_and_scan, rest, run_of, scan, store_pairs, write};
use crate::error::Error;
use crate::index::runs::cursor::Cursor;
use crate::index::runs::merge_runs::{Output, merge_runs};
use crate::index::runs::source::Source;
use crate::index::runs::writer::RunWriter;

/// Returns the entries of a run that needs several writes.
fn long_pairs() -> Vec<Pair> {
    (0..90_u8).map(|n| (vec![b'k', n], Some(noise(n.into(), 15_000)))).collect()
}

#[test]
fn failed_writes_and_syncs_are_final() {
    let pairs = long_pairs();
    for (op, calls) in [(Op::Create, 1), (Op::Write, 3), (Op::Sync, 1)] {
        for n in 1..=calls {
            let disk = MemoryDisk::default();
            disk.fail_once(op, n, Errno::IO);
            let outcome = write(&disk, NAME, &pairs);
            assert!(matches!(outcome, Err(Error::Disk(_))), "{op:?} {n}: {outcome:?}");
        }
        let disk = MemoryDisk::default();
        disk.fail_once(op, calls + 1, Errno::IO);
        write(&disk, NAME, &pairs).unwrap();
    }

    let disk = MemoryDisk::default();
    disk.fail_once(Op::Write, 2, Errno::NOSPC);
    let mut writer = RunWriter::create(&disk, NAME, 1).unwrap();
    let mut push = |pair: &Pair| writer.push(&pair.0, pair.1.as_deref());
    let failed = pairs.iter().position(|pair| matches!(push(pair), Err(Error::Full { .. })));
    let next = &pairs[failed.expect("a write failed") + 1];
    assert!(matches!(push(next), Err(Error::Invalid { .. })));
    assert!(matches!(writer.finish(), Err(Error::Invalid { .. })));
}

#[test]
fn unsorted_and_oversized_entries_are_refused() {
    let disk = MemoryDisk::default();
    let mut writer = RunWriter::create(&disk, NAME, 1).unwrap();
    writer.push(b"b", None).unwrap();
    let (long_key, long_value) = (vec![b'c'; 5000], vec![0; (1 << 20) + 1]);
    for (key, value) in
        [(&b"b"[..], None), (b"a", None), (b"", None), (&long_key, None), (b"c", Some(&long_value))]
    {
        let outcome = writer.push(key, value.map(|value: &Vec<u8>| &value[..]));
        assert!(matches!(outcome, Err(Error::Invalid { .. })), "{outcome:?}");
    }
    writer.push(b"c", None).unwrap();
    writer.finish().unwrap();
    assert_eq!(open_and_scan(&disk, NAME).unwrap(), [(b"b".to_vec(), None), (b"c".to_vec(), None)]);
}

#[test]
fn failed_read_is_not_damage_and_requires_a_new_seek() {
    let disk = MemoryDisk::default();
    let pairs = store_pairs(2000);
    let run = run_of(&disk, NAME, &pairs);
    let mut cursor = Cursor::new(run, 0);
    cursor.seek(&pairs[0].0).unwrap();
    disk.fail_once(Op::Read, 1, Errno::IO);
    assert!(matches!(rest(&mut cursor), Err(Error::Disk(_))));
    assert_eq!(cursor.current(), None);
    assert!(matches!(cursor.advance(), Err(Error::Invalid { .. })), "entries would be missing");
    cursor.seek(&pairs[1].0).unwrap();
    assert_eq!(rest(&mut cursor).unwrap(), pairs[1..]);
}

#[test]
fn short_transfers_are_continued() {
    let disk = MemoryDisk::default();
    disk.transfer_at_most(1000);
    let pairs = store_pairs(2000);
    assert_eq!(scan(&run_of(&disk, NAME, &pairs)).unwrap(), pairs);
}

#[test]
fn cancelled_merge_has_no_result() {
    let disk = MemoryDisk::default();
    let runs = [run_of(&disk, "1.run", &long_pairs()), run_of(&disk, "2.run", &store_pairs(9000))];
    let (mut calls, output) = (Vec::new(), Output { name: NAME, id: 3 });
    let stop = &mut |written| {
        calls.push(written);
        calls.len() < 3
    };
    assert_eq!(merge_runs(&disk, &runs, output, true, stop).unwrap(), None);
    assert_eq!(calls.len(), 3);
    assert!(calls.is_sorted() && calls[0] >= 500_000, "{calls:?}");
    disk.remove(NAME).unwrap();
    merge_runs(&disk, &runs, output, true, &mut |_| true).unwrap().expect("not cancelled");
}

#[test]
fn merge_of_tombstones_can_be_cancelled() {
    let disk = MemoryDisk::default();
    let thresholds: Vec<Pair> = (0..20_000_u32).map(|n| (n.to_be_bytes().to_vec(), None)).collect();
    let runs = [run_of(&disk, "1.run", &thresholds)];
    let output = Output { name: NAME, id: 3 };
    assert_eq!(merge_runs(&disk, &runs, output, true, &mut |_| false).unwrap(), None);
}

#[test]
fn finished_run_survives_every_power_cut() {
    let pairs = store_pairs(900);
    let workload = |disk: &MemoryDisk| {
        write(disk, NAME, &pairs).unwrap();
        disk.sync_dir("").unwrap();
        disk.note(NAME);
        let run = Arc::new(super::Run::open(disk, NAME).unwrap());
        let output = Output { name: "2.run", id: 8 };
        merge_runs(disk, &[run], output, false, &mut |_| true).unwrap().unwrap();
        disk.sync_dir("").unwrap();
        disk.note("2.run");
    };
    let states = crash_everywhere(&Crashes::default(), workload, |(), crash| {
        let acknowledged: Vec<_> = crash.notes::<&str>().copied().collect();
        for name in [NAME, "2.run"] {
            match open_and_scan(&crash.disk, name) {
                Ok(found) => assert_eq!(found, pairs, "{name}"),
                Err(Error::Damaged { .. }) => assert!(!acknowledged.contains(&name), "{name}"),
                Err(Error::Disk(error)) if error.is_not_found() => {
                    assert!(!acknowledged.contains(&name), "{name}");
                }
                Err(other) => panic!("{name}: {other}"),
            }
        }
    });
    assert!(states > 50, "{states}");
}
