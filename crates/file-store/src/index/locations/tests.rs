//! Compares the table with a model, and measures its growth and false matches.

use haul_testing::Random;
use proptest::prelude::*;

use super::dump::{LoadError, Loader, Snapshot};
use super::*;

/// Returns the hash of a key. With `skew`, most of the first bits are equal.
fn hash_of(key: u64, skew: u32) -> u64 {
    Random(key).number() >> skew
}

/// Returns a table with the hashes of the keys below `count`, and the keys as values.
fn grown(count: u64) -> Locations {
    let mut table = Locations::new();
    for key in 0..count {
        table.insert(hash_of(key, 0), key);
    }
    table
}

fn load(chunks: impl Iterator<Item = Vec<u8>>) -> Result<Locations, LoadError> {
    let mut loader = Loader::new();
    for chunk in chunks {
        loader.add(&chunk)?;
    }
    loader.finish()
}

fn bytes_of(snapshot: Snapshot) -> Vec<u8> {
    snapshot.chunks().flatten().collect()
}

#[test]
fn every_entry_is_found_while_the_table_grows() {
    let mut table = Locations::new();
    for key in 0..600_000 {
        table.insert(hash_of(key, 0), key);
        let earlier = Random(key).below(key + 1);
        assert!(
            table.contains(hash_of(key, 0), key) && table.contains(hash_of(earlier, 0), earlier)
        );
    }
    assert!((0..600_000).all(|key| table.contains(hash_of(key, 0), key)));
    assert!(table.pages.len() > 1 << DEPTH_MIN, "pages were split");
    assert_eq!(table.len(), 600_000);
}

#[test]
fn removed_entries_are_absent_and_free_memory() {
    let mut table = grown(300_000);
    let full = table.heap_bytes();
    for key in 0..300_000 {
        assert!(table.remove(hash_of(key, 0), key), "{key}");
        assert!(!table.remove(hash_of(key, 0), key), "{key}");
    }
    assert_eq!(table.len(), 0);
    assert!(table.heap_bytes() < full / 20, "{} of {full}", table.heap_bytes());
}

#[test]
fn lookup_of_an_absent_hash_rarely_matches() {
    let table = grown(1_000_000);
    let absent = (1_000_000..2_000_000).map(|key| hash_of(key, 0));
    let matches: usize = absent.map(|hash| table.matches(hash).count()).sum();
    assert!(matches < 20, "{matches} false matches of 1,000,000 lookups");
}

#[test]
fn memory_of_an_entry_is_bounded() {
    assert!(Locations::new().heap_bytes() < 45_000);
    let mut table = grown(0);
    let (mut sum, mut sizes) = (0.0, 0.0);
    for key in 0..1_200_000 {
        table.insert(hash_of(key, 0), key);
        // Sizes from one step of growth to the next, at equal ratios.
        if key >= 600_000 && key.is_multiple_of(key / 64) {
            sum += table.heap_bytes() as f64 / table.len() as f64;
            sizes += 1.0;
        }
    }
    let average = sum / sizes;
    assert!(average < 6.8, "{average} bytes per entry");
    let pages: usize = table.pages.iter().map(|page| page.heap_bytes()).sum();
    assert_eq!(table.page_bytes, pages);
}

#[test]
fn page_of_equal_hashes_grows_without_a_large_directory() {
    let mut table = Locations::new();
    for value in 0..20_000 {
        table.insert(7, value);
    }
    let mut found: Vec<u64> = table.matches(7).collect();
    found.sort_unstable();
    assert!(found.into_iter().eq(0..20_000));
    assert!(table.directory.len() <= 8192, "{}", table.directory.len());
    let loaded = load(table.snapshot().chunks()).unwrap();
    assert!((0..20_000).all(|value| loaded.contains(7, value)));
}

#[test]
fn values_of_any_length_fit_into_a_small_table() {
    let mut table = Locations::new();
    let value = |key: u64| (1 << VALUE_BITS) - 1 - key;
    for key in 0..3000 {
        table.insert(hash_of(key, 0), key);
        assert!(table.replace(hash_of(key, 0), key, value(key)));
    }
    let loaded = load(table.snapshot().chunks()).unwrap();
    for key in 0..3000 {
        let found = [&table, &loaded].map(|table| table.contains(hash_of(key, 0), value(key)));
        assert_eq!((found, table.contains(hash_of(key, 0), key)), ([true; 2], false));
    }
    assert!((0..3000).all(|key| table.remove(hash_of(key, 0), value(key))));
}

#[test]
fn loaded_table_equals_the_dumped_one() {
    let table = grown(300_000);
    let snapshot = table.snapshot();
    assert_eq!(snapshot.len(), 300_000);
    let chunks: Vec<Vec<u8>> = snapshot.chunks().collect();
    assert!(chunks.iter().all(|chunk| chunk.len() < 300 << 10));
    let loaded = load(chunks.clone().into_iter()).unwrap();
    assert_eq!(loaded.len(), 300_000);
    assert_eq!(bytes_of(loaded.snapshot()), chunks.concat());
    assert!((0..300_000).all(|key| loaded.contains(hash_of(key, 0), key)));
    assert!(loaded.heap_bytes() <= table.heap_bytes());
}

#[test]
fn inconsistent_dump_is_an_error() {
    let mut table = grown(0);
    table.insert(5, 9);
    table.insert(4 << 40, 8);
    let good = bytes_of(table.snapshot());
    // The first page has both entries, and the other pages have only a header of 16 bytes.
    let first = good.len() - 255 * 16;
    assert_eq!(first, 16 + 33 * 8 + 8);
    let damaged = |change: fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        load([bytes].into_iter()).map(|table| table.len())
    };
    assert_eq!(damaged(|_| {}), Ok(2));
    assert_eq!(damaged(|bytes| bytes.truncate(bytes.len() - 1)), Err(LoadError::Truncated));
    assert_eq!(damaged(|bytes| bytes.truncate(bytes.len() - 16)), Err(LoadError::Incomplete));
    assert_eq!(damaged(|bytes| bytes.clear()), Err(LoadError::Incomplete));
    assert_eq!(damaged(|bytes| drop(bytes.drain(288..304))), Err(LoadError::Range), "a page less");
    assert_eq!(damaged(|bytes| bytes[0] = 1), Err(LoadError::Range));
    assert_eq!(damaged(|bytes| bytes[8] = 3), Err(LoadError::Entries), "an entry too many");
    assert_eq!(damaged(|bytes| bytes[11] = 0xff), Err(LoadError::Truncated));
    assert_eq!(damaged(|bytes| bytes[12] = 41), Err(LoadError::Depth));
    assert_eq!(damaged(|bytes| bytes[14] = 0), Err(LoadError::Values));
    assert_eq!(damaged(|bytes| bytes[14] = 47), Err(LoadError::Values));
    assert_eq!(damaged(|bytes| bytes[16] ^= 0x40), Err(LoadError::Entries), "groups");
    assert_eq!(damaged(|bytes| bytes[287] = 1), Err(LoadError::Entries), "behind the slots");
    assert_eq!(damaged(|bytes| bytes.extend_from_slice(&[0; 16])), Err(LoadError::Depth));
}

#[test]
fn example_of_the_format_page_is_correct() {
    let mut table = Locations::new();
    for (remainder, value) in [(9, 1), (5, 6)] {
        // Group 1 of the page of depth 8 whose hashes start with zeros.
        table.insert((1 << (64 - 8 - 11)) | (remainder << (64 - HASH_BITS)), value);
    }
    let bytes = bytes_of(table.snapshot());
    let words: Vec<u64> =
        bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let (header, groups, slots) = (&words[..2], &words[2..35], words[35]);
    assert_eq!(header, [0, 2 | (8 << 32) | (3 << 48)]);
    assert_eq!((groups[0], groups[1..].iter().max()), (6, Some(&0)));
    assert_eq!(slots, 46 + (73 << 22));
}

#[test]
fn dump_with_too_large_a_directory_is_an_error() {
    let mut chunk = Vec::new();
    let mut next: u64 = 0;
    // The ranges fit, but a directory of depth 27 would use 512 MiB.
    for depth in std::iter::once(27_u16).chain((9..=27).rev()).chain([8; 255]) {
        chunk.extend_from_slice(&next.to_le_bytes());
        chunk.extend_from_slice(&0_u32.to_le_bytes());
        chunk.extend_from_slice(&depth.to_le_bytes());
        chunk.extend_from_slice(&1_u16.to_le_bytes());
        next = next.wrapping_add(1 << (64 - depth));
    }
    assert_eq!(next, 0);
    let error = load([chunk].into_iter()).map(|table| table.len()).unwrap_err();
    assert_eq!(error, LoadError::Depth);
}

#[derive(Debug, Clone)]
enum Change {
    Insert,
    Remove,
    Replace,
    Snapshot,
    Reload,
}

fn changes() -> impl Strategy<Value = Vec<(Change, u64)>> {
    let change = prop_oneof![
        60 => Just(Change::Insert),
        20 => Just(Change::Remove),
        20 => Just(Change::Replace),
        1 => Just(Change::Snapshot),
        1 => Just(Change::Reload),
    ];
    prop::collection::vec((change, 0_u64..400), 0..4000)
}

/// Returns a value that contains the key, so that a false match of another key is detected.
fn value_of(key: u64, number: usize) -> u64 {
    (key << 20) | (number as u64 % 4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn table_behaves_as_a_list_of_entries(changes in changes(), skew in prop::sample::select(vec![0_u32, 4, 10, 40, 60])) {
        let mut table = Locations::new();
        let mut model: Vec<(u64, u64)> = Vec::new();
        let mut dumped = None;
        for (number, (change, key)) in changes.into_iter().enumerate() {
            let (hash, value) = (hash_of(key, skew), value_of(key, number));
            let known = model.iter().position(|entry| *entry == (key, value));
            prop_assert_eq!(table.contains(hash, value), known.is_some());
            match change {
                Change::Insert => {
                    table.insert(hash, value);
                    model.push((key, value));
                }
                Change::Remove => {
                    prop_assert_eq!(table.remove(hash, value), known.is_some());
                    known.map(|at| model.swap_remove(at));
                }
                Change::Replace => {
                    let new = value_of(key, number + 1);
                    prop_assert_eq!(table.replace(hash, value, new), known.is_some());
                    if let Some(at) = known {
                        model[at].1 = new;
                    }
                }
                Change::Snapshot => {
                    let snapshot = table.snapshot();
                    dumped = Some((bytes_of(table.snapshot()), snapshot));
                }
                Change::Reload => table = load(table.snapshot().chunks()).unwrap(),
            }
        }
        if let Some((bytes, snapshot)) = dumped {
            prop_assert_eq!(bytes_of(snapshot), bytes, "a snapshot never changes");
        }
        prop_assert_eq!(table.len(), model.len() as u64);
        for key in 0..400 {
            let found = table.matches(hash_of(key, skew)).filter(|value| value >> 20 == key);
            let mut found: Vec<u64> = found.collect();
            let mut expected: Vec<u64> =
                model.iter().filter(|entry| entry.0 == key).map(|entry| entry.1).collect();
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn no_bytes_make_the_loader_panic(
        changed in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        random in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = bytes_of(grown(500).snapshot());
        for (at, byte) in changed {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let first = cut.index(bytes.len());
        let whole = load([bytes[..first].to_vec(), bytes[first..].to_vec()].into_iter());
        if let Ok(table) = whole {
            prop_assert_eq!(&bytes_of(table.snapshot()), &bytes);
        }
        bytes.truncate(first);
        bytes.extend(random);
        drop(load([bytes].into_iter()));
    }
}
