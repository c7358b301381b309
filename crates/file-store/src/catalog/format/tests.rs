//! Tests for the checkpoint format.

use std::collections::BTreeMap;

use super::*;
use crate::index::hash::KeyHash;
use crate::index::keys::Keys;
use crate::object::Etag;

fn empty() -> Index {
    Index::new(Keys::default(), KeyHash { secret: [1, 2] }, 1 << 20)
}

fn at(volume: u32) -> Position {
    Position { lsn: Lsn::new(volume, 4096), payload_bytes: 100 }
}

fn nonce(volume: u32) -> u64 {
    u64::from(volume) << 40
}

/// Returns an index with each part of the state, with and without its optional fields.
fn index() -> Index {
    let mut index = empty();
    index.newest = Version(u64::MAX);
    for (name, at) in [("kept", Some(at(1))), ("lost", None)] {
        let bucket = Bucket { created: Version(7), position: at, objects: 3, bytes: 1 << 40 };
        index.buckets.insert(name.into(), bucket);
    }
    let part = Entry {
        is_versioned: false,
        version: Version(0x0102_0304_0506_0708),
        at: at(2),
        bytes: 5,
        etag: Etag { md5: [7; 16], parts: 0 },
        files: Box::new([FilePart { id: 5, bytes: 9 }]),
    };
    let upload = Upload {
        started: Version(8),
        at: Some(at(2)),
        parts: BTreeMap::from([(1, part.clone()), (u16::MAX, part)]),
    };
    index.uploads.insert(UploadName::new("kept", "gr\u{fc}n", u128::MAX), upload);
    index.files.hold(&[FilePart { id: 5, bytes: 9 }; 2]);
    index.volumes.add_live(at(1));
    index.addresses.assign(at(1)).unwrap();
    index.volumes.add_tombstone(at(2), 81);
    index
}

#[test]
fn state_round_trips_and_no_prefix_of_it_is_valid() {
    let state = encode_state(&index(), nonce);
    let mut decoded = empty();
    let volumes = decode_state(&state, &mut decoded).unwrap();
    assert_eq!(encode_state(&decoded, nonce), state);
    let ranges: Vec<_> =
        volumes.iter().map(|volume| (volume.number, volume.nonce, volume.range)).collect();
    let range = AddressRange { volume: 1, base: 0, bytes: 1 << 20 };
    assert_eq!(ranges, [(1, 1 << 40, Some(range)), (2, 2 << 40, None)]);
    assert_eq!((decoded.buckets.get("lost").unwrap().position, decoded.files.bytes()), (None, 9));
    for end in 0..state.len() {
        assert!(decode_state(&state[..end], &mut empty()).is_none(), "{end} bytes");
    }
    assert!(decode_state(&[&state[..], b"x"].concat(), &mut empty()).is_none());
}

#[test]
fn volumes_with_overlapping_addresses_are_malformed() {
    for (base, is_valid) in [(4096, true), (4088, false), (1 << 46, false)] {
        // No needles, buckets, uploads and big files; two volumes.
        let mut state = vec![0, 0, 0, 0, 2];
        for (number, base) in [(1, 0), (2, base)] {
            let range = Some(AddressRange { volume: number, base, bytes: 4096 });
            let volume = Volume::default();
            put_volume(&mut state, CatalogVolume { number, nonce: 0, volume, range });
        }
        assert_eq!(decode_state(&state, &mut empty()).is_some(), is_valid, "{base}");
    }
}

#[test]
fn changes_round_trip_and_impossible_locations_are_malformed() {
    let change = |removed: Option<u64>, inserted: Option<u64>| LocationChange {
        hash: u64::MAX,
        removed: removed.map(Location),
        inserted: inserted.map(Location),
    };
    let changes = [change(None, Some((1 << 46) - 1)), change(Some(0), None)];
    let bytes = encode_changes(&changes);
    assert_eq!(decode_changes(&bytes).as_deref(), Some(&changes[..]));
    for end in 0..bytes.len() {
        let whole = end.is_multiple_of(24).then(|| changes[..end / 24].to_vec());
        assert_eq!(decode_changes(&bytes[..end]), whole, "{end} bytes");
    }
    for bad in [change(Some(1 << 46), None), change(None, Some(u64::MAX - 1))] {
        assert_eq!(decode_changes(&encode_changes(&[bad])), None, "{bad:?}");
    }
}

#[test]
fn catalog_round_trips_and_every_flipped_bit_is_detected() {
    let catalog = Catalog {
        applied: Lsn::new(3, 4096),
        secret: [u64::MAX, 0],
        last_file: 300,
        runs: vec![9, 200],
        locations: 4,
        changes: vec![5],
        change_count: 1 << 20,
        state: b"state".to_vec(),
    };
    let good = catalog.encode();
    assert_eq!(catalog.files().collect::<Vec<_>>(), [9, 200, 5, 4]);
    assert_eq!(Catalog::decode(&good), Some(catalog));
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Catalog::decode(&bad), None, "bit {bit}");
    }
    for end in 0..good.len() {
        assert_eq!(Catalog::decode(&good[..end]), None, "{end} bytes");
    }
    let mut later = good;
    later[HEADER_BYTES] = 2;
    let checksum = haul_crc::crc32c(&later[HEADER_BYTES..]);
    later[8..12].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(Catalog::decode(&later), None, "a later version");
}
