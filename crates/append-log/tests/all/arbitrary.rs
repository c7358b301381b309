//! Tests that opening a log with arbitrary file contents terminates, does not panic, and delivers
//! only records that were appended.

use std::sync::Arc;

use haul_append_log::{SpacePriority, segment_name};
use haul_disk::Op;
use haul_disk_sim::{Medium, MemoryDisk};
use proptest::prelude::*;

use crate::damage::set_header;
use crate::payload::{ids, payload};
use crate::recovery::report;
use crate::{open_on, put, small};

/// Creates a log with thirty records in two segments.
fn log() -> Medium {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    for id in 0..30 {
        put(&log, &payload(id, if id < 20 { 55_000 } else { 100 }));
    }
    let medium = disk.medium();
    drop(log);
    medium
}

/// A change to the bytes of a file.
#[derive(Debug, Clone)]
enum Change {
    Set {
        at: prop::sample::Index,
        bytes: Vec<u8>,
    },
    Zero {
        at: prop::sample::Index,
        bytes: usize,
    },
    Copy {
        from: prop::sample::Index,
        to: prop::sample::Index,
        bytes: usize,
    },
    Cut {
        at: prop::sample::Index,
    },
    /// Sets a number in both copies of the header, and updates the checksums.
    Header {
        at: usize,
        value: u32,
    },
}

fn change() -> impl Strategy<Value = Change> {
    let place = any::<prop::sample::Index>;
    prop_oneof![
        (place(), prop::collection::vec(any::<u8>(), 1..200))
            .prop_map(|(at, bytes)| Change::Set { at, bytes }),
        (place(), 1..100_000usize).prop_map(|(at, bytes)| Change::Zero { at, bytes }),
        (place(), place(), 1..100_000usize).prop_map(|(from, to, bytes)| Change::Copy {
            from,
            to,
            bytes
        }),
        place().prop_map(|at| Change::Cut { at }),
        (prop::sample::select(vec![8usize, 16, 20, 24, 28, 32, 36]), any::<u32>())
            .prop_map(|(at, value)| Change::Header { at, value }),
    ]
}

impl Change {
    fn apply(&self, file: &mut Vec<u8>) {
        let length = file.len();
        let Some(end) = length.checked_sub(1) else { return };
        // Half of the positions are inside records.
        let place = |index: &prop::sample::Index| {
            let at = index.index(2 * length);
            if at < length { at } else { 4096 + (at - length) % 8192 }.min(end)
        };
        match self {
            Self::Set { at, bytes } => {
                let at = place(at);
                let bytes = &bytes[..bytes.len().min(length - at)];
                file[at..at + bytes.len()].copy_from_slice(bytes);
            }
            Self::Zero { at, bytes } => {
                let at = place(at);
                file[at..(at + bytes).min(length)].fill(0);
            }
            Self::Copy { from, to, bytes } => {
                let (from, to) = (place(from), place(to));
                let bytes = (*bytes).min(length - from.max(to));
                file.copy_within(from..from + bytes, to);
            }
            Self::Cut { at } => file.truncate(place(at)),
            Self::Header { at, value } => {
                for copy in [0, 2048] {
                    if let Some(copy) = file.get_mut(copy..copy + 48) {
                        set_header(copy, *at, *value);
                    }
                }
            }
        }
    }
}

/// Opens the log with each value of `on_damage`, and asserts that only appended records are
/// delivered.
fn open_with_each_damage_mode(medium: &Medium) {
    for options in [small(), report()] {
        let disk = MemoryDisk::on(medium);
        if let Ok(opened) = open_on(Arc::new(disk.clone()), options.clone()) {
            let found = ids(&opened.records);
            assert!(found.keys().all(|id| *id < 30));
            // Appending continues to work.
            put(&opened.log, &payload(30, 60));
            drop(opened);
            let again = open_on(Arc::new(disk), options).unwrap();
            assert_eq!(again.records.len(), found.len() + 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_changes_never_deliver_foreign_records(
        changes in prop::collection::vec((1..=2u32, change()), 1..6),
    ) {
        let mut medium = log();
        for (number, change) in &changes {
            change.apply(&mut medium.file(&segment_name(*number)));
        }
        open_with_each_damage_mode(&medium);
    }

    #[test]
    fn segment_of_arbitrary_bytes_delivers_nothing(
        keeps_header: bool,
        bytes in prop::collection::vec(any::<u8>(), 0..20_000),
    ) {
        let mut medium = log();
        let mut file = medium.file(&segment_name(2));
        file.truncate(if keeps_header { 4096 } else { 0 });
        file.extend_from_slice(&bytes);
        file.resize(1 << 20, 0);
        drop(file);
        open_with_each_damage_mode(&medium);
    }
}

#[test]
fn payload_of_forged_headers_does_not_slow_down_recovery() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let first = put(&log, &payload(0, 32));
    // The payload contains a record header every 32 bytes. Each header declares a record that
    // extends to the end of the segment. Its LSN and length are valid, but not its tag and its
    // checksums.
    let at = first.lsn.0 + 64;
    let mut fakes = Vec::new();
    for lsn in (at + 32..).step_by(32).take(1700) {
        let rest = u32::try_from((1 << 20) - (lsn & 0xffff_ffff) - 32).unwrap();
        fakes.extend(1u32.to_le_bytes());
        fakes.extend(rest.to_le_bytes());
        fakes.extend(lsn.to_le_bytes());
        fakes.extend(lsn.to_le_bytes());
        fakes.extend(1u64.to_le_bytes());
    }
    let second = log.append(&[&fakes], SpacePriority::Ordinary).unwrap().wait().unwrap();
    assert_eq!(second.lsn.0, at);
    let mut medium = disk.medium();
    drop(log);
    // The record was torn by a power cut.
    medium.file(&segment_name(1))[usize::try_from(at & 0xffff_ffff).unwrap()] ^= 1;
    let disk = MemoryDisk::on(&medium);
    let opened = open_on(Arc::new(disk.clone()), small()).unwrap();
    assert_eq!(opened.records.len(), 1);
    assert!(opened.recovered.torn_bytes > 50_000);
    assert!(disk.calls(Op::Read) < 10, "{} reads", disk.calls(Op::Read));
}
