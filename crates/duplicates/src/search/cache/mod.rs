//! Stores the digests of a search in a file, and reuses them in later searches for unchanged files.
//!
//! A file is identified by device, inode, length, `mtime` and `ctime`; no program can set the
//! `ctime`. A digest is not stored if the file changed so shortly before the search that another
//! change could have the same timestamps, nor if a process had it open or mapped for writing before
//! it was read ([`stability`]). Before a digest is stored, the status of the file is checked again,
//! because the file may have changed while it was read.

mod format;
mod stability;

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use haul_bulk_read::digest::HashKind;
use haul_bulk_read::{Meta, Tree};
use haul_disk::Op;

use super::candidates::Candidates;
use super::digests::{Key, key_bytes, key_of};
use crate::error::{Error, Result};
use format::{Record, SAMPLE_BYTES};

const SECOND_NS: i64 = 1_000_000_000;
/// The minimum time between two changes that guarantees different timestamps, in nanoseconds.
/// `TICK_NS` is for timestamps with a sub-second part: the kernel updates its clock for them at
/// least every 10 ms. `COARSE_TICK_NS` is for timestamps in whole seconds, or, as on FAT, in steps
/// of 2 s.
const TICK_NS: i64 = 100_000_000;
const COARSE_TICK_NS: i64 = 2 * SECOND_NS;
/// The maximum age of a record, in days.
const DAYS_MAX: u32 = 365;

/// The digests of earlier searches, and those computed in this search.
#[derive(Debug)]
pub(super) struct Cache {
    hash: HashKind,
    /// The fingerprint of the samples of this search, see [`Plan::fingerprint`](super::plan::Plan).
    samples: u32,
    started_ns: i64,
    old: Vec<u8>,
    new: Vec<NewDigest>,
    digests: Vec<u8>,
    /// The contents whose files had no writer before they were read.
    without_writer: HashSet<u32>,
    /// The contents whose files were checked for writers.
    checked: HashSet<u32>,
}

/// A digest computed in this search.
#[derive(Debug, Clone, Copy)]
struct NewDigest {
    content: u32,
    at: usize,
    is_full: bool,
}

impl Cache {
    pub(super) fn empty(hash: HashKind, samples: u32) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_ns = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
        Self {
            hash,
            samples,
            started_ns,
            old: Vec::new(),
            new: Vec::new(),
            digests: Vec::new(),
            without_writer: HashSet::new(),
            checked: HashSet::new(),
        }
    }

    /// Opens the cache file at `path`; returns an empty cache if the file does not exist.
    pub(super) fn open(path: &Path, hash: HashKind, samples: u32) -> Result<Self> {
        let mut cache = Self::empty(hash, samples);
        let file = match fs::read(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(cache),
            Err(source) => return Err(haul_disk::Error::new(Op::Read, path, source).into()),
        };
        let records = format::records(&file, hash);
        let records =
            records.map_err(|reason| Error::Cache { path: path.to_owned(), reason })?.len();
        cache.old = file;
        cache.old.truncate(format::HEADER_BYTES + records);
        Ok(cache)
    }

    fn records(&self) -> impl Iterator<Item = &[u8]> {
        let records = self.old.get(format::HEADER_BYTES..).unwrap_or_default();
        records.chunks_exact(format::record_bytes(self.hash))
    }

    fn find(&self, meta: &Meta) -> Option<Record> {
        let records = self.old.get(format::HEADER_BYTES..)?;
        let stride = format::record_bytes(self.hash);
        let key = (meta.device, meta.inode);
        let (mut low, mut high) = (0, records.len() / stride);
        while low < high {
            let middle = low.midpoint(high);
            let record = &records[middle * stride..][..stride];
            match format::key(record)?.cmp(&key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    return Record::read(record).filter(|record| record.matches(meta));
                }
            }
        }
        None
    }

    /// Returns the cached digest of a whole file.
    pub(super) fn full(&self, meta: &Meta) -> Option<Key> {
        self.find(meta)?.full.map(|digest| key_of(&digest))
    }

    /// Returns the cached digest of the samples of a file.
    pub(super) fn sample(&self, meta: &Meta) -> Option<Key> {
        let (samples, digest) = self.find(meta)?.sample?;
        (samples == self.samples).then(|| key_of(&digest))
    }

    /// Checks whether a file has writers. Must be called before each read of the file; only the
    /// first call has an effect.
    pub(super) fn check_writers(&mut self, content: u32, tree: &Tree, candidates: &Candidates) {
        if !self.checked.insert(content) {
            return;
        }
        let file = candidates.file(content);
        let meta = tree.meta(file);
        let mut path = Vec::new();
        tree.path_into(file, &mut path);
        if self.is_old_enough(&meta) && stability::has_no_writer(&path, &meta) {
            self.without_writer.insert(content);
        }
    }

    pub(super) fn add_sample(&mut self, content: u32, key: &Key) {
        self.add(content, key, SAMPLE_BYTES, false);
    }

    pub(super) fn add_full(&mut self, content: u32, key: &Key) {
        self.add(content, key, self.hash.bytes(), true);
    }

    fn add(&mut self, content: u32, key: &Key, length: usize, is_full: bool) {
        self.new.push(NewDigest { content, at: self.digests.len(), is_full });
        self.digests.extend_from_slice(&key_bytes(key)[..length]);
    }

    /// Writes the cache file if there are new digests. The file is replaced atomically.
    pub(super) fn save(self, path: &Path, tree: &Tree, candidates: &Candidates) -> Result<()> {
        let new = self.new_records(tree, candidates);
        if new.is_empty() {
            return Ok(());
        }
        let fail = |op| move |source| Error::from(haul_disk::Error::new(op, path, source));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(fail(Op::Create))?;
        }
        let temp = temp_path(path);
        let written = self.write(&temp, new).map_err(fail(Op::Write));
        let published = written.and_then(|()| fs::rename(&temp, path).map_err(fail(Op::Rename)));
        if published.is_err() {
            fs::remove_file(&temp).ok();
        }
        published
    }

    /// Returns records with the new digests of the files that are unchanged since the walk and
    /// whose last change is old enough.
    fn new_records(
        &self,
        tree: &Tree,
        candidates: &Candidates,
    ) -> BTreeMap<format::RecordKey, Record> {
        let mut records = BTreeMap::new();
        let mut path = Vec::new();
        for NewDigest { content, at, is_full } in &self.new {
            let file = candidates.file(*content);
            let meta = tree.meta(file);
            let key = (meta.device, meta.inode);
            if !records.contains_key(&key) {
                // If the file was written after it was opened, the digest may cover both old and
                // new bytes, and is not stored.
                tree.path_into(file, &mut path);
                if !self.without_writer.contains(content)
                    || !stability::is_unchanged_and_clean(&path, &meta)
                {
                    continue;
                }
            }
            let record = records.entry(key).or_insert_with(|| self.record_of(&meta));
            let digest = &self.digests[*at..];
            if *is_full {
                record.full = Some(digest[..self.hash.bytes()].to_vec());
            } else if let Some(digest) = digest.first_chunk() {
                record.sample = Some((self.samples, *digest));
            }
        }
        records
    }

    /// `true` if a change after the start of the search is certain to result in another timestamp.
    fn is_old_enough(&self, meta: &Meta) -> bool {
        let changed = meta.modified_ns.max(meta.changed_ns);
        let is_coarse = [meta.modified_ns, meta.changed_ns].iter().all(|ns| ns % SECOND_NS == 0);
        let tick = if is_coarse { COARSE_TICK_NS } else { TICK_NS };
        changed < self.started_ns.saturating_sub(tick)
    }

    /// Returns the cached record of a file if it is valid, else a record without digests.
    fn record_of(&self, meta: &Meta) -> Record {
        let day = self.today();
        let empty = Record {
            key: (meta.device, meta.inode),
            bytes: meta.bytes,
            modified_ns: meta.modified_ns,
            changed_ns: meta.changed_ns,
            day,
            sample: None,
            full: None,
        };
        self.find(meta).map_or(empty, |record| Record { day, ..record })
    }

    fn today(&self) -> u32 {
        u32::try_from(self.started_ns / SECOND_NS / 86_400).unwrap_or(0)
    }

    fn write(&self, path: &Path, mut new: BTreeMap<format::RecordKey, Record>) -> io::Result<()> {
        let oldest = self.today().saturating_sub(DAYS_MAX);
        let is_recent = |record: &Record| record.day >= oldest;
        for record in self.records().filter_map(Record::read).filter(is_recent) {
            new.entry(record.key).or_insert(record);
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

/// Returns a temporary path in the directory of `path`, unique per process.
fn temp_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}
