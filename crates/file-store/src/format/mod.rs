//! The formats of needles and of the marker file, which `FORMAT.md` describes. All numbers are
//! little-endian; checksums are CRC-32C.

mod blocks;
mod layout;
#[cfg(test)]
mod tests;

use crate::clock::Version;
use crate::object::{Attributes, Etag, ObjectInfo, VersionId};

pub(crate) use blocks::{BLOCK_BYTES, block_checksums};

/// The offset of a needle's kind byte.
const KIND_AT: usize = 4;

/// The length of a reference to a big object's file.
const FILE_BYTES: usize = 24;

/// The marker file's content.
pub(crate) const MARKER_TEXT: &str = "haul file store, version 1\n";

/// The effect of a needle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Stores an object under its key.
    Object,
    /// Deletes the object under its key.
    Tombstone,
    /// Creates its bucket.
    BucketCreated,
    /// Deletes its bucket.
    BucketDeleted,
    /// Starts an upload for its key.
    UploadStarted,
    /// Stores one part of an upload.
    Part,
    /// Ends an upload, completed or aborted.
    UploadEnded,
}

/// A big object's file, and the number of object bytes in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilePart {
    pub(crate) id: u128,
    pub(crate) bytes: u64,
}

/// A needle's head: all fields that the index needs, without attributes and data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) version: Version,
    pub(crate) bucket: String,
    pub(crate) key: String,
    /// The length of the object or the part, in bytes.
    pub(crate) bytes: u64,
    pub(crate) etag: Etag,
    /// The part's number; 0 if the needle is not a part.
    pub(crate) part: u16,
    /// The upload's ID; 0 if the needle does not belong to an upload.
    pub(crate) upload: u128,
    /// `true` if the object has a version ID, which is `version`.
    pub(crate) is_versioned: bool,
    /// The files that contain the data; empty if the needle itself contains it.
    pub(crate) files: Vec<FilePart>,
    /// One checksum per [`BLOCK_BYTES`] of the data, or empty. Neither the index in memory nor the
    /// volume indexes have them.
    pub(crate) blocks: Box<[u32]>,
}

impl Head {
    /// Creates a head with these names and no other fields.
    pub(crate) fn new(kind: Kind, bucket: &str, key: &str) -> Self {
        Self {
            kind,
            version: Version::default(),
            bucket: bucket.to_owned(),
            key: key.to_owned(),
            bytes: 0,
            etag: Etag { md5: [0; 16], parts: 0 },
            part: 0,
            upload: 0,
            is_versioned: false,
            files: Vec::new(),
            blocks: Box::default(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Needle<'a> {
    pub(crate) head: Head,
    pub(crate) attributes: Attributes,
    /// The bytes after the head: the data of a small object, or the next needle of the record.
    pub(crate) rest: &'a [u8],
}

/// The reason why bytes are not a needle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NeedleError {
    /// The head is longer than the available bytes: at least this many are needed.
    Needs(usize),
    /// The bytes are not a needle.
    Malformed(&'static str),
}

impl Kind {
    /// All kinds, in the order of their codes. The first has code 1.
    const ALL: [Self; 7] = [
        Self::Object,
        Self::Tombstone,
        Self::BucketCreated,
        Self::BucketDeleted,
        Self::UploadStarted,
        Self::Part,
        Self::UploadEnded,
    ];

    fn code(self) -> u8 {
        match self {
            Self::Object => 1,
            Self::Tombstone => 2,
            Self::BucketCreated => 3,
            Self::BucketDeleted => 4,
            Self::UploadStarted => 5,
            Self::Part => 6,
            Self::UploadEnded => 7,
        }
    }

    fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

fn u128_at(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(array(bytes, at))
}

impl Head {
    /// Returns `true` for a tombstone: a needle that stores nothing and only ends older needles. An
    /// upload's end counts as a tombstone, too.
    pub(crate) fn is_tombstone(&self) -> bool {
        matches!(self.kind, Kind::Tombstone | Kind::BucketDeleted | Kind::UploadEnded)
    }

    /// Returns the description of the object that the needle stores.
    pub(crate) fn info(&self) -> ObjectInfo {
        ObjectInfo {
            key: self.key.clone(),
            bytes: self.bytes,
            modified: self.version.time(),
            etag: self.etag,
            version_id: VersionId::of(self.is_versioned, self.version.0),
        }
    }

    /// Returns the length of the needle's head in bytes, without its attributes.
    pub(crate) fn head_bytes(&self) -> usize {
        layout::head_bytes(self, 0, &self.blocks)
    }

    /// Returns the length of a needle without attributes and block checksums, with its data.
    pub(crate) fn plain_bytes(&self) -> usize {
        layout::head_bytes(self, 0, &[]) + self.inline_bytes()
    }

    /// Returns the length of the data in the needle.
    pub(crate) fn inline_bytes(&self) -> usize {
        if self.kind == Kind::Object && self.files.is_empty() {
            usize::try_from(self.bytes).unwrap_or(usize::MAX)
        } else {
            0
        }
    }

    /// Returns the needle's bytes up to its data.
    pub(crate) fn encode(&self, attributes: &Attributes) -> Vec<u8> {
        layout::encode(self, attributes, &self.blocks)
    }

    /// Returns the head's bytes without attributes and block checksums, for a volume index.
    pub(crate) fn encode_for_index(&self) -> Vec<u8> {
        layout::encode(self, &Attributes::new(), &[])
    }
}

impl<'a> Needle<'a> {
    /// Returns the data in a needle that was read to the end of its record.
    pub(crate) fn data(&self) -> Result<&'a [u8], NeedleError> {
        const ERROR: NeedleError =
            NeedleError::Malformed("its head declares more bytes than it has");
        self.rest.get(..self.head.inline_bytes()).ok_or(ERROR)
    }

    /// Decodes a needle. Its head must be complete; its data may be incomplete.
    ///
    /// [`NeedleError::Needs`] always requires more bytes than `bytes` has.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, NeedleError> {
        layout::decode(bytes)
    }
}

/// Returns a record's needles in order, each as its head and its own bytes.
pub(crate) fn needles(record: &[u8]) -> impl Iterator<Item = Result<(Head, &[u8]), NeedleError>> {
    let mut left = record;
    std::iter::from_fn(move || {
        if left.is_empty() {
            return None;
        }
        let decoded = Needle::decode(left).and_then(|needle| {
            let data = needle.head.inline_bytes();
            let rest = needle.rest.get(data..).ok_or(NeedleError::Needs(data))?;
            Ok((needle.head, rest))
        });
        Some(match decoded {
            Ok((head, rest)) => {
                let needle = &left[..left.len() - rest.len()];
                left = rest;
                Ok((head, needle))
            }
            Err(why) => {
                left = &[];
                Err(why)
            }
        })
    })
}

const CHECKSUM: NeedleError =
    NeedleError::Malformed("the checksum of the needle's head does not match");

const UNKNOWN_KIND: NeedleError = NeedleError::Malformed("its kind is not known");

/// Encodes attributes: each name and value is preceded by its length.
fn encode_attributes(attributes: &Attributes, out: &mut Vec<u8>) {
    for (name, value) in attributes.iter() {
        for text in [name, value] {
            out.extend_from_slice(&length::<u32>(text.len()).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
    }
}

fn decode_attributes(mut bytes: &[u8]) -> Result<Attributes, NeedleError> {
    const BAD: NeedleError = NeedleError::Malformed("its attributes do not match their length");
    let mut next_text = || -> Result<String, NeedleError> {
        let length = bytes.get(..4).ok_or(BAD)?;
        let end = 4 + u32_at(length, 0) as usize;
        let text = bytes.get(4..end).ok_or(BAD)?;
        bytes = &bytes[end..];
        std::str::from_utf8(text).map(str::to_owned).map_err(|_not_utf8| BAD)
    };
    let mut attributes = Attributes::new();
    loop {
        match next_text() {
            Ok(name) => attributes.set(name, next_text()?),
            Err(_) if bytes.is_empty() => return Ok(attributes),
            Err(bad) => return Err(bad),
        }
    }
}

fn decode_files(bytes: &[u8]) -> Vec<FilePart> {
    let part = |file: &[u8]| FilePart { id: u128_at(file, 0), bytes: u64_at(file, 16) };
    bytes.chunks_exact(FILE_BYTES).map(part).collect()
}

fn decode_text(bytes: &[u8]) -> Result<String, NeedleError> {
    let text = std::str::from_utf8(bytes).map(str::to_owned);
    text.map_err(|_not_utf8| NeedleError::Malformed("it is not UTF-8"))
}

/// Converts a length. The lengths of names, attributes and parts are checked before.
fn length<T: TryFrom<usize>>(bytes: usize) -> T {
    T::try_from(bytes).ok().expect("the lengths of names, attributes and parts are checked")
}
