//! Damaged files yield errors, never wrong entries.

use haul_disk_sim::MemoryDisk;
use haul_testing::noise;
use proptest::prelude::*;

use super::{NAME, Pair, bytes_of, disk_with, open_and_scan, run_of, store_pairs, write};
use crate::error::Error;
use crate::index::runs::block::{Block, BlockPosition};
use crate::index::runs::block_index::BlockIndex;
use crate::index::runs::format::{
    CHECKSUM_BYTES, FOOTER_BYTES, Footer, Malformed, push_index_entry, push_number, seal_block,
};
use crate::index::runs::merge_runs::{Output, merge_runs};
use crate::index::runs::packed::{Packer, unpack};

fn small_run() -> (Vec<Pair>, Vec<u8>) {
    let mut pairs = store_pairs(40);
    // Several blocks; one has a single entry.
    pairs[10].1 = Some(noise(1, 9000));
    pairs[11].1 = Some(vec![2; 20_000]);
    let disk = MemoryDisk::default();
    write(&disk, NAME, &pairs).unwrap();
    (pairs, bytes_of(&disk, NAME))
}

#[test]
fn any_changed_byte_is_detected() {
    let (pairs, bytes) = small_run();
    assert_eq!(open_and_scan(&disk_with(NAME, &bytes), NAME).unwrap(), pairs);
    for at in 0..bytes.len() {
        let disk = disk_with(NAME, &bytes);
        disk.rot(NAME, at as u64, at.to_le_bytes()[0] % 8);
        match open_and_scan(&disk, NAME) {
            Err(Error::Damaged { file, offset, .. }) => {
                assert!(file.ends_with(NAME) && offset <= at as u64, "{offset} for {at}");
            }
            other => panic!("byte {at}: {:?}", other.map(|found| found == pairs)),
        }
    }
}

#[test]
fn truncated_run_is_detected() {
    let (_, bytes) = small_run();
    for length in (0..bytes.len()).rev().step_by(7).chain([0, 1, FOOTER_BYTES - 1]) {
        let outcome = open_and_scan(&disk_with(NAME, &bytes[..length]), NAME);
        assert!(matches!(outcome, Err(Error::Damaged { .. })), "{length} bytes");
    }
}

#[test]
fn misplaced_block_is_detected() {
    // All blocks have the same length.
    let pairs: Vec<Pair> =
        (0..9_u8).map(|n| (vec![n + 1], Some(noise(n.into(), 16_000)))).collect();
    let disk = MemoryDisk::default();
    let run = run_of(&disk, NAME, &pairs);
    let [one, two, three] = [1, 2, 3].map(|n| usize::try_from(run.index().offset(n)).unwrap());
    let mut bytes = bytes_of(&disk, NAME);
    bytes.copy_within(two..three, one);
    let outcome = open_and_scan(&disk_with(NAME, &bytes), NAME);
    assert!(matches!(outcome, Err(Error::Damaged { offset, .. }) if offset == one as u64));
}

#[test]
fn merge_of_a_damaged_run_fails() {
    let disk = MemoryDisk::default();
    let runs = ["1.run", "2.run"].map(|name| run_of(&disk, name, &store_pairs(900)));
    disk.rot("2.run", runs[1].index().offset(1) + 100, 3);
    let output = Output { name: NAME, id: 3 };
    match merge_runs(&disk, &runs, output, true, &mut |_| true) {
        Err(Error::Damaged { file, offset, .. }) => {
            assert!(file.ends_with("2.run") && offset == runs[1].index().offset(1));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn bytes_of_a_run_match_the_format_page() {
    let pairs = [(b"a/b".to_vec(), Some(b"v".to_vec())), (b"a/c".to_vec(), None)];
    let disk = MemoryDisk::default();
    write(&disk, NAME, &pairs).unwrap();
    let bytes = bytes_of(&disk, NAME);
    let keys = b"\x0a\x0a\x00\x03\x02a/b\x02\x01\x00c";
    let values = b"\x01\x01v";
    let place = [&7_u64.to_le_bytes()[..], &0_u64.to_le_bytes(), keys, values].concat();
    let index = b"\x00\x13";
    let mut footer = 1_u32.to_le_bytes().to_vec();
    footer.extend([7_u64, 2, 1].iter().flat_map(|number| number.to_le_bytes()));
    footer.extend([1, haul_crc::crc32c(index)].iter().flat_map(|number| number.to_le_bytes()));
    footer.extend([19_u64, 2].iter().flat_map(|number| number.to_le_bytes()));
    let expected = [
        &haul_crc::crc32c(&place).to_le_bytes()[..],
        keys,
        values,
        index,
        b"HAUL-RUN",
        &haul_crc::crc32c(&footer).to_le_bytes(),
        &footer,
    ];
    assert_eq!(bytes, expected.concat());
}

/// Returns the uncompressed form of a block with these keys and without values.
fn stored(keys: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    for part in [keys, b""] {
        push_number(&mut packed, part.len());
        push_number(&mut packed, part.len());
        packed.extend_from_slice(part);
    }
    packed
}

/// Returns a run with this block and this block index, or with the index of the block if `index` is
/// `None`. All checksums match.
fn sealed(packed: &[u8], index: Option<&[u8]>, blocks: u32) -> Vec<u8> {
    let mut bytes = vec![0; CHECKSUM_BYTES];
    bytes.extend_from_slice(packed);
    seal_block(&mut bytes, 7, 0);
    let index = index.map_or_else(
        || {
            let mut index = Vec::new();
            push_index_entry(&mut index, b"", bytes.len());
            index
        },
        <[u8]>::to_vec,
    );
    let footer = Footer {
        id: 7,
        entries: u64::MAX,
        deletions: 0,
        blocks,
        index_checksum: haul_crc::crc32c(&index),
        index_offset: bytes.len() as u64,
        index_bytes: index.len() as u64,
    };
    bytes.extend_from_slice(&index);
    bytes.extend_from_slice(&footer.encode());
    bytes
}

#[test]
fn keys_that_do_not_ascend_are_detected() {
    let first = b"\x00\x02\x00bc";
    for second in [
        &b"\x00\x01\x00a"[..],
        b"\x01\x01\x00b",
        b"\x02\x00\x00",
        b"\x01\x00\x00",
        b"\x03\x01\x00x",
    ] {
        let file = sealed(&stored(&[&first[..], second].concat()), None, 1);
        let outcome = open_and_scan(&disk_with(NAME, &file), NAME);
        assert!(matches!(outcome, Err(Error::Damaged { offset: 0, .. })), "{outcome:?}");
    }
    for (first, is_valid) in [(&b"\x00\x01\x00a"[..], true), (b"\x01\x01\x00a", false)] {
        let outcome = open_and_scan(&disk_with(NAME, &sealed(&stored(first), None, 1)), NAME);
        assert_eq!(outcome.is_ok(), is_valid, "{outcome:?}");
    }
}

#[test]
fn changed_frame_with_a_matching_checksum_decodes_to_its_length_or_fails() {
    let mut block = Block::default();
    for n in 0..300_u64 {
        block.push(b"", format!("{:016x}", n * 0x9e37_79b9).as_bytes(), Some(&noise(n, 9)));
    }
    let mut packed = Vec::new();
    Packer::new().pack(&block, &mut packed);
    assert!(packed.len() < block.keys.len() + block.values.len());
    let mut unpacked = Block::default();
    for at in 0..packed.len() {
        let mut changed = packed.clone();
        changed[at] ^= 1 << (at % 8);
        if unpack(&changed, &mut unpacked).is_ok() {
            let lengths = (unpacked.keys.len(), unpacked.values.len());
            assert_eq!(lengths, (block.keys.len(), block.values.len()), "byte {at}");
        }
        assert_eq!(unpack(&packed[..at], &mut unpacked), Err(Malformed), "{at} bytes");
    }
    unpack(&packed, &mut unpacked).unwrap();
    assert_eq!((unpacked.keys, unpacked.values), (block.keys, block.values));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn decoders_accept_any_bytes(
        bytes in prop::collection::vec(prop_oneof![0..8_u8, any::<u8>()], 0..200),
        target in prop::collection::vec(0..8_u8, 0..5),
        blocks in prop_oneof![0..60_u32, any::<u32>()],
        index_offset in 0..2000_u64,
    ) {
        drop(open_and_scan(&disk_with(NAME, &bytes), NAME));
        let key = stored(b"\0\x01\0a");
        for file in [
            sealed(&bytes, None, 1),
            sealed(&stored(&bytes), None, 1),
            sealed(&key, Some(&bytes), blocks),
        ] {
            if let Ok(pairs) = open_and_scan(&disk_with(NAME, &file), NAME) {
                prop_assert!(pairs.is_sorted_by(|one, next| one.0 < next.0));
            }
        }
        let block = Block { keys: bytes.clone(), values: vec![0; 10] };
        if let Ok(Some(entry)) = block.seek(BlockPosition::default(), 0, &target) {
            prop_assert!(entry.shared <= target.len() && block.suffix(&entry).len() <= bytes.len());
        }
        let footer = Footer {
            id: 0,
            entries: 0,
            deletions: 0,
            blocks,
            index_checksum: 0,
            index_offset,
            index_bytes: bytes.len() as u64,
        };
        if let Ok(index) = BlockIndex::decode(&bytes, &footer) {
            prop_assert!(index.memory_bytes() <= 8 + 7 * bytes.len());
        }
    }
}
