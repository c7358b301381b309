//! Digests of earlier searches, for files that are as they were.
//!
//! A file is known by device, inode, length and the times of its last change, of its bytes and of
//! anything: the last cannot be set by anybody. What changed so short a time before the search that
//! another change could have the same time is not kept, and what is kept was looked at again after
//! it was read.

mod format;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use haul_bulk_read::digest::HashKind;
use haul_bulk_read::{Meta, Tree};
use haul_disk::Op;
use rustix::fs::stat;

use super::candidates::Candidates;
use super::keys::{Key, key_bytes, key_of};
use crate::act::identity;
use crate::error::{Error, Result};
use format::{Record, SAMPLE_BYTES};

const SECOND_NS: i64 = 1_000_000_000;
/// How far apart two changes must be to have different times, where times are kept to less than
/// a second, and where they are not. The kernel's clock for files ticks up to every 10 ms.
const TICK_NS: i64 = 100_000_000;
const COARSE_TICK_NS: i64 = 2 * SECOND_NS;
/// After so many days a record is left out, and its file read again if it is still there.
const DAYS_MAX: u32 = 365;

/// What is known from before, and what is new.
#[derive(Debug)]
pub(super) struct Cache {
    hash: HashKind,
    /// Which pieces the samples of this search are.
    samples: u32,
    begun_ns: i64,
    old: Vec<u8>,
    new: Vec<New>,
    digests: Vec<u8>,
}

/// A digest that was made in this search.
#[derive(Debug, Clone, Copy)]
struct New {
    content: u32,
    at: usize,
    is_full: bool,
}

impl Cache {
    pub(super) fn empty(hash: HashKind, samples: u32) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let begun_ns = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
        Self { hash, samples, begun_ns, old: Vec::new(), new: Vec::new(), digests: Vec::new() }
    }

    /// What `path` holds; nothing when it is not there.
    pub(super) fn open(path: &Path, hash: HashKind, samples: u32) -> Result<Self> {
        let mut cache = Self::empty(hash, samples);
        let file = match fs::read(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(cache),
            Err(source) => return Err(haul_disk::Error::new(Op::Read, path, source).into()),
        };
        let records = format::records(&file, hash);
        let records = records.map_err(|what| Error::Cache { path: path.to_owned(), what })?.len();
        cache.old = file;
        cache.old.truncate(format::HEAD_BYTES + records);
        Ok(cache)
    }

    fn records(&self) -> impl Iterator<Item = &[u8]> {
        let records = self.old.get(format::HEAD_BYTES..).unwrap_or_default();
        records.chunks_exact(format::record_bytes(self.hash))
    }

    fn find(&self, meta: &Meta) -> Option<Record> {
        let records = self.old.get(format::HEAD_BYTES..)?;
        let stride = format::record_bytes(self.hash);
        let who = (meta.device, meta.inode);
        let (mut low, mut high) = (0, records.len() / stride);
        while low < high {
            let middle = low.midpoint(high);
            let record = &records[middle * stride..][..stride];
            match format::who(record)?.cmp(&who) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    return Record::read(record).filter(|record| record.is_of(meta));
                }
            }
        }
        None
    }

    /// The digest of all of a file.
    pub(super) fn full(&self, meta: &Meta) -> Option<Key> {
        self.find(meta)?.full.map(|digest| key_of(&digest))
    }

    /// The digest of the samples of a file.
    pub(super) fn sample(&self, meta: &Meta) -> Option<Key> {
        let (samples, digest) = self.find(meta)?.sample?;
        (samples == self.samples).then(|| key_of(&digest))
    }

    pub(super) fn add_sample(&mut self, content: u32, key: &Key) {
        self.add(content, key, SAMPLE_BYTES, false);
    }

    pub(super) fn add_full(&mut self, content: u32, key: &Key) {
        self.add(content, key, self.hash.bytes(), true);
    }

    fn add(&mut self, content: u32, key: &Key, length: usize, is_full: bool) {
        self.new.push(New { content, at: self.digests.len(), is_full });
        self.digests.extend_from_slice(&key_bytes(key)[..length]);
    }

    /// Writes what is known now, if there is anything new. Whoever reads the file meanwhile sees
    /// the old one or the new one.
    pub(super) fn save(self, path: &Path, tree: &Tree, candidates: &Candidates) -> Result<()> {
        let new = self.settled(tree, candidates);
        if new.is_empty() {
            return Ok(());
        }
        let fail = |op| move |source| Error::from(haul_disk::Error::new(op, path, source));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(fail(Op::Create))?;
        }
        let passing = passing_path(path);
        let written = self.write(&passing, new).map_err(fail(Op::Write));
        let published = written.and_then(|()| fs::rename(&passing, path).map_err(fail(Op::Rename)));
        if published.is_err() {
            fs::remove_file(&passing).ok();
        }
        published
    }

    /// The new records of files that are still as they were found, and were not changed just then.
    fn settled(&self, tree: &Tree, candidates: &Candidates) -> BTreeMap<format::Who, Record> {
        let mut records = BTreeMap::new();
        let mut path = Vec::new();
        for New { content, at, is_full } in &self.new {
            let file = candidates.file(*content);
            let meta = tree.meta(file);
            let who = (meta.device, meta.inode);
            if !records.contains_key(&who) {
                // A call more for each file, made only for what is kept: one who wrote to it after it
                // was opened would not be seen otherwise, and its digest would stay.
                tree.path_into(file, &mut path);
                let is_as_found = stat(&path[..]).is_ok_and(|stat| is_as_found(&meta, &stat));
                if !is_as_found || !self.is_settled(&meta) {
                    continue;
                }
            }
            let record = records.entry(who).or_insert_with(|| self.blank(&meta));
            let digest = &self.digests[*at..];
            if *is_full {
                record.full = Some(digest[..self.hash.bytes()].to_vec());
            } else if let Some(digest) = digest.first_chunk() {
                record.sample = Some((self.samples, *digest));
            }
        }
        records
    }

    fn is_settled(&self, meta: &Meta) -> bool {
        let changed = meta.modified_ns.max(meta.changed_ns);
        let is_coarse = [meta.modified_ns, meta.changed_ns].iter().all(|ns| ns % SECOND_NS == 0);
        let tick = if is_coarse { COARSE_TICK_NS } else { TICK_NS };
        changed < self.begun_ns.saturating_sub(tick)
    }

    /// What is kept of a file: what was known of it before, if that still holds.
    fn blank(&self, meta: &Meta) -> Record {
        let day = self.today();
        let blank = Record {
            who: (meta.device, meta.inode),
            bytes: meta.bytes,
            modified_ns: meta.modified_ns,
            changed_ns: meta.changed_ns,
            day,
            sample: None,
            full: None,
        };
        self.find(meta).map_or(blank, |known| Record { day, ..known })
    }

    fn today(&self) -> u32 {
        u32::try_from(self.begun_ns / SECOND_NS / 86_400).unwrap_or(0)
    }

    fn write(&self, path: &Path, mut new: BTreeMap<format::Who, Record>) -> io::Result<()> {
        let oldest = self.today().saturating_sub(DAYS_MAX);
        let is_kept = |record: &Record| record.day >= oldest;
        for record in self.records().filter_map(Record::read).filter(is_kept) {
            new.entry(record.who).or_insert(record);
        }
        let mut bytes = format::head(self.hash, new.len() as u64).to_vec();
        new.values().for_each(|record| record.append_to(&mut bytes, self.hash));
        let checksum = HashKind::Xxh3.of(&bytes);
        bytes.extend_from_slice(checksum.as_bytes());
        let mut file = File::create_new(path)?;
        file.write_all(&bytes)?;
        file.sync_all()
    }
}

fn is_as_found(meta: &Meta, stat: &rustix::fs::Stat) -> bool {
    let now = identity(stat);
    (now.device, now.inode, now.bytes, now.modified_ns, now.changed_ns)
        == (meta.device, meta.inode, meta.bytes, meta.modified_ns, meta.changed_ns)
}

/// A name beside `path` that no other process uses.
fn passing_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}
