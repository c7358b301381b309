//! The bytes of needles and of the marker: the only file that knows them.
//! See `FORMAT.md` for pictures. All numbers are little-endian, checksums are CRC-32C.

use crate::clock::Version;
use crate::object::{Attributes, Etag};

/// The bytes of the fixed part of a needle's head.
pub(crate) const FIXED_BYTES: usize = 72;

/// The bytes of a reference to a big object's file.
const FILE_BYTES: usize = 24;

/// What the directory's marker file says.
pub(crate) const MARKER_TEXT: &str = "haul file store, version 2\n";

/// What it says in a store without a manifest, which gets one when it is opened.
pub(crate) const MARKER_TEXT_V1: &str = "haul file store, version 1\n";

/// What a needle does to its store.
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

/// One file of a big object, and how much of the object is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilePart {
    pub(crate) id: u128,
    pub(crate) bytes: u64,
}

/// A needle without its attributes and its data: what the index is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) version: Version,
    pub(crate) bucket: String,
    pub(crate) key: String,
    /// The length of the object or of the part.
    pub(crate) bytes: u64,
    pub(crate) etag: Etag,
    /// The number of the part, or 0.
    pub(crate) part: u16,
    /// The upload a part belongs to, or 0.
    pub(crate) upload: u128,
    /// Where the bytes are, when they are not in the needle itself.
    pub(crate) files: Vec<FilePart>,
}

/// A needle taken apart.
#[derive(Debug)]
pub(crate) struct Needle<'a> {
    pub(crate) head: Head,
    pub(crate) attributes: Attributes,
    /// What follows the head: the bytes of a small object, or the next needle of the record.
    pub(crate) rest: &'a [u8],
}

/// Why some bytes are not a needle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotANeedle {
    /// The head is longer than the bytes at hand: at least this many are needed.
    Needs(usize),
    /// It is none.
    Malformed(&'static str),
}

impl Kind {
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
        Some(match code {
            1 => Self::Object,
            2 => Self::Tombstone,
            3 => Self::BucketCreated,
            4 => Self::BucketDeleted,
            5 => Self::UploadStarted,
            6 => Self::Part,
            7 => Self::UploadEnded,
            _ => return None,
        })
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

fn length<T: TryFrom<usize>>(bytes: usize) -> T {
    T::try_from(bytes).ok().expect("names, attributes and parts were checked to be short")
}

impl Head {
    /// Whether the needle stores nothing and only ends something older.
    pub(crate) fn ends_something(&self) -> bool {
        matches!(self.kind, Kind::Tombstone | Kind::BucketDeleted | Kind::UploadEnded)
    }

    /// The length of the needle's head, but for its attributes.
    pub(crate) fn head_bytes(&self) -> usize {
        FIXED_BYTES + self.bucket.len() + self.key.len() + FILE_BYTES * self.files.len()
    }

    /// How many bytes of data the needle holds behind its head.
    pub(crate) fn inline_bytes(&self) -> usize {
        if self.kind == Kind::Object && self.files.is_empty() {
            usize::try_from(self.bytes).unwrap_or(usize::MAX)
        } else {
            0
        }
    }

    /// The needle's bytes up to its data.
    pub(crate) fn encode(&self, attributes: &Attributes) -> Vec<u8> {
        let mut out = vec![0; FIXED_BYTES];
        out.extend_from_slice(self.bucket.as_bytes());
        out.extend_from_slice(self.key.as_bytes());
        for file in &self.files {
            out.extend_from_slice(&file.id.to_le_bytes());
            out.extend_from_slice(&file.bytes.to_le_bytes());
        }
        let attributes_at = out.len();
        for (name, value) in attributes.iter() {
            for text in [name, value] {
                out.extend_from_slice(&length::<u32>(text.len()).to_le_bytes());
                out.extend_from_slice(text.as_bytes());
            }
        }
        out[4] = self.kind.code();
        out[5] = length(self.bucket.len());
        out[6..8].copy_from_slice(&length::<u16>(self.key.len()).to_le_bytes());
        out[8..12].copy_from_slice(&length::<u32>(self.files.len()).to_le_bytes());
        let attribute_bytes = length::<u32>(out.len() - attributes_at);
        out[12..16].copy_from_slice(&attribute_bytes.to_le_bytes());
        out[16..24].copy_from_slice(&self.version.0.to_le_bytes());
        out[24..32].copy_from_slice(&self.bytes.to_le_bytes());
        out[32..48].copy_from_slice(&self.etag.md5);
        out[48..50].copy_from_slice(&self.etag.parts.to_le_bytes());
        out[50..52].copy_from_slice(&self.part.to_le_bytes());
        // 52 to 55 are zero.
        out[56..72].copy_from_slice(&self.upload.to_le_bytes());
        let checksum = haul_crc::crc32c(&out[4..]);
        out[..4].copy_from_slice(&checksum.to_le_bytes());
        out
    }
}

impl<'a> Needle<'a> {
    /// Takes a needle apart. Its head must be whole, its data need not be.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, NotANeedle> {
        if bytes.len() < FIXED_BYTES {
            return Err(NotANeedle::Needs(FIXED_BYTES));
        }
        let bucket_end = FIXED_BYTES + usize::from(bytes[5]);
        let key_end = bucket_end + usize::from(u16_at(bytes, 6));
        let files_end = key_end + FILE_BYTES * u32_at(bytes, 8) as usize;
        let head_end = files_end + u32_at(bytes, 12) as usize;
        if bytes.len() < head_end {
            return Err(NotANeedle::Needs(head_end));
        }
        if haul_crc::crc32c(&bytes[4..head_end]) != u32_at(bytes, 0) {
            return Err(NotANeedle::Malformed("the checksum of the needle's head does not match"));
        }
        let text = |from: usize, to: usize| {
            let text = std::str::from_utf8(&bytes[from..to]);
            text.map(str::to_owned).map_err(|_not_utf8| NotANeedle::Malformed("it is not UTF-8"))
        };
        let head = Head {
            kind: Kind::of(bytes[4]).ok_or(NotANeedle::Malformed("its kind is not known"))?,
            version: Version(u64_at(bytes, 16)),
            bucket: text(FIXED_BYTES, bucket_end)?,
            key: text(bucket_end, key_end)?,
            bytes: u64_at(bytes, 24),
            etag: Etag { md5: array(bytes, 32), parts: u16_at(bytes, 48) },
            part: u16_at(bytes, 50),
            upload: u128_at(bytes, 56),
            files: bytes[key_end..files_end]
                .chunks_exact(FILE_BYTES)
                .map(|file| FilePart { id: u128_at(file, 0), bytes: u64_at(file, 16) })
                .collect(),
        };
        let attributes = decode_attributes(&bytes[files_end..head_end])?;
        Ok(Self { head, attributes, rest: &bytes[head_end..] })
    }
}

/// The needles of one record in order, each with its own bytes, head and data.
pub(crate) fn needles(record: &[u8]) -> impl Iterator<Item = Result<(Head, &[u8]), NotANeedle>> {
    let mut left = record;
    std::iter::from_fn(move || {
        if left.is_empty() {
            return None;
        }
        let decoded = Needle::decode(left).and_then(|needle| {
            let data = needle.head.inline_bytes();
            let rest = needle.rest.get(data..).ok_or(NotANeedle::Needs(data))?;
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

fn decode_attributes(mut bytes: &[u8]) -> Result<Attributes, NotANeedle> {
    const BAD: NotANeedle = NotANeedle::Malformed("its attributes do not fit their length");
    let mut next_text = || -> Result<String, NotANeedle> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head() -> Head {
        Head {
            kind: Kind::Object,
            version: Version(0x0102_0304_0506_0708),
            bucket: "photos".to_owned(),
            key: "cat.jpg".to_owned(),
            bytes: 5,
            etag: Etag { md5: *b"0123456789abcdef", parts: 0 },
            part: 0,
            upload: 0,
            files: Vec::new(),
        }
    }

    #[test]
    fn the_worked_example_of_the_format_page_is_true() {
        let page = include_str!("../FORMAT.md");
        let example = haul_testing::docs::hex_example(page);
        let attributes = Attributes::from_iter([("content-type", "image/jpeg")]);
        let mut needle = head().encode(&attributes);
        needle.extend_from_slice(b"meow!");
        assert_eq!(example, needle, "got {needle:02x?}");
    }

    #[test]
    fn a_needle_reads_back_as_it_was_written() {
        let mut head = head();
        head.files = vec![FilePart { id: 7, bytes: 1 }, FilePart { id: u128::MAX, bytes: 2 }];
        let attributes = Attributes::from_iter([("a", ""), ("name", "wert \u{e4}")]);
        let mut bytes = head.encode(&attributes);
        let head_bytes = bytes.len();
        bytes.extend_from_slice(b"data");
        let needle = Needle::decode(&bytes).unwrap();
        assert_eq!((needle.head, needle.attributes, needle.rest), (head, attributes, &b"data"[..]));
        for cut in 0..head_bytes {
            assert!(matches!(Needle::decode(&bytes[..cut]), Err(NotANeedle::Needs(n)) if n > cut));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoders_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            drop(Needle::decode(&bytes));
            // With a checksum that matches, the rest of the decoder is reached.
            if bytes.len() >= FIXED_BYTES {
                bytes[5..16].fill(0);
                bytes[12] = u8::try_from(bytes.len() - FIXED_BYTES).unwrap_or(255);
                let checksum = haul_crc::crc32c(&bytes[4..]);
                bytes[..4].copy_from_slice(&checksum.to_le_bytes());
                drop(Needle::decode(&bytes));
            }
        }
    }
}
