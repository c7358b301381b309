//! Encodes and decodes the digest cache file.
//!
//! ```text
//! file     header, records by ascending (device, inode, form), checksum
//! header   "HAULDUPS", version u32, hash u32, number of records u64, zeros: 32 bytes
//! record   device u64, inode u64, bytes u64, mtime ns i64, ctime ns i64, day u32,
//!          fingerprint of samples u32, digest of samples (16), flags u32, form u32,
//!          digest of the content (length of the hash)
//! checksum XXH3-128 of all before it: 16 bytes
//! ```
//! Numbers are little-endian. Samples are short ranges of a large file, which a search reads first;
//! the fingerprint identifies their offsets. The day is the number of days since 1970; records that
//! are too old are dropped when the file is rewritten.

use crate::digest::HashKind;
use crate::tree::Meta;

pub(super) const HEADER_BYTES: usize = 32;
pub(super) const CHECKSUM_BYTES: usize = 16;
pub(super) const SAMPLE_BYTES: usize = 16;
const FIXED_BYTES: usize = 72;
const MAGIC: &[u8; 8] = b"HAULDUPS";
/// Version 2: the digest of a large file leaves out units of zeros. Version 3: such a digest has a
/// form of its own.
const VERSION: u32 = 3;

/// The flags of a record: which of its two digests are present.
const HAS_SAMPLE: u32 = 1;
const HAS_FULL: u32 = 2;

/// Returns the number that stands for a hash function in the file format.
fn number(hash: HashKind) -> u32 {
    match hash {
        HashKind::Xxh3 => 1,
        HashKind::Blake3 => 2,
        HashKind::Sha256 => 3,
        HashKind::Sha512 => 4,
        HashKind::Md5 => 5,
        HashKind::Sha3_256 => 6,
        HashKind::Sha3_512 => 7,
        HashKind::Sha1 => 8,
        HashKind::Xxh64 => 9,
        HashKind::Crc32 => 10,
    }
}

/// The form of the digest of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DigestForm {
    /// The digest of the bytes.
    Bytes,
    /// A digest that leaves out long runs of zeros, which other programs cannot reproduce.
    ZeroRuns,
}

impl DigestForm {
    fn number(self) -> u32 {
        match self {
            Self::Bytes => 0,
            Self::ZeroRuns => 1,
        }
    }
}

/// The device and inode number and the form: the sort key of records.
pub(super) type RecordKey = (u64, u64, u32);

/// Returns the key of the record of a file.
pub(super) fn key_of(meta: &Meta, form: DigestForm) -> RecordKey {
    (meta.device, meta.inode, form.number())
}

/// The cached digests of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) key: RecordKey,
    pub(super) bytes: u64,
    pub(super) modified_ns: i64,
    pub(super) changed_ns: i64,
    pub(super) day: u32,
    /// The fingerprint and the digest of the file's samples.
    pub(super) sample: Option<(u32, [u8; SAMPLE_BYTES])>,
    /// The digest of the whole content.
    pub(super) full: Option<Vec<u8>>,
}

impl Record {
    /// `true` if the record is for this file in its current state.
    pub(super) fn matches(&self, meta: &Meta) -> bool {
        (self.key, self.bytes, self.modified_ns, self.changed_ns)
            == (
                (meta.device, meta.inode, self.key.2),
                meta.bytes,
                meta.modified_ns,
                meta.changed_ns,
            )
    }

    pub(super) fn append_to(&self, file: &mut Vec<u8>, hash: HashKind) {
        let flags = if self.sample.is_some() { HAS_SAMPLE } else { 0 }
            | if self.full.is_some() { HAS_FULL } else { 0 };
        let (fingerprint, sample) = self.sample.unwrap_or_default();
        for number in [self.key.0, self.key.1, self.bytes] {
            file.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.modified_ns, self.changed_ns] {
            file.extend_from_slice(&number.to_le_bytes());
        }
        file.extend_from_slice(&self.day.to_le_bytes());
        file.extend_from_slice(&fingerprint.to_le_bytes());
        file.extend_from_slice(&sample);
        file.extend_from_slice(&flags.to_le_bytes());
        file.extend_from_slice(&self.key.2.to_le_bytes());
        let mut full = self.full.clone().unwrap_or_default();
        full.resize(hash.bytes(), 0);
        file.extend_from_slice(&full);
    }

    /// Decodes a record, whose length is [`record_bytes`].
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (flags, fingerprint) = (u32_at(bytes, 64)?, u32_at(bytes, 44)?);
        let sample = bytes.get(48..64)?.try_into().ok()?;
        Some(Self {
            key: key(bytes)?,
            bytes: u64_at(bytes, 16)?,
            modified_ns: u64_at(bytes, 24)?.cast_signed(),
            changed_ns: u64_at(bytes, 32)?.cast_signed(),
            day: u32_at(bytes, 40)?,
            sample: (flags & HAS_SAMPLE != 0).then_some((fingerprint, sample)),
            full: (flags & HAS_FULL != 0).then(|| bytes[FIXED_BYTES..].to_vec()),
        })
    }
}

pub(super) fn record_bytes(hash: HashKind) -> usize {
    FIXED_BYTES + hash.bytes()
}

/// Decodes the key of an encoded record.
pub(super) fn key(bytes: &[u8]) -> Option<RecordKey> {
    Some((u64_at(bytes, 0)?, u64_at(bytes, 8)?, u32_at(bytes, 68)?))
}

pub(super) fn head(hash: HashKind, records: u64) -> [u8; HEADER_BYTES] {
    let mut head = [0; HEADER_BYTES];
    head[..8].copy_from_slice(MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head[12..16].copy_from_slice(&number(hash).to_le_bytes());
    head[16..24].copy_from_slice(&records.to_le_bytes());
    head
}

/// The reason why a cache file cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unusable {
    /// The file is corrupt, or was written by another version.
    Corrupt(&'static str),
    /// The digests are of another hash function.
    OtherHash,
}

/// Verifies a cache file and returns its records.
pub(super) fn records(file: &[u8], hash: HashKind) -> Result<&[u8], Unusable> {
    let records = intact_records(file).map_err(Unusable::Corrupt)?;
    let header = &file[..HEADER_BYTES];
    if u32_at(header, 12) != Some(number(hash)) {
        return Err(Unusable::OtherHash);
    }
    let count = u64::try_from(records.len() / record_bytes(hash)).unwrap_or(u64::MAX);
    if *header != head(hash, count) {
        return Err(Unusable::Corrupt("written by another version"));
    }
    Ok(records)
}

/// Verifies the checksum and the version of a cache file of any hash function.
fn intact_records(file: &[u8]) -> Result<&[u8], &'static str> {
    let (body, checksum) =
        file.split_last_chunk::<CHECKSUM_BYTES>().ok_or("the file is truncated")?;
    if body.get(..8) != Some(MAGIC) {
        return Err("not a digest cache file");
    }
    if HashKind::Xxh3.of(body).as_bytes() != checksum {
        return Err("checksum mismatch");
    }
    let records = body.get(HEADER_BYTES..).ok_or("the file is truncated")?;
    if u32_at(body, 8) != Some(VERSION) {
        return Err("written by another version");
    }
    Ok(records)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(records: &[Record], hash: HashKind) -> Vec<u8> {
        let mut file = head(hash, records.len() as u64).to_vec();
        records.iter().for_each(|record| record.append_to(&mut file, hash));
        let checksum = HashKind::Xxh3.of(&file);
        file.extend_from_slice(checksum.as_bytes());
        file
    }

    fn any_record(hash: HashKind) -> impl Strategy<Value = Record> {
        let numbers =
            (any::<(u64, u64, u32)>(), any::<u64>(), any::<i64>(), any::<i64>(), any::<u32>());
        let digests = (
            any::<Option<(u32, [u8; 16])>>(),
            prop::option::of(prop::collection::vec(any::<u8>(), hash.bytes())),
        );
        (numbers, digests).prop_map(|(numbers, (sample, full))| {
            let (key, bytes, modified_ns, changed_ns, day) = numbers;
            Record { key, bytes, modified_ns, changed_ns, day, sample, full }
        })
    }

    fn sealed(body: &[u8]) -> Vec<u8> {
        [body, HashKind::Xxh3.of(body).as_bytes()].concat()
    }

    #[test]
    fn unusable_file_is_reported_with_the_reason() {
        let hash = HashKind::Blake3;
        let changed = |at: usize, byte: u8| {
            let mut body = head(hash, 0).to_vec();
            body[at] = byte;
            sealed(&body)
        };
        for (file, reason) in [
            (Vec::new(), "the file is truncated"),
            (vec![0; CHECKSUM_BYTES - 1], "the file is truncated"),
            (sealed(&head(hash, 0)[..HEADER_BYTES - 1]), "the file is truncated"),
            (sealed(b"HAULDUP"), "not a digest cache file"),
            (changed(0, b'h'), "not a digest cache file"),
            (changed(8, 2), "written by another version"),
            (changed(16, 1), "written by another version"),
            (changed(31, 1), "written by another version"),
        ] {
            assert_eq!(records(&file, hash), Err(Unusable::Corrupt(reason)), "{file:02x?}");
        }
        assert_eq!(records(&sealed(&head(hash, 0)), hash), Ok(&[][..]));
    }

    #[test]
    fn file_has_the_described_layout_for_each_hash() {
        let meta = Meta { device: 2, inode: 3, bytes: 4, modified_ns: 5, changed_ns: -6, links: 1 };
        for (hash, number) in [
            (HashKind::Xxh3, 1_u32),
            (HashKind::Blake3, 2),
            (HashKind::Sha256, 3),
            (HashKind::Sha512, 4),
            (HashKind::Md5, 5),
            (HashKind::Sha3_256, 6),
            (HashKind::Sha3_512, 7),
            (HashKind::Sha1, 8),
            (HashKind::Xxh64, 9),
            (HashKind::Crc32, 10),
        ] {
            let full = hash.of(b"content").as_bytes().to_vec();
            let record = |form| Record {
                key: key_of(&meta, form),
                bytes: meta.bytes,
                modified_ns: meta.modified_ns,
                changed_ns: meta.changed_ns,
                day: 7,
                sample: Some((8, [9; SAMPLE_BYTES])),
                full: Some(full.clone()),
            };
            let numbers = [3, number, 2, 0, 0, 0].map(u32::to_le_bytes);
            let head = [b"HAULDUPS", &numbers.concat()[..]].concat();
            let encoded = |form: u32| -> Vec<u8> {
                let numbers = [2, 3, 4, 5, (-6_i64).cast_unsigned()].map(u64::to_le_bytes);
                let middle = [7_u32, 8].map(u32::to_le_bytes);
                let end = [HAS_SAMPLE | HAS_FULL, form].map(u32::to_le_bytes);
                [numbers.concat(), middle.concat(), vec![9; 16], end.concat(), full.clone()]
                    .concat()
            };
            let body = [head, encoded(0), encoded(1)].concat();
            let all = [record(DigestForm::Bytes), record(DigestForm::ZeroRuns)];
            assert_eq!(file(&all, hash), sealed(&body), "{hash:?}");
            assert!(all.iter().all(|record| record.matches(&meta)));
            for other in [
                Meta { bytes: 5, ..meta },
                Meta { modified_ns: 6, ..meta },
                Meta { changed_ns: 6, ..meta },
                Meta { inode: 4, ..meta },
                Meta { device: 3, ..meta },
            ] {
                assert!(!all[0].matches(&other), "{other:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn records_round_trip_and_corruption_is_detected(
            all in prop::collection::vec(any_record(HashKind::Blake3), 0..4),
            at: prop::sample::Index,
            bit in 0_u8..8,
        ) {
            let hash = HashKind::Blake3;
            let mut file = file(&all, hash);
            let read = records(&file, hash).unwrap().chunks(record_bytes(hash));
            prop_assert_eq!(read.filter_map(Record::read).collect::<Vec<_>>(), all);
            prop_assert_eq!(records(&file, HashKind::Sha512), Err(Unusable::OtherHash));
            let cut = at.index(file.len());
            prop_assert!(records(&file[..cut], hash).is_err());
            let at = at.index(file.len());
            file[at] ^= 1 << bit;
            prop_assert!(records(&file, hash).is_err());
        }
    }
}
