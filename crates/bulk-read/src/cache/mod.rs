//! Stores digests of files in a file, and reuses them later for unchanged files.
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

use haul_disk::Op;

use crate::digest::{Digest, HashKind};
use crate::error::Error;
use crate::tree::{FileId, Meta, Tree};
pub use format::DigestForm;
use format::{Record, RecordKey, SAMPLE_BYTES, Unusable};

const SECOND_NS: i64 = 1_000_000_000;
/// The minimum time between two changes that guarantees different timestamps, in nanoseconds.
/// `TICK_NS` is for timestamps with a sub-second part: the kernel updates its clock for them at
/// least every 10 ms. `COARSE_TICK_NS` is for timestamps in whole seconds, or, as on FAT, in steps
/// of 2 s.
const TICK_NS: i64 = 100_000_000;
const COARSE_TICK_NS: i64 = 2 * SECOND_NS;
/// The maximum age of a record, in days.
const DAYS_MAX: u32 = 365;

/// The digests of earlier runs, and those computed in this run.
///
/// The digest of a file is stored only if a later change of the file is certain to alter its
/// timestamps: see [`DigestCache::check_writers`] and [`DigestCache::save`].
#[derive(Debug)]
pub struct DigestCache {
    hash: HashKind,
    started_ns: i64,
    old: Vec<u8>,
    new: Vec<NewDigest>,
    digests: Vec<u8>,
    /// The files that had no writer before they were read.
    without_writer: HashSet<FileId>,
    /// The files that were checked for writers.
    checked: HashSet<FileId>,
}

/// A digest computed in this run, at the offset `at` of [`DigestCache::digests`].
#[derive(Debug, Clone, Copy)]
struct NewDigest {
    file: FileId,
    form: DigestForm,
    at: usize,
    /// The fingerprint of the samples; `None` for the digest of a whole content.
    samples: Option<u32>,
}

impl DigestCache {
    /// Creates an empty cache. It must be created before the files are read: a file that changed
    /// shortly before or later is not cached.
    #[must_use]
    pub fn empty(hash: HashKind) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_ns = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
        Self {
            hash,
            started_ns,
            old: Vec::new(),
            new: Vec::new(),
            digests: Vec::new(),
            without_writer: HashSet::new(),
            checked: HashSet::new(),
        }
    }

    /// Opens the cache file at `path`; returns an empty cache if the file does not exist. Like
    /// [`DigestCache::empty`], it must be called before the files are read.
    ///
    /// # Errors
    /// [`Error::Cache`] for a corrupt file, which [`DigestCache::save`] may replace, and
    /// [`Error::CacheHash`] for a file with digests of another hash function.
    pub fn open(path: &Path, hash: HashKind) -> Result<Self, Error> {
        let mut cache = Self::empty(hash);
        let file = match fs::read(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(cache),
            Err(source) => return Err(haul_disk::Error::new(Op::Read, path, source).into()),
        };
        let records = format::records(&file, hash).map_err(|unusable| match unusable {
            Unusable::Corrupt(reason) => Error::Cache { path: path.to_owned(), reason },
            Unusable::OtherHash => Error::CacheHash { path: path.to_owned() },
        })?;
        let end = format::HEADER_BYTES + records.len();
        cache.old = file;
        cache.old.truncate(end);
        Ok(cache)
    }

    /// Returns the hash function.
    #[must_use]
    pub fn hash(&self) -> HashKind {
        self.hash
    }

    fn records(&self) -> impl Iterator<Item = &[u8]> {
        let records = self.old.get(format::HEADER_BYTES..).unwrap_or_default();
        records.chunks_exact(format::record_bytes(self.hash))
    }

    fn find(&self, meta: &Meta, form: DigestForm) -> Option<Record> {
        let records = self.old.get(format::HEADER_BYTES..)?;
        let stride = format::record_bytes(self.hash);
        let key = format::key_of(meta, form);
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
    #[must_use]
    pub fn digest(&self, meta: &Meta, form: DigestForm) -> Option<Digest> {
        Digest::from_bytes(&self.find(meta, form)?.full?)
    }

    /// Returns the cached digest of the samples of a file with this fingerprint, which identifies
    /// their places.
    #[must_use]
    pub fn sample(&self, meta: &Meta, form: DigestForm, fingerprint: u32) -> Option<[u8; 16]> {
        let (samples, digest) = self.find(meta, form)?.sample?;
        (samples == fingerprint).then_some(digest)
    }

    /// Checks whether a process has the file open or mapped for writing; the digest of such a file
    /// is not stored. Must be called before each read of the file; only the first call has an
    /// effect.
    pub fn check_writers(&mut self, file: FileId, tree: &Tree) {
        if !self.checked.insert(file) {
            return;
        }
        let meta = tree.meta(file);
        if self.is_old_enough(&meta) && stability::has_no_writer(&tree.path(file), &meta) {
            self.without_writer.insert(file);
        }
    }

    /// Adds the digest of the samples of a file.
    pub fn add_sample(
        &mut self,
        file: FileId,
        form: DigestForm,
        fingerprint: u32,
        digest: &[u8; 16],
    ) {
        self.add_new(file, form, digest, Some(fingerprint));
    }

    /// Adds the digest of a whole file.
    pub fn add(&mut self, file: FileId, form: DigestForm, digest: &Digest) {
        self.add_new(file, form, digest.as_bytes(), None);
    }

    fn add_new(&mut self, file: FileId, form: DigestForm, digest: &[u8], samples: Option<u32>) {
        self.new.push(NewDigest { file, form, at: self.digests.len(), samples });
        self.digests.extend_from_slice(digest);
    }

    /// Writes the cache file if there are new digests. The file is replaced atomically.
    ///
    /// A new digest is stored only if the file is unchanged since `tree` was listed, its last change
    /// is old enough, it had no writer, and none of its pages is dirty.
    ///
    /// # Errors
    /// The error of the system call that failed.
    pub fn save(self, path: &Path, tree: &Tree) -> Result<(), Error> {
        let new = self.new_records(tree);
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

    /// Returns records with the new digests that may be stored.
    fn new_records(&self, tree: &Tree) -> BTreeMap<RecordKey, Record> {
        let mut records = BTreeMap::new();
        for NewDigest { file, form, at, samples } in &self.new {
            let meta = tree.meta(*file);
            let key = format::key_of(&meta, *form);
            // If the file was written after it was opened, the digest may cover both old and new
            // bytes, and is not stored.
            if !records.contains_key(&key)
                && (!self.without_writer.contains(file)
                    || !stability::is_unchanged_and_clean(&tree.path(*file), &meta))
            {
                continue;
            }
            let record = records.entry(key).or_insert_with(|| self.record_of(&meta, *form));
            let digest = &self.digests[*at..];
            match samples {
                None => record.full = Some(digest[..self.hash.bytes()].to_vec()),
                Some(fingerprint) => {
                    let digest = digest.first_chunk::<SAMPLE_BYTES>();
                    record.sample = digest.map(|digest| (*fingerprint, *digest));
                }
            }
        }
        records
    }

    /// `true` if a change after the start of the run is certain to result in another timestamp.
    fn is_old_enough(&self, meta: &Meta) -> bool {
        let changed = meta.modified_ns.max(meta.changed_ns);
        let is_coarse = [meta.modified_ns, meta.changed_ns].iter().all(|ns| ns % SECOND_NS == 0);
        let tick = if is_coarse { COARSE_TICK_NS } else { TICK_NS };
        changed < self.started_ns.saturating_sub(tick)
    }

    /// Returns the cached record of a file if it is valid, else a record without digests.
    fn record_of(&self, meta: &Meta, form: DigestForm) -> Record {
        let day = self.today();
        let empty = Record {
            key: format::key_of(meta, form),
            bytes: meta.bytes,
            modified_ns: meta.modified_ns,
            changed_ns: meta.changed_ns,
            day,
            sample: None,
            full: None,
        };
        self.find(meta, form).map_or(empty, |record| Record { day, ..record })
    }

    fn today(&self) -> u32 {
        u32::try_from(self.started_ns / SECOND_NS / 86_400).unwrap_or(0)
    }

    fn write(&self, path: &Path, mut new: BTreeMap<RecordKey, Record>) -> io::Result<()> {
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
