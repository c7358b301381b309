//! The layout of needles in stores of versions 1 and 2, which is read but no longer written.

#[cfg(test)]
use super::encode_attributes;
use super::{
    CHECKSUM, FILE_BYTES, Head, KIND_AT, Kind, Needle, NotANeedle, UNKNOWN_KIND, array,
    decode_attributes, decode_files, decode_text, u16_at, u32_at, u64_at, u128_at,
};
use crate::clock::Version;
#[cfg(test)]
use crate::object::Attributes;
use crate::object::Etag;

/// The length of the fixed part of a head.
pub(super) const FIXED_BYTES: usize = 72;

/// Decodes a needle. Its head must be complete; its data may be incomplete.
pub(super) fn decode(bytes: &[u8]) -> Result<Needle<'_>, NotANeedle> {
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
        return Err(CHECKSUM);
    }
    let head = Head {
        kind: Kind::of(bytes[KIND_AT]).ok_or(UNKNOWN_KIND)?,
        version: Version(u64_at(bytes, 16)),
        bucket: decode_text(&bytes[FIXED_BYTES..bucket_end])?,
        key: decode_text(&bytes[bucket_end..key_end])?,
        bytes: u64_at(bytes, 24),
        etag: Etag { md5: array(bytes, 32), parts: u16_at(bytes, 48) },
        part: u16_at(bytes, 50),
        upload: u128_at(bytes, 56),
        is_versioned: false,
        files: decode_files(&bytes[key_end..files_end]),
        blocks: Box::default(),
    };
    let attributes = decode_attributes(&bytes[files_end..head_end])?;
    Ok(Needle { head, attributes, rest: &bytes[head_end..] })
}

/// Encodes a needle up to its data, as earlier versions did.
#[cfg(test)]
pub(super) fn encode(head: &Head, attributes: &Attributes) -> Vec<u8> {
    let mut out = vec![0; FIXED_BYTES];
    out.extend_from_slice(head.bucket.as_bytes());
    out.extend_from_slice(head.key.as_bytes());
    for file in &head.files {
        out.extend_from_slice(&file.id.to_le_bytes());
        out.extend_from_slice(&file.bytes.to_le_bytes());
    }
    let attributes_at = out.len();
    encode_attributes(attributes, &mut out);
    let lengths = [head.files.len(), out.len() - attributes_at];
    out[KIND_AT] = head.kind.code();
    out[5] = u8::try_from(head.bucket.len()).unwrap();
    out[6..8].copy_from_slice(&u16::try_from(head.key.len()).unwrap().to_le_bytes());
    for (at, length) in [8, 12].into_iter().zip(lengths) {
        out[at..at + 4].copy_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
    }
    out[16..24].copy_from_slice(&head.version.0.to_le_bytes());
    out[24..32].copy_from_slice(&head.bytes.to_le_bytes());
    out[32..48].copy_from_slice(&head.etag.md5);
    out[48..50].copy_from_slice(&head.etag.parts.to_le_bytes());
    out[50..52].copy_from_slice(&head.part.to_le_bytes());
    out[56..72].copy_from_slice(&head.upload.to_le_bytes());
    let checksum = haul_crc::crc32c(&out[4..]);
    out[..4].copy_from_slice(&checksum.to_le_bytes());
    out
}
