//! The catalog format, which `FORMAT.md` describes. Pure.

#[cfg(test)]
mod tests;

use haul_append_log::{Lsn, Position};

use crate::clock::Version;
use crate::format::FilePart;
use crate::index::addresses::AddressRange;
use crate::index::bucket::Bucket;
use crate::index::entry::Entry;
use crate::index::locations::VALUE_BITS;
use crate::index::uploads::{Upload, UploadName};
use crate::index::volumes::Volume;
use crate::index::{Index, LocationChange, addresses::Location};
use crate::varint::{put_varint, take_varint};

const MAGIC: [u8; 8] = *b"HAUL-CAT";
const VERSION: u64 = 1;

/// The header's length: magic number, checksum, and body length.
const HEADER_BYTES: usize = 20;

/// The list of index files, and the index's small parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Catalog {
    /// The index contains exactly the needles before this log position.
    pub(crate) applied: Lsn,
    /// The secret key for the hashes in the location table.
    pub(crate) secret: [u64; 2],
    /// The greatest number that an index file has.
    pub(crate) last_file: u64,
    /// The runs, from newest to oldest.
    pub(crate) runs: Vec<u64>,
    /// The file with the location table.
    pub(crate) locations: u64,
    /// The files with later changes to the location table, from oldest to newest.
    pub(crate) changes: Vec<u64>,
    /// The number of changes in these files.
    pub(crate) change_count: u64,
    /// Buckets, uploads, big files and volumes; see [`encode_state`].
    pub(crate) state: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CatalogVolume {
    pub(crate) number: u32,
    pub(crate) nonce: u64,
    pub(crate) volume: Volume,
    pub(crate) range: Option<AddressRange>,
}

impl Catalog {
    /// Returns the file's bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.state.len() + 200);
        let fixed = [VERSION, self.applied.0, self.secret[0], self.secret[1], self.last_file];
        fixed.into_iter().for_each(|number| put_varint(&mut body, number));
        put_numbers(&mut body, &self.runs);
        put_varint(&mut body, self.locations);
        put_numbers(&mut body, &self.changes);
        put_varint(&mut body, self.change_count);
        body.extend_from_slice(&self.state);
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&haul_crc::crc32c(&body).to_le_bytes());
        out.extend_from_slice(&(body.len() as u64).to_le_bytes());
        out.extend_from_slice(&body);
        out
    }

    /// Decodes a file; `None` if it is damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (header, body) = bytes.split_at_checked(HEADER_BYTES)?;
        let length = u64::from_le_bytes(header[12..20].try_into().ok()?);
        let body = body.get(..usize::try_from(length).ok()?)?;
        let checksum = u32::from_le_bytes(header[8..12].try_into().ok()?);
        if header[..8] != MAGIC || haul_crc::crc32c(body) != checksum {
            return None;
        }
        let mut input = body;
        let input = &mut input;
        if take_varint(input)? != VERSION {
            return None;
        }
        Some(Self {
            applied: Lsn(take_varint(input)?),
            secret: [take_varint(input)?, take_varint(input)?],
            last_file: take_varint(input)?,
            runs: take_numbers(input)?,
            locations: take_varint(input)?,
            changes: take_numbers(input)?,
            change_count: take_varint(input)?,
            state: input.to_vec(),
        })
    }

    /// Returns the numbers of all files that the catalog lists.
    pub(crate) fn files(&self) -> impl Iterator<Item = u64> {
        self.runs.iter().chain(&self.changes).copied().chain([self.locations])
    }
}

fn put_numbers(out: &mut Vec<u8>, numbers: &[u64]) {
    put_varint(out, numbers.len() as u64);
    numbers.iter().for_each(|number| put_varint(out, *number));
}

fn take_numbers(input: &mut &[u8]) -> Option<Vec<u64>> {
    (0..take_varint(input)?).map(|_| take_varint(input)).collect()
}

/// Encodes buckets, uploads, big files and volumes. `nonces` returns the nonce of a volume.
pub(crate) fn encode_state(index: &Index, nonces: impl Fn(u32) -> u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, index.newest.0);
    put_varint(&mut out, index.buckets.len() as u64);
    for (name, bucket) in &index.buckets {
        put_text(&mut out, name);
        put_varint(&mut out, bucket.created.0);
        put_position(&mut out, bucket.position);
        put_varint(&mut out, bucket.objects);
        put_varint(&mut out, bucket.bytes);
    }
    put_varint(&mut out, index.uploads.len() as u64);
    for (name, upload) in &index.uploads {
        put_upload(&mut out, name, upload);
    }
    let files: Vec<(FilePart, u32)> = index.files.uses().collect();
    put_varint(&mut out, files.len() as u64);
    for (file, uses) in files {
        out.extend_from_slice(&file.id.to_le_bytes());
        put_varint(&mut out, file.bytes);
        put_varint(&mut out, uses.into());
    }
    let volumes: Vec<(u32, Volume)> = index.volumes.iter().collect();
    put_varint(&mut out, volumes.len() as u64);
    for (number, volume) in volumes {
        let range = index.addresses.range(number);
        put_volume(&mut out, CatalogVolume { number, nonce: nonces(number), volume, range });
    }
    out
}

/// Decodes buckets, uploads, big files and volumes into an empty index. Returns the volumes; `None`
/// if the bytes are malformed.
pub(crate) fn decode_state(mut bytes: &[u8], index: &mut Index) -> Option<Vec<CatalogVolume>> {
    let input = &mut bytes;
    index.newest = Version(take_varint(input)?);
    for _ in 0..take_varint(input)? {
        let name = take_text(input)?;
        let bucket = Bucket {
            created: Version(take_varint(input)?),
            position: take_position(input)?,
            objects: take_varint(input)?,
            bytes: take_varint(input)?,
        };
        index.buckets.insert(name.into_boxed_str(), bucket);
    }
    for _ in 0..take_varint(input)? {
        let (name, upload) = take_upload(input)?;
        index.restore_upload(name, upload);
    }
    for _ in 0..take_varint(input)? {
        let file = FilePart { id: take_u128(input)?, bytes: take_varint(input)? };
        index.files.restore(file, u32::try_from(take_varint(input)?).ok()?);
    }
    let mut volumes = Vec::new();
    for _ in 0..take_varint(input)? {
        let volume = take_volume(input)?;
        index.volumes.restore(volume.number, volume.volume);
        if volume.range.is_some_and(|range| !index.addresses.restore(range)) {
            return None;
        }
        volumes.push(volume);
    }
    input.is_empty().then_some(volumes)
}

fn put_upload(out: &mut Vec<u8>, name: &UploadName, upload: &Upload) {
    out.extend_from_slice(&name.id.to_le_bytes());
    let (bucket, key) = name.bucket_and_key();
    put_text(out, bucket);
    put_text(out, key);
    put_varint(out, upload.started.0);
    put_position(out, upload.at);
    put_varint(out, upload.parts.len() as u64);
    for (number, part) in &upload.parts {
        put_varint(out, (*number).into());
        put_varint(out, part.version.0);
        let entry = part.encode();
        put_varint(out, entry.len() as u64);
        out.extend_from_slice(&entry);
    }
}

fn take_upload(input: &mut &[u8]) -> Option<(UploadName, Upload)> {
    let id = take_u128(input)?;
    let name = UploadName::new(&take_text(input)?, &take_text(input)?, id);
    let mut upload = Upload {
        started: Version(take_varint(input)?),
        at: take_position(input)?,
        ..Upload::default()
    };
    for _ in 0..take_varint(input)? {
        let number = u16::try_from(take_varint(input)?).ok()?;
        let version = Version(take_varint(input)?);
        let entry = Entry::decode(take_bytes(input)?)?;
        upload.parts.insert(number, Entry { version, ..entry });
    }
    Some((name, upload))
}

fn put_volume(out: &mut Vec<u8>, volume: CatalogVolume) {
    let CatalogVolume { number, nonce, volume, range } = volume;
    put_varint(out, number.into());
    out.extend_from_slice(&nonce.to_le_bytes());
    let counters =
        [volume.live_needles, volume.live_bytes, volume.dead_bytes, volume.tombstone_bytes];
    counters.into_iter().for_each(|counter| put_varint(out, counter));
    let (base, bytes) = range.map_or((0, 0), |range| (range.base, range.bytes));
    put_varint(out, base);
    put_varint(out, bytes);
}

fn take_volume(input: &mut &[u8]) -> Option<CatalogVolume> {
    let number = u32::try_from(take_varint(input)?).ok()?;
    let (nonce, rest) = input.split_first_chunk()?;
    *input = rest;
    let volume = Volume {
        live_needles: take_varint(input)?,
        live_bytes: take_varint(input)?,
        dead_bytes: take_varint(input)?,
        tombstone_bytes: take_varint(input)?,
    };
    let (base, bytes) = (take_varint(input)?, take_varint(input)?);
    let range = (bytes > 0).then_some(AddressRange { volume: number, base, bytes });
    Some(CatalogVolume { number, nonce: u64::from_le_bytes(*nonce), volume, range })
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn take_bytes<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_varint(input)?).ok()?;
    let (bytes, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(bytes)
}

fn take_text(input: &mut &[u8]) -> Option<String> {
    String::from_utf8(take_bytes(input)?.to_vec()).ok()
}

fn take_u128(input: &mut &[u8]) -> Option<u128> {
    let (bytes, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(u128::from_le_bytes(*bytes))
}

/// Encodes a position. 0 stands for none, because no record starts at offset 0.
fn put_position(out: &mut Vec<u8>, at: Option<Position>) {
    put_varint(out, at.map_or(0, |at| at.lsn.0));
    if let Some(at) = at {
        put_varint(out, at.payload_bytes.into());
    }
}

#[expect(clippy::option_option, reason = "the outer one is malformed input, the inner one a value")]
fn take_position(input: &mut &[u8]) -> Option<Option<Position>> {
    let lsn = Lsn(take_varint(input)?);
    if lsn == Lsn::default() {
        return Some(None);
    }
    let payload_bytes = u32::try_from(take_varint(input)?).ok()?;
    Some(Some(Position { lsn, payload_bytes }))
}

pub(crate) fn encode_changes(changes: &[LocationChange]) -> Vec<u8> {
    let mut out = Vec::with_capacity(24 * changes.len());
    for change in changes {
        let location = |location: Option<Location>| location.map_or(u64::MAX, |at| at.0);
        for number in [change.hash, location(change.removed), location(change.inserted)] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
    out
}

/// Decodes changes to the location table; `None` if the bytes are malformed.
pub(crate) fn decode_changes(bytes: &[u8]) -> Option<Vec<LocationChange>> {
    let (changes, rest) = bytes.as_chunks::<24>();
    let number = |change: &[u8; 24], at: usize| {
        u64::from_le_bytes(change[8 * at..8 * at + 8].try_into().unwrap_or_default())
    };
    let location = |number: u64| (number != u64::MAX).then_some(Location(number));
    let is_valid = |number: u64| number == u64::MAX || number < 1 << VALUE_BITS;
    let decode = |change: &[u8; 24]| {
        let [hash, removed, inserted] = [0, 1, 2].map(|at| number(change, at));
        (is_valid(removed) && is_valid(inserted)).then(|| LocationChange {
            hash,
            removed: location(removed),
            inserted: location(inserted),
        })
    };
    if !rest.is_empty() {
        return None;
    }
    changes.iter().map(decode).collect()
}
