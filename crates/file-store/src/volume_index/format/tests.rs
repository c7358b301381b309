//! Tests for the format of volume indexes.

use proptest::prelude::*;

use super::*;
use crate::clock::Version;
use crate::format::Kind;
use crate::object::Etag;

const VOLUME: VolumeId = VolumeId { number: 3, nonce: 99 };

fn head(key: &str) -> Head {
    Head {
        kind: Kind::Object,
        version: Version(7),
        bucket: "photos".to_owned(),
        key: key.to_owned(),
        bytes: 5,
        etag: Etag { md5: [7; 16], parts: 0 },
        part: 0,
        upload: 0,
        files: Vec::new(),
        is_versioned: false,
        blocks: Box::default(),
    }
}

fn at(offset: u32) -> Position {
    Position { lsn: Lsn::new(VOLUME.number, offset), payload_bytes: 90 }
}

fn predecessor(offset: u32) -> Predecessor {
    let file = FilePart { id: 7, bytes: 9 };
    let replaced = |files: Vec<FilePart>| Replaced {
        at: Position { lsn: Lsn::new(1, 8192), payload_bytes: 900 },
        bytes: 800,
        files: files.into_boxed_slice(),
    };
    match offset {
        4096 => Predecessor::None,
        4224 => Predecessor::Object(replaced(Vec::new())),
        4352 => Predecessor::Object(replaced(vec![file, file])),
        _ => Predecessor::Unknown,
    }
}

fn block(out: &mut Vec<u8>, kind: BlockKind, (from, to): (u32, u32), keys: &[(u32, &str)]) {
    let mut entries = Vec::new();
    for (offset, key) in keys {
        push_entry(&mut entries, at(*offset), &head(key), &predecessor(*offset));
    }
    let needles = if kind == BlockKind::Complete { 3 } else { u32::try_from(keys.len()).unwrap() };
    Block { kind, from, to, needles, entries: &entries }.encode(VOLUME, out);
}

/// Returns two blocks of heads and the mark that the volume is complete.
fn complete() -> Vec<u8> {
    let mut bytes = Vec::new();
    block(&mut bytes, BlockKind::Heads, (4096, 4352), &[(4096, "a"), (4224, "b")]);
    block(&mut bytes, BlockKind::Heads, (4352, 4480), &[(4352, "c")]);
    block(&mut bytes, BlockKind::Complete, (4480, 4480), &[]);
    bytes
}

#[test]
fn index_round_trips() {
    let index = decode(&complete(), 3, Some(99), 0).unwrap();
    let keys: Vec<&str> = index.needles.iter().map(|needle| &*needle.head.key).collect();
    for needle in &index.needles {
        assert_eq!(needle.predecessor, predecessor(needle.at.lsn.offset()));
    }
    assert_eq!((keys, index.is_complete, index.end), (vec!["a", "b", "c"], true, Some(4480)));
    assert_eq!(decode(&complete(), 3, None, 0), Some(index), "the nonce is in each block");
    assert!(decode(&complete(), 3, Some(98), 0).is_none());
    assert!(decode(&complete(), 2, Some(99), 0).is_none());
}

#[test]
fn skipped_needles_are_counted() {
    let whole = decode(&complete(), 3, Some(99), 0).unwrap();
    let index = decode(&complete(), 3, Some(99), 4352).unwrap();
    assert_eq!((index.needles.len(), index.count, index.is_complete), (1, 3, true));
    assert_eq!((&index.needles[..], index.covered), (&whole.needles[2..], whole.covered));
}

#[test]
fn flipped_byte_invalidates_only_its_block() {
    let whole = decode(&complete(), 3, Some(99), 0).unwrap();
    let bytes = complete();
    for byte in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[byte] ^= 1;
        let index = decode(&bad, 3, Some(99), 0).unwrap();
        if index == whole {
            continue;
        }
        assert!(!index.is_complete, "byte {byte}");
        for IndexedNeedle { at, head, .. } in &whole.needles {
            let is_known = index.needles.iter().any(|found| found.head.key == head.key);
            let is_covered = index.covered.intersects(at.lsn.offset(), at.lsn.offset() + 1);
            assert_eq!(is_known, is_covered, "byte {byte}: {}", head.key);
        }
        assert!(!index.needles.is_empty(), "byte {byte} invalidates one block");
    }
}

#[test]
fn mark_of_the_end_is_valid_only_as_the_last_block() {
    let mut bytes = Vec::new();
    block(&mut bytes, BlockKind::Heads, (4096, 4224), &[(4096, "a")]);
    let kept = bytes.len() as u64;
    block(&mut bytes, BlockKind::Closed, (4224, 4224), &[]);
    let index = decode(&bytes, 3, Some(99), 0).unwrap();
    assert_eq!((index.end, index.kept_bytes, index.is_complete), (Some(4224), kept, false));
    for (end, needles_end) in [(4256, 4224), (4264, 4264)] {
        let mut idle = bytes[..bytes.len() - BLOCK_ALIGN].to_vec();
        block(&mut idle, BlockKind::Closed, (end, end), &[]);
        let index = decode(&idle, 3, Some(99), 0).unwrap();
        assert_eq!(index.end, Some(needles_end), "only a watermark has no needle");
    }
    block(&mut bytes, BlockKind::Heads, (4224, 4352), &[(4224, "b")]);
    assert_eq!(decode(&bytes, 3, Some(99), 0).unwrap().end, None);
    let mut torn = bytes.clone();
    let last = bytes.len() - BLOCK_ALIGN;
    torn[last] ^= 1;
    assert_eq!(decode(&torn, 3, Some(99), 0).unwrap().end, None, "an unknown block follows");
}

#[test]
fn block_that_overlaps_an_earlier_one_is_ignored() {
    let mut bytes = Vec::new();
    block(&mut bytes, BlockKind::Heads, (4096, 4352), &[(4096, "a"), (4224, "b")]);
    let first = decode(&bytes, 3, Some(99), 0).unwrap();
    block(&mut bytes, BlockKind::Heads, (4224, 4480), &[(4224, "x"), (4352, "c")]);
    assert_eq!(decode(&bytes, 3, Some(99), 0), Some(first));
}

#[test]
fn malformed_entries_with_a_matching_checksum_cover_nothing() {
    let mut whole = Vec::new();
    push_entry(&mut whole, at(4096), &head("a"), &predecessor(4352));
    for end in 1..=whole.len() {
        let (mut bytes, entries) = (Vec::new(), &whole[..end]);
        let kind = BlockKind::Heads;
        Block { kind, from: 4096, to: 4224, needles: 1, entries }.encode(VOLUME, &mut bytes);
        let index = decode(&bytes, 3, Some(99), 0).unwrap();
        let found = (index.needles.len(), index.covered.intersects(4096, 4224));
        assert_eq!(found, if end == whole.len() { (1, true) } else { (0, false) }, "{end}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..2000),
        has_magic in any::<bool>(),
    ) {
        if has_magic && bytes.len() > 64 {
            bytes[..8].copy_from_slice(&MAGIC);
            bytes[12..16].copy_from_slice(&3_u32.to_le_bytes());
            let end = bytes.len();
            bytes[40..44].copy_from_slice(&u32::try_from(end - 48).unwrap().to_le_bytes());
            let checksum = haul_crc::crc32c(&bytes[12..end]);
            bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
        }
        drop(decode(&bytes, 3, None, 0));
    }
}
