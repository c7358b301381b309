//! An object's content as clients see it: decrypted, if the object is encrypted.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use haul_file_store::Object;
use haul_store_pool::Pool;
use parking_lot::Mutex;

use crate::encryption::customer::CustomerKey;
use crate::encryption::data_key::{DataKey, failed};
use crate::encryption::envelope::{Envelope, Structure, malformed};
use crate::encryption::lengths::{
    SALT_BYTES, SEGMENT_BYTES, TAG_BYTES, content_bytes, segment_offset, segments, stored_bytes,
};
use crate::encryption::master::{Master, not_applicable};
use crate::encryption::operator::EncryptionKeys;
use crate::encryption::segments::SegmentCipher;
use crate::errors::{S3ErrorCode, S3Result, from_store, refuse};

/// An encrypted object's key, and the lengths of its content.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) master: Master,
    pub(crate) key: DataKey,
    pub(crate) structure: Structure,
    parts: Vec<Part>,
    /// The index of the part that was read last, and its cipher.
    last: Mutex<Option<(usize, Arc<SegmentCipher>)>>,
}

/// A part of an encrypted object; an object in one piece has one part.
#[derive(Debug)]
struct Part {
    number: u16,
    /// The encrypted part's offset in the stored content.
    stored_start: u64,
    /// The part's range of the object's content.
    content: Range<u64>,
}

impl Opened {
    fn of(
        keys: Option<&EncryptionKeys>,
        names: (&str, &str),
        object: &Object,
        customer: Option<&CustomerKey>,
    ) -> S3Result<Option<Self>> {
        let envelope = match (object.info.etag.is_encoded(), Envelope::of(&object.attributes)?) {
            (false, None) if customer.is_none() => return Ok(None),
            (false, None) => return Err(not_applicable()),
            (true, Some(envelope)) => envelope,
            _ => return Err(malformed()),
        };
        let master = Master::for_recipient(&envelope.recipient, keys, customer)?;
        let key = envelope.open(&master, names, object.info.bytes);
        let key = key.ok_or_else(|| master.refusal())?;
        let parts = parts(&envelope.structure, &object.part_bytes()).ok_or_else(malformed)?;
        let structure = envelope.structure;
        Ok(Some(Self { master, key, structure, parts, last: Mutex::new(None) }))
    }

    /// Returns the length of each part's content, in bytes.
    pub(crate) fn part_bytes(&self) -> Vec<u64> {
        self.parts.iter().map(|part| part.content.end - part.content.start).collect()
    }

    /// Reads and decrypts up to `bytes_max` bytes at `offset`, at most to the end of a part.
    fn read(&self, object: &Object, offset: u64, bytes_max: usize) -> S3Result<Bytes> {
        let index = self.parts.partition_point(|part| part.content.end <= offset);
        let Some(part) = self.parts.get(index) else { return Ok(Bytes::new()) };
        let part_bytes = part.content.end - part.content.start;
        let start = offset - part.content.start;
        let end = start.saturating_add(bytes_max as u64).min(part_bytes);
        if start >= end {
            return Ok(Bytes::new());
        }
        let cipher = self.cipher(object, index, part)?;
        let wanted = start / SEGMENT_BYTES..end.div_ceil(SEGMENT_BYTES);
        let stored_end = segment_offset(wanted.end).min(stored_bytes(part_bytes));
        let stored = segment_offset(wanted.start)..stored_end;
        let stored = part.stored_start + stored.start..part.stored_start + stored.end;
        let sealed = read_exactly(object, stored)?;
        let mut content = Vec::with_capacity(sealed.len());
        let last = segments(part_bytes) - 1;
        for (number, segment) in wanted.clone().zip(sealed.chunks(SEALED_SEGMENT)) {
            let at = content.len();
            content.extend_from_slice(segment);
            let opened = cipher.open(number, number == last, &mut content[at..]);
            let length = opened.map_err(|_unspecified| {
                let key = &object.info.key;
                tracing::error!(key, segment = number, "an encrypted segment was changed");
                let message = format!("Segment {number} of the encrypted content was changed");
                refuse(S3ErrorCode::InternalError, message)
            })?;
            content.truncate(at + length);
        }
        let from = wanted.start * SEGMENT_BYTES;
        let at = |offset: u64| usize::try_from(offset - from).unwrap_or(usize::MAX);
        Ok(Bytes::from(content).slice(at(start)..at(end)))
    }

    /// Returns a part's cipher, after reading the part's salt unless this part was read last.
    fn cipher(&self, object: &Object, index: usize, part: &Part) -> S3Result<Arc<SegmentCipher>> {
        if let Some((last, cipher)) = &*self.last.lock()
            && *last == index
        {
            return Ok(Arc::clone(cipher));
        }
        let salt = part.stored_start..part.stored_start + SALT_BYTES;
        let salt = read_exactly(object, salt)?;
        let cipher = SegmentCipher::new(&self.key, &salt, part.number).map_err(failed)?;
        let cipher = Arc::new(cipher);
        *self.last.lock() = Some((index, Arc::clone(&cipher)));
        Ok(cipher)
    }
}

/// The length of each sealed segment but the last one, in bytes.
const SEALED_SEGMENT: usize = (64 << 10) + 16;
const _: () = assert!(SEALED_SEGMENT as u64 == SEGMENT_BYTES + TAG_BYTES);

/// Returns the parts of an object with this structure, whose encrypted parts have the lengths
/// `stored`; `None` if they do not match.
fn parts(structure: &Structure, stored: &[u64]) -> Option<Vec<Part>> {
    let one_piece = [0];
    let numbers = match structure {
        Structure::OnePiece => &one_piece[..],
        Structure::Parts(numbers) => numbers,
        Structure::Upload => return None,
    };
    if numbers.len() != stored.len() {
        return None;
    }
    let (mut stored_start, mut start) = (0, 0);
    let part = |(number, bytes): (&u16, &u64)| {
        let content = start..start + content_bytes(*bytes)?;
        start = content.end;
        let part = Part { number: *number, stored_start, content };
        stored_start += bytes;
        Some(part)
    };
    numbers.iter().zip(stored).map(part).collect()
}

/// Reads a range of an object's stored bytes.
fn read_exactly(object: &Object, range: Range<u64>) -> S3Result<Bytes> {
    let bytes = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
    let first = object.read(range.start, bytes).map_err(from_store)?;
    if first.len() == bytes {
        return Ok(first);
    }
    let mut all = BytesMut::with_capacity(bytes);
    all.extend_from_slice(&first);
    while all.len() < bytes {
        let at = range.start + all.len() as u64;
        let next = object.read(at, bytes - all.len()).map_err(from_store)?;
        if next.is_empty() {
            return Err(malformed());
        }
        all.extend_from_slice(&next);
    }
    Ok(all.freeze())
}

/// An object whose content is read as clients see it.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) object: Arc<Object>,
    pub(crate) opened: Option<Opened>,
}

impl Content {
    /// Opens an object; `object` may have only its head.
    ///
    /// # Errors
    /// If the object is encrypted and `customer` is missing or is another key, if the operator's
    /// key is missing, or if `customer` is given for an object that needs no customer key.
    pub(crate) fn open(
        keys: Option<&EncryptionKeys>,
        names: (&str, &str),
        object: Object,
        customer: Option<&CustomerKey>,
    ) -> S3Result<Self> {
        let opened = Opened::of(keys, names, &object, customer)?;
        Ok(Self { object: Arc::new(object), opened })
    }

    /// Returns the key that seals an encrypted object's data key.
    pub(crate) fn master(&self) -> Option<&Master> {
        self.opened.as_ref().map(|opened| &opened.master)
    }

    /// Returns the content's length, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.opened {
            Some(opened) => opened.part_bytes().iter().sum(),
            None => self.object.info.bytes,
        }
    }

    /// Returns the parts' lengths; one length for an object that was not uploaded in parts.
    pub(crate) fn part_bytes(&self) -> Vec<u64> {
        match &self.opened {
            Some(opened) => opened.part_bytes(),
            None => self.object.part_bytes(),
        }
    }

    /// Reads up to `bytes_max` bytes at `offset`; none at the end. May return fewer. Blocks, unless
    /// [`Self::is_in_memory`].
    pub(crate) fn read(&self, offset: u64, bytes_max: usize) -> S3Result<Bytes> {
        match &self.opened {
            Some(opened) => opened.read(&self.object, offset, bytes_max),
            None => self.object.read(offset, bytes_max).map_err(from_store),
        }
    }

    /// Returns `true` if the content is in memory in the form in which clients see it.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.opened.is_none() && self.object.is_in_memory()
    }
}

/// Returns an object's length in a listing, as clients see it. For an encrypted object that was
/// uploaded in parts, reads the lengths of the parts.
pub(crate) fn listed_bytes(
    store: &Pool,
    bucket: &str,
    info: &haul_file_store::ObjectInfo,
    version: Option<haul_file_store::VersionId>,
) -> S3Result<u64> {
    if !info.etag.is_encoded() {
        return Ok(info.bytes);
    }
    if info.etag.part_count() == 0 {
        return content_bytes(info.bytes).ok_or_else(malformed);
    }
    let head = match version {
        Some(version) => store.head_version(bucket, &info.key, version),
        None => store.head(bucket, &info.key),
    };
    match head {
        Ok(object) if object.info.etag == info.etag => {
            let lengths = object.part_bytes().into_iter().map(content_bytes);
            lengths.sum::<Option<u64>>().ok_or_else(malformed)
        }
        // The object was replaced or deleted meanwhile: the listing shows that it existed.
        _ => Ok(info.bytes),
    }
}
