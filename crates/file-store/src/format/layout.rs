//! The needle layout: a fixed part, followed by the fields that the flags announce.

use super::blocks::block_count;
use super::{
    CHECKSUM, FILE_BYTES, Head, KIND_AT, Kind, Needle, NeedleError, UNKNOWN_KIND, array,
    decode_attributes, decode_files, decode_text, encode_attributes, length, u16_at, u32_at,
    u64_at,
};
use crate::clock::Version;
use crate::object::{Attributes, Etag};
use crate::varint::put_varint;

/// The length of a head's fixed part.
pub(super) const FIXED_BYTES: usize = 17;

/// A bit that is set in the kind byte of every needle.
pub(super) const KIND_BIT: u8 = 0x80;

/// Flag bits. Each one but the last indicates a field, which must be neither zero nor empty.
mod flag {
    /// The MD5 and the length.
    pub(super) const CONTENT: u8 = 0x01;
    pub(super) const FILES: u8 = 0x02;
    pub(super) const ATTRIBUTES: u8 = 0x04;
    pub(super) const ETAG_PARTS: u8 = 0x08;
    pub(super) const PART: u8 = 0x10;
    pub(super) const UPLOAD: u8 = 0x20;
    pub(super) const BLOCKS: u8 = 0x40;
    /// The object has a version ID.
    pub(super) const VERSIONED: u8 = 0x80;
}

fn flags(head: &Head, attribute_bytes: usize, blocks: &[u32]) -> u8 {
    let has_content = head.bytes != 0 || head.etag.md5 != [0; 16];
    let fields = [
        (flag::CONTENT, has_content),
        (flag::FILES, !head.files.is_empty()),
        (flag::ATTRIBUTES, attribute_bytes > 0),
        (flag::ETAG_PARTS, head.etag.parts != 0),
        (flag::PART, head.part != 0),
        (flag::UPLOAD, head.upload != 0),
        (flag::BLOCKS, !blocks.is_empty()),
        (flag::VERSIONED, head.is_versioned),
    ];
    fields.into_iter().filter(|(_, is_present)| *is_present).fold(0, |all, (flag, _)| all | flag)
}

/// Returns the length of a head with these block checksums and `attribute_bytes` of attributes.
pub(super) fn head_bytes(head: &Head, attribute_bytes: usize, blocks: &[u32]) -> usize {
    let flags = flags(head, attribute_bytes, blocks);
    let field = |flag: u8, bytes: usize| if flags & flag == 0 { 0 } else { bytes };
    FIXED_BYTES
        + field(flag::CONTENT, head.etag.md5.len() + varint_bytes(head.bytes))
        + field(flag::FILES, varint_bytes(head.files.len() as u64))
        + field(flag::ATTRIBUTES, varint_bytes(attribute_bytes as u64))
        + field(flag::ETAG_PARTS, varint_bytes(head.etag.parts.into()))
        + field(flag::PART, varint_bytes(head.part.into()))
        + field(flag::UPLOAD, size_of::<u128>())
        + head.bucket.len()
        + head.key.len()
        + FILE_BYTES * head.files.len()
        + size_of_val(blocks)
        + attribute_bytes
}

/// Encodes a needle up to its data.
pub(super) fn encode(head: &Head, attributes: &Attributes, blocks: &[u32]) -> Vec<u8> {
    debug_assert!(blocks.is_empty() || Some(blocks.len()) == block_count(head.bytes));
    let attribute_bytes = attributes.iter().map(|(name, value)| 8 + name.len() + value.len()).sum();
    let flags = flags(head, attribute_bytes, blocks);
    let mut out = Vec::with_capacity(head_bytes(head, attribute_bytes, blocks));
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&[KIND_BIT | head.kind.code(), flags, length(head.bucket.len())]);
    out.extend_from_slice(&length::<u16>(head.key.len()).to_le_bytes());
    out.extend_from_slice(&head.version.0.to_le_bytes());
    if flags & flag::CONTENT != 0 {
        out.extend_from_slice(&head.etag.md5);
    }
    for (flag, number) in [
        (flag::CONTENT, head.bytes),
        (flag::FILES, head.files.len() as u64),
        (flag::ATTRIBUTES, attribute_bytes as u64),
        (flag::ETAG_PARTS, head.etag.parts.into()),
        (flag::PART, head.part.into()),
    ] {
        if flags & flag != 0 {
            put_varint(&mut out, number);
        }
    }
    if flags & flag::UPLOAD != 0 {
        out.extend_from_slice(&head.upload.to_le_bytes());
    }
    out.extend_from_slice(head.bucket.as_bytes());
    out.extend_from_slice(head.key.as_bytes());
    for file in &head.files {
        out.extend_from_slice(&file.id.to_le_bytes());
        out.extend_from_slice(&file.bytes.to_le_bytes());
    }
    blocks.iter().for_each(|block| out.extend_from_slice(&block.to_le_bytes()));
    encode_attributes(attributes, &mut out);
    let checksum = haul_crc::crc32c(&out[4..]);
    out[..4].copy_from_slice(&checksum.to_le_bytes());
    out
}

/// The fields in a head before the names. The head's checksum is not verified yet.
struct Front {
    flags: u8,
    md5: [u8; 16],
    bytes: u64,
    files: u32,
    attribute_bytes: u32,
    etag_parts: u16,
    part: u16,
    upload: u128,
    /// The number of block checksums.
    blocks: usize,
    /// The offset of the bucket's name.
    end: usize,
}

impl Front {
    fn decode(bytes: &[u8]) -> Result<Self, NeedleError> {
        let flags = bytes[KIND_AT + 1];
        let mut fields = Fields { bytes, at: FIXED_BYTES };
        let md5 = if flags & flag::CONTENT == 0 { [0; 16] } else { fields.array()? };
        let mut number = |flag: u8| if flags & flag == 0 { Ok(0) } else { fields.varint() };
        let mut front = Self {
            flags,
            md5,
            bytes: number(flag::CONTENT)?,
            files: narrow(number(flag::FILES)?)?,
            attribute_bytes: narrow(number(flag::ATTRIBUTES)?)?,
            etag_parts: narrow(number(flag::ETAG_PARTS)?)?,
            part: narrow(number(flag::PART)?)?,
            upload: 0,
            blocks: 0,
            end: 0,
        };
        if flags & flag::UPLOAD != 0 {
            front.upload = u128::from_le_bytes(fields.array()?);
        }
        if flags & flag::BLOCKS != 0 {
            let is_inline = bytes[KIND_AT] == KIND_BIT | Kind::Object.code() && front.files == 0;
            let count = block_count(front.bytes).filter(|_| is_inline);
            front.blocks = count.ok_or(NeedleError::Malformed("it cannot have block checksums"))?;
        }
        front.end = fields.at;
        Ok(front)
    }

    /// Returns `true` if no indicated field is zero or empty: each head has exactly one encoding.
    fn is_canonical(&self) -> bool {
        let is_set = |flag: u8| self.flags & flag != 0;
        (!is_set(flag::CONTENT) || self.bytes != 0 || self.md5 != [0; 16])
            && (!is_set(flag::FILES) || self.files != 0)
            && (!is_set(flag::ATTRIBUTES) || self.attribute_bytes != 0)
            && (!is_set(flag::ETAG_PARTS) || self.etag_parts != 0)
            && (!is_set(flag::PART) || self.part != 0)
            && (!is_set(flag::UPLOAD) || self.upload != 0)
    }
}

/// Decodes a needle. Its head must be complete; its data may be incomplete.
pub(super) fn decode(bytes: &[u8]) -> Result<Needle<'_>, NeedleError> {
    if bytes.len() < FIXED_BYTES {
        return Err(NeedleError::Needs(FIXED_BYTES));
    }
    let front = Front::decode(bytes)?;
    let bucket_end = front.end + usize::from(bytes[6]);
    let key_end = bucket_end + usize::from(u16_at(bytes, 7));
    let files_end = key_end.saturating_add(FILE_BYTES.saturating_mul(front.files as usize));
    let blocks_end = files_end.saturating_add(size_of::<u32>() * front.blocks);
    let head_end = blocks_end.saturating_add(front.attribute_bytes as usize);
    if bytes.len() < head_end {
        return Err(NeedleError::Needs(head_end));
    }
    if haul_crc::crc32c(&bytes[4..head_end]) != u32_at(bytes, 0) {
        return Err(CHECKSUM);
    }
    let is_object = bytes[KIND_AT] == KIND_BIT | Kind::Object.code();
    if !front.is_canonical() || front.flags & flag::VERSIONED != 0 && !is_object {
        return Err(NeedleError::Malformed("its flags do not match its fields"));
    }
    let code = bytes[KIND_AT].checked_sub(KIND_BIT).ok_or(UNKNOWN_KIND)?;
    let head = Head {
        kind: Kind::of(code).ok_or(UNKNOWN_KIND)?,
        version: Version(u64_at(bytes, 9)),
        bucket: decode_text(&bytes[front.end..bucket_end])?,
        key: decode_text(&bytes[bucket_end..key_end])?,
        bytes: front.bytes,
        etag: Etag { md5: front.md5, parts: front.etag_parts },
        part: front.part,
        upload: front.upload,
        is_versioned: front.flags & flag::VERSIONED != 0,
        files: decode_files(&bytes[key_end..files_end]),
        blocks: bytes[files_end..blocks_end]
            .chunks_exact(4)
            .map(|block| u32_at(block, 0))
            .collect(),
    };
    let attributes = decode_attributes(&bytes[blocks_end..head_end])?;
    Ok(Needle { head, attributes, rest: &bytes[head_end..] })
}

fn narrow<T: TryFrom<u64>>(number: u64) -> Result<T, NeedleError> {
    T::try_from(number).ok().ok_or(NeedleError::Malformed("it has a number that is too great"))
}

/// A cursor over the fields before the names.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Fields<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], NeedleError> {
        let end = self.at + N;
        if self.bytes.len() < end {
            return Err(NeedleError::Needs(end));
        }
        let from = std::mem::replace(&mut self.at, end);
        Ok(array(self.bytes, from))
    }

    /// Decodes a number in LEB128. Only the shortest encoding of a number is valid.
    fn varint(&mut self) -> Result<u64, NeedleError> {
        const BAD: NeedleError = NeedleError::Malformed("it has a malformed number");
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits || byte == 0 && shift > 0 {
                return Err(BAD);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(BAD)
    }
}

fn varint_bytes(number: u64) -> usize {
    let bits = u64::BITS - number.leading_zeros();
    bits.div_ceil(7).max(1) as usize
}
