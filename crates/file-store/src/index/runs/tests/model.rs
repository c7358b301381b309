//! Compares runs and merges with sorted maps.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_disk_sim::MemoryDisk;
use haul_testing::noise;
use proptest::prelude::*;

use super::{Pair, rest, run_of};
use crate::index::runs::cursor::Cursor;
use crate::index::runs::format::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::index::runs::merge::{Deletions, Merged};
use crate::index::runs::merge_runs::{Output, merge_runs};
use crate::index::runs::run::{Buffers, Run};
use crate::index::runs::source::{SliceSource, Source};

type Map = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Generates keys with long common prefixes, few enough that generations have common keys.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just(b"a".to_vec()),
        Just(b"b\0".to_vec()),
        Just(vec![b'x'; 300]),
        Just(vec![0xff]),
        any::<u8>().prop_map(|byte| vec![byte]),
    ];
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.concat())
}

fn value() -> impl Strategy<Value = Option<Vec<u8>>> {
    let bytes = prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..45),
        2 => (any::<u8>(), 1000..9000_usize).prop_map(|(byte, bytes)| vec![byte; bytes]),
        1 => (any::<u8>(), 16_000..40_000_usize).prop_map(|(byte, bytes)| vec![byte; bytes]),
        1 => (any::<u64>(), 9000..20_000_usize).prop_map(|(seed, bytes)| noise(seed, bytes)),
    ];
    prop::option::weighted(0.8, bytes)
}

fn generation() -> impl Strategy<Value = Map> {
    prop::collection::btree_map(key(), value(), 0..60)
}

fn pairs(map: &Map) -> Vec<Pair> {
    map.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Merges generations, given from newest to oldest.
fn merged_map(generations: &[Map], deletions: Deletions) -> Map {
    let mut map = Map::new();
    for generation in generations.iter().rev() {
        map.extend(generation.clone());
    }
    map.retain(|_, value| deletions == Deletions::Deliver || value.is_some());
    map
}

/// Checks that seeks in this order, and steps after them, find the entries of a map.
fn check_seeks(source: &mut impl Source, map: &Map, seeks: &[(Vec<u8>, usize)]) {
    for (target, steps) in seeks {
        source.seek(target).unwrap();
        let mut expected = map.range(target.clone()..);
        for step in 0..=*steps {
            let entry = expected.next();
            assert_eq!(source.key(), entry.map(|entry| &entry.0[..]), "step {step}");
            assert_eq!(source.value(), entry.and_then(|entry| entry.1.as_deref()));
            source.advance().unwrap();
        }
    }
}

fn cursors(runs: &[Arc<Run>], readahead_bytes_max: usize) -> Vec<Cursor> {
    runs.iter().map(|run| Cursor::new(Arc::clone(run), readahead_bytes_max)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn run_contains_the_written_entries(
        map in generation(),
        seeks in prop::collection::vec((key(), 0..20_usize), 0..20),
        readahead in prop::sample::select(vec![0, 40_000, 1 << 20]),
    ) {
        let run = run_of(&MemoryDisk::default(), "run", &pairs(&map));
        let mut cursor = Cursor::new(Arc::clone(&run), readahead);
        prop_assert_eq!(cursor.key(), None);
        cursor.advance().unwrap();
        prop_assert_eq!(rest(&mut cursor).unwrap(), pairs(&map));
        check_seeks(&mut cursor, &map, &seeks);
        let mut buffers = Buffers::default();
        for key in map.keys().chain(seeks.iter().map(|seek| &seek.0)) {
            let expected = map.get(key).map(|value| value.as_deref());
            prop_assert_eq!(run.get(key, &mut buffers).unwrap(), expected);
        }
    }

    #[test]
    fn merge_delivers_the_newest_entry_of_each_key(
        generations in prop::collection::vec(generation(), 0..7),
        seeks in prop::collection::vec((key(), 0..20_usize), 0..10),
        drop_deletions in any::<bool>(),
    ) {
        let disk = MemoryDisk::default();
        let deletions = if drop_deletions { Deletions::Drop } else { Deletions::Deliver };
        let expected = merged_map(&generations, deletions);
        let lists: Vec<_> = generations.iter().map(pairs).collect();
        let run = |(n, list): (usize, &Vec<Pair>)| run_of(&disk, &format!("{n}.run"), list);
        let runs: Vec<_> = lists.iter().enumerate().map(run).collect();

        let mut merged = Merged::new(cursors(&runs, 0), deletions);
        merged.advance().unwrap();
        prop_assert_eq!(rest(&mut merged).unwrap(), pairs(&expected));
        check_seeks(&mut merged, &expected, &seeks);

        // The newest generation is in memory, as in a running store.
        let mut sources: Vec<Box<dyn Source + '_>> = Vec::new();
        for (list, cursor) in lists.iter().zip(cursors(&runs, 1 << 20)) {
            match sources.is_empty() {
                true => sources.push(Box::new(SliceSource::new(list))),
                false => sources.push(Box::new(cursor)),
            }
        }
        let mut merged = Merged::new(sources, deletions);
        check_seeks(&mut merged, &expected, &seeks);

        let output = Output { name: "merged", id: 9 };
        let info = merge_runs(&disk, &runs, output, drop_deletions, &mut |_| true);
        let info = info.unwrap().expect("the merge is not cancelled");
        let run = Arc::new(Run::open(&disk, "merged").unwrap());
        prop_assert_eq!(&info, run.info());
        prop_assert_eq!(super::scan(&run).unwrap(), pairs(&expected));
    }
}

#[test]
fn longest_keys_and_values_are_stored() {
    let long = |byte: u8, length: usize| vec![byte; length];
    let pairs = vec![
        (long(b'a', 1100), Some(long(1, 300 << 10))),
        (long(b'a', 1101), None),
        (long(b'b', KEY_BYTES_MAX), Some(long(2, VALUE_BYTES_MAX))),
        (long(b'c', 1), Some(Vec::new())),
        (long(b'c', KEY_BYTES_MAX), Some(long(3, 40))),
    ];
    let run = run_of(&MemoryDisk::default(), "run", &pairs);
    assert_eq!(super::scan(&run).unwrap(), pairs);
    let mut buffers = Buffers::default();
    for (key, value) in &pairs {
        assert_eq!(run.get(key, &mut buffers).unwrap(), Some(value.as_deref()));
    }
}

#[test]
fn empty_run_has_no_entries() {
    let run = run_of(&MemoryDisk::default(), "run", &[]);
    assert_eq!(super::scan(&run).unwrap(), []);
    assert_eq!(run.get(b"key", &mut Buffers::default()).unwrap(), None);
    let mut cursor = Cursor::new(run, 0);
    cursor.seek(b"key").unwrap();
    assert_eq!(cursor.current(), None);
}
