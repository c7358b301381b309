//! Tests of runs on a simulated disk.

mod damage;
mod faults;
mod model;
mod reads;

use std::sync::Arc;

use haul_disk::{Disk, Durability, File, Open, read_full, write_full};
use haul_disk_sim::MemoryDisk;
use haul_testing::noise;

use crate::error::Result;
use crate::index::runs::cursor::Cursor;
use crate::index::runs::run::Run;
use crate::index::runs::source::Source;
use crate::index::runs::writer::{RunInfo, RunWriter};

/// A key, and its value or a tombstone.
type Pair = (Vec<u8>, Option<Vec<u8>>);

const NAME: &str = "0000000001.run";

fn write(disk: &dyn Disk, name: &str, pairs: &[Pair]) -> Result<RunInfo> {
    let mut writer = RunWriter::create(disk, name, 7)?;
    for (key, value) in pairs {
        writer.push(key, value.as_deref())?;
    }
    writer.finish()
}

fn run_of(disk: &dyn Disk, name: &str, pairs: &[Pair]) -> Arc<Run> {
    let info = write(disk, name, pairs).unwrap();
    let run = Run::open(disk, name).unwrap();
    assert_eq!(*run.info(), info);
    assert_eq!(info.entries, pairs.len() as u64);
    assert_eq!(info.deletions, pairs.iter().filter(|pair| pair.1.is_none()).count() as u64);
    Arc::new(run)
}

/// Returns a source's entries from its current position to the end.
fn rest(source: &mut impl Source) -> Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    while let Some(key) = source.key() {
        pairs.push((key.to_vec(), source.value().map(<[u8]>::to_vec)));
        source.advance()?;
    }
    Ok(pairs)
}

fn scan(run: &Arc<Run>) -> Result<Vec<Pair>> {
    let mut cursor = Cursor::new(Arc::clone(run), 0);
    cursor.advance()?;
    rest(&mut cursor)
}

/// Opens a run and reads all its entries.
fn open_and_scan(disk: &dyn Disk, name: &str) -> Result<Vec<Pair>> {
    scan(&Arc::new(Run::open(disk, name)?))
}

fn bytes_of(disk: &dyn Disk, name: &str) -> Vec<u8> {
    let file = disk.open(name, Open::default()).unwrap();
    let mut bytes = vec![0; usize::try_from(file.bytes().unwrap()).unwrap()];
    read_full(&*file, &mut bytes, 0).unwrap();
    bytes
}

fn disk_with(name: &str, bytes: &[u8]) -> MemoryDisk {
    let disk = MemoryDisk::default();
    let file: Arc<dyn File> = disk.create(name, Open::default()).unwrap();
    write_full(&*file, bytes, 0).unwrap();
    file.sync(Durability::Data).unwrap();
    disk
}

/// Returns entries as a store has them: a bucket, a zero byte, a key. Every tenth is a tombstone.
fn store_pairs(count: usize) -> Vec<Pair> {
    let pair = |n: usize| {
        let key = format!("photos\0albums/{:04}/{:016x}.jpeg", n / 50, n * 0x9e37_79b9);
        let value = noise(n as u64, 30 + n % 16);
        (key.into_bytes(), (!n.is_multiple_of(10)).then_some(value))
    };
    let mut pairs: Vec<Pair> = (0..count).map(pair).collect();
    pairs.sort();
    pairs
}
