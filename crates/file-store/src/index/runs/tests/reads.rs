//! The number of reads, and the sizes of files and memory.

use std::sync::Arc;

use haul_disk::Op;
use haul_disk_sim::MemoryDisk;
use haul_testing::noise;

use super::{NAME, Pair, rest, run_of, store_pairs};
use crate::index::runs::cursor::Cursor;
use crate::index::runs::format::{BLOCK_BYTES, shared_prefix};
use crate::index::runs::run::{Buffers, KEPT_BLOCKS_MAX, Run};
use crate::index::runs::source::Source;

#[test]
fn lookup_is_one_read() {
    let disk = MemoryDisk::default();
    let pairs = store_pairs(5000);
    let run = run_of(&disk, NAME, &pairs);
    let mut buffers = Buffers::default();
    for (key, value) in pairs.iter().step_by(37) {
        let before = disk.calls(Op::Read);
        assert_eq!(run.get(key, &mut buffers).unwrap(), Some(value.as_deref()));
        let absent = [key, &b"x"[..]].concat();
        assert_eq!(run.get(&absent, &mut buffers).unwrap(), None);
        assert_eq!(disk.calls(Op::Read) - before, 2);
    }
}

#[test]
fn scan_reads_each_block_once() {
    let disk = MemoryDisk::default();
    let pairs = store_pairs(20_000);
    let run = run_of(&disk, NAME, &pairs);
    let blocks = run.index().blocks() as u64;
    assert!(blocks > 50, "{blocks}");
    let reads = |readahead: usize| {
        let before = disk.calls(Op::Read);
        let mut cursor = Cursor::new(Arc::clone(&run), readahead);
        cursor.advance().unwrap();
        assert_eq!(rest(&mut cursor).unwrap(), pairs);
        disk.calls(Op::Read) - before
    };
    assert_eq!(reads(0), blocks);
    let readahead_blocks = 16;
    let expected = blocks / (readahead_blocks - 1) + 6;
    assert!(reads(256 << 10) <= expected, "{} reads of {blocks} blocks", reads(256 << 10));
}

#[test]
fn seek_in_the_current_block_reads_nothing() {
    let disk = MemoryDisk::default();
    let pairs = store_pairs(5000);
    let run = run_of(&disk, NAME, &pairs);
    let blocks = run.index().blocks() as u64;
    let before = disk.calls(Op::Read);
    let mut cursor = Cursor::new(run, 0);
    for (key, value) in pairs.iter().step_by(3) {
        cursor.seek(key).unwrap();
        assert_eq!(cursor.current(), Some((&key[..], value.as_deref())));
    }
    assert_eq!(disk.calls(Op::Read) - before, blocks);
    cursor.seek(&pairs[4990].0).unwrap();
    cursor.seek(&pairs[4980].0).unwrap();
    assert_eq!(cursor.key(), Some(&pairs[4980].0[..]), "backwards");
    assert_eq!(disk.calls(Op::Read) - before, blocks);
}

/// Returns the entries of a page: those after a key, up to `limit`.
fn page(run: &Arc<Run>, after: &[u8], limit: usize) -> Vec<Pair> {
    let mut cursor = Cursor::new(Arc::clone(run), 0);
    cursor.seek(&[after, &[0]].concat()).unwrap();
    let mut pairs = Vec::new();
    while let Some((key, value)) = cursor.current().filter(|_| pairs.len() < limit) {
        pairs.push((key.to_vec(), value.map(<[u8]>::to_vec)));
        cursor.advance().unwrap();
    }
    pairs
}

#[test]
fn pages_of_several_listings_unpack_each_block_once() {
    let disk = MemoryDisk::default();
    let pairs = store_pairs(20_000);
    let run = run_of(&disk, NAME, &pairs);
    let (blocks, idle_bytes) = (run.index().blocks() as u64, run.memory_bytes());
    let part = pairs.len() / KEPT_BLOCKS_MAX;
    let mut listed = vec![Vec::new(); KEPT_BLOCKS_MAX];
    let before = disk.calls(Op::Read);
    while listed[0].len() < part {
        for (listing, listed) in listed.iter_mut().enumerate() {
            let start = (listing * part).checked_sub(1).map(|before| &*pairs[before].0);
            let after = listed.last().map(|(key, _): &Pair| &**key).or(start).unwrap_or_default();
            let page = page(&run, after, 20.min(part - listed.len()));
            listed.extend(page);
        }
    }
    assert_eq!(listed.concat(), pairs);
    // A listing starts in the block in which the previous one ends. Without a read ahead, each
    // unpacked block is one read.
    let reads = disk.calls(Op::Read) - before;
    assert!(reads <= blocks + 2 * KEPT_BLOCKS_MAX as u64, "{reads} reads of {blocks} blocks");
    let kept_bytes = run.memory_bytes() - idle_bytes;
    assert!(kept_bytes <= KEPT_BLOCKS_MAX * 2 * BLOCK_BYTES, "{kept_bytes}");

    let reads_past_the_end = || {
        let before = disk.calls(Op::Read);
        assert_eq!(page(&run, b"z", 20), []);
        disk.calls(Op::Read) - before
    };
    reads_past_the_end();
    assert_eq!(reads_past_the_end(), 0);

    let before = disk.calls(Op::Read);
    let mut cursor = Cursor::new(Arc::clone(&run), 0);
    cursor.advance().unwrap();
    assert_eq!(rest(&mut cursor).unwrap(), pairs);
    assert_eq!(disk.calls(Op::Read) - before, blocks, "a scan verifies all blocks");
}

#[test]
fn entry_is_shorter_than_the_rest_of_its_key_and_its_value() {
    let pair = |n: u64| {
        let key = format!("photos\0albums/2024/holidays/{:016x}", n * 0x9e37_79b9_7f4a);
        let value = [&[1; 15][..], &noise(n, 16)].concat();
        (format!("{key:0<45}").into_bytes(), Some(value))
    };
    let mut pairs: Vec<Pair> = (0..50_000).map(pair).collect();
    pairs.sort();
    let run = run_of(&MemoryDisk::default(), NAME, &pairs);
    let payload = |pair: &[Pair]| pair[1].0.len() - shared_prefix(&pair[0].0, &pair[1].0) + 31;
    let payload_bytes: usize = pairs.windows(2).map(payload).sum();
    let entries = pairs.len() as f64;
    // The suffix of a key has hexadecimal digits, and a value has 16 random bytes.
    let share = run.info().bytes as f64 / payload_bytes as f64;
    assert!(share <= 0.65, "{share}");
    let memory = run.memory_bytes() as f64 / entries;
    assert!(memory <= 0.3, "{memory} bytes of memory per entry");
}

#[test]
fn cursors_of_several_threads_share_a_run() {
    let pairs = store_pairs(3000);
    let run = run_of(&MemoryDisk::default(), NAME, &pairs);
    std::thread::scope(|scope| {
        for start in [0, 100, 1000, 2500] {
            let (run, pairs) = (Arc::clone(&run), &pairs);
            scope.spawn(move || {
                let mut cursor = Cursor::new(run, 64 << 10);
                cursor.seek(&pairs[start].0).unwrap();
                assert_eq!(rest(&mut cursor).unwrap(), pairs[start..]);
            });
        }
    });
}
