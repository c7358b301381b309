//! The format of volume indexes, which `FORMAT.md` describes. Pure.

#[cfg(test)]
mod tests;

use haul_append_log::{Lsn, Position};

use crate::format::{FilePart, Head, Needle, u32_at, u64_at};
use crate::index::entry::{Predecessor, Replaced};
use crate::varint::{put_varint, take_varint};
use crate::volume_index::ranges::Ranges;

/// Blocks start at multiples of a sector, so that a torn or damaged one affects no other.
pub(crate) const BLOCK_ALIGN: usize = 512;

/// The length of a record without a needle: a log watermark.
pub(crate) const WATERMARK_BYTES: u32 = 32;

/// A block's magic number, which ends with the format version.
const MAGIC: [u8; 8] = *b"HAUL-IX1";
const BLOCK_HEADER_BYTES: usize = 48;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// The heads of all needles in a volume range.
    Heads,
    /// The store was closed: the volume ends at this offset, unless it was continued later.
    Closed,
    /// The volume was sealed: it ends at this offset and has this number of needles.
    Complete,
}

impl BlockKind {
    fn code(self) -> u32 {
        match self {
            Self::Heads => 1,
            Self::Closed => 2,
            Self::Complete => 3,
        }
    }

    fn of(code: u32) -> Option<Self> {
        [Self::Heads, Self::Closed, Self::Complete].into_iter().find(|kind| kind.code() == code)
    }
}

/// The volume that an index belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VolumeId {
    pub(crate) number: u32,
    /// The random number that identifies this use of the volume's file.
    pub(crate) nonce: u64,
}

#[derive(Debug)]
pub(crate) struct Block<'a> {
    pub(crate) kind: BlockKind,
    /// The range of the volume that the block describes.
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The number of needles in this range.
    pub(crate) needles: u32,
    /// Their entries, see [`push_entry`].
    pub(crate) entries: &'a [u8],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexedNeedle {
    pub(crate) at: Position,
    pub(crate) head: Head,
    pub(crate) predecessor: Predecessor,
}

/// Appends a needle's entry to a block's entries.
pub(crate) fn push_entry(
    entries: &mut Vec<u8>,
    at: Position,
    head: &Head,
    predecessor: &Predecessor,
) {
    entries.extend_from_slice(&at.lsn.offset().to_le_bytes());
    entries.extend_from_slice(&at.payload_bytes.to_le_bytes());
    entries.extend_from_slice(&head.encode_for_index());
    match predecessor {
        Predecessor::Unknown => put_varint(entries, 0),
        Predecessor::None => put_varint(entries, 1),
        Predecessor::Object(Replaced { at, bytes, files }) => {
            put_varint(entries, 2 + files.len() as u64);
            put_varint(entries, at.lsn.0);
            put_varint(entries, at.payload_bytes.into());
            put_varint(entries, *bytes);
            for file in files {
                entries.extend_from_slice(&file.id.to_le_bytes());
                put_varint(entries, file.bytes);
            }
        }
    }
}

fn take_predecessor(bytes: &mut &[u8]) -> Option<Predecessor> {
    let files = match take_varint(bytes)? {
        0 => return Some(Predecessor::Unknown),
        1 => return Some(Predecessor::None),
        tag => tag - 2,
    };
    let lsn = Lsn(take_varint(bytes)?);
    let at = Position { lsn, payload_bytes: u32::try_from(take_varint(bytes)?).ok()? };
    let length = take_varint(bytes)?;
    let mut found = Vec::new();
    for _ in 0..files {
        let (id, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        found.push(FilePart { id: u128::from_le_bytes(*id), bytes: take_varint(bytes)? });
    }
    Some(Predecessor::Object(Replaced { at, bytes: length, files: found.into_boxed_slice() }))
}

impl Block<'_> {
    /// Appends the block's bytes, padded to a whole number of sectors.
    pub(crate) fn encode(&self, volume: VolumeId, out: &mut Vec<u8>) {
        let start = out.len();
        let entry_bytes = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&volume.number.to_le_bytes());
        out.extend_from_slice(&volume.nonce.to_le_bytes());
        for number in [self.kind.code(), self.needles, self.from, self.to, entry_bytes, 0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(self.entries);
        let checksum = haul_crc::crc32c(&out[start + 12..]);
        out[start + 8..start + 12].copy_from_slice(&checksum.to_le_bytes());
        out.resize(start + (out.len() - start).next_multiple_of(BLOCK_ALIGN), 0);
    }
}

/// A volume's decoded index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct VolumeIndex {
    /// The volume's number.
    pub(crate) volume: u32,
    /// The nonce of the volume for which it was written.
    pub(crate) nonce: u64,
    /// The needles, in the order of the volume.
    pub(crate) needles: Vec<IndexedNeedle>,
    /// The number of needles, including skipped ones.
    pub(crate) count: u64,
    /// The ranges whose needles are all in the index.
    pub(crate) covered: Ranges,
    /// The needles' end, if it is certain: the volume was sealed, or closed and not opened since.
    pub(crate) end: Option<u32>,
    /// `true` if the index covers all of a sealed volume, which then need not be read.
    pub(crate) is_complete: bool,
    /// The length of the file's prefix whose blocks can be kept, without end marks.
    pub(crate) kept_bytes: u64,
}

/// Decodes an index. Damaged blocks are omitted; `None` if all are damaged.
///
/// `nonce` is the volume's nonce, if known: an index that belongs to another use of the file is
/// ignored.
///
/// Needles in blocks that end at or before the offset `skip_before` are counted but not decoded.
pub(crate) fn decode(
    bytes: &[u8],
    volume: u32,
    nonce: Option<u64>,
    skip_before: u32,
) -> Option<VolumeIndex> {
    let mut index = VolumeIndex { volume, ..VolumeIndex::default() };
    let (mut offset, mut found) = (0, None);
    let mut counted = None;
    while offset < bytes.len() {
        let Some((block, block_bytes)) = decode_block(&bytes[offset..], volume, found.or(nonce))
        else {
            // An earlier mark of the volume's end may be obsolete.
            (index.end, counted) = (None, None);
            offset += BLOCK_ALIGN;
            continue;
        };
        found = Some(block.nonce);
        offset += block_bytes;
        match block.kind {
            BlockKind::Heads => {
                if index.covered.intersects(block.from, block.to) {
                    continue;
                }
                if block.to > skip_before {
                    let decoded = decode_entries(block.entries, volume);
                    let Some(needles) = decoded else { continue };
                    index.needles.extend(needles);
                }
                index.count += u64::from(block.needles);
                index.covered.insert(block.from, block.to);
                index.kept_bytes = offset as u64;
                (index.end, counted) = (None, None);
            }
            BlockKind::Closed => {
                // Between the last needle and the end there may be a watermark.
                let known_end = index.covered.end().unwrap_or(FIRST_RECORD);
                let is_watermark = block.to.saturating_sub(known_end) <= WATERMARK_BYTES;
                let end = if is_watermark { known_end.min(block.to) } else { block.to };
                (index.end, counted) = (Some(end), None);
            }
            BlockKind::Complete => (index.end, counted) = (Some(block.to), Some(block.needles)),
        }
    }
    index.nonce = found?;
    index.needles.sort_by_key(|needle| needle.at.lsn);
    index.is_complete = counted.map(u64::from) == Some(index.count)
        && index.end.is_some_and(|end| index.covered.is_all_of(FIRST_RECORD, end));
    Some(index)
}

/// The offset of a volume's first record.
pub(crate) const FIRST_RECORD: u32 = 4096;

struct DecodedBlock<'a> {
    nonce: u64,
    kind: BlockKind,
    from: u32,
    to: u32,
    needles: u32,
    entries: &'a [u8],
}

fn decode_block(
    bytes: &[u8],
    volume: u32,
    nonce: Option<u64>,
) -> Option<(DecodedBlock<'_>, usize)> {
    let header = bytes.get(..BLOCK_HEADER_BYTES)?;
    if header[..8] != MAGIC || u32_at(header, 12) != volume {
        return None;
    }
    let end = BLOCK_HEADER_BYTES.checked_add(u32_at(header, 40) as usize)?;
    if haul_crc::crc32c(bytes.get(12..end)?) != u32_at(header, 8) {
        return None;
    }
    let block = DecodedBlock {
        nonce: u64_at(header, 16),
        kind: BlockKind::of(u32_at(header, 24))?,
        needles: u32_at(header, 28),
        from: u32_at(header, 32),
        to: u32_at(header, 36),
        entries: &bytes[BLOCK_HEADER_BYTES..end],
    };
    let is_its = nonce.is_none_or(|nonce| nonce == block.nonce) && block.from <= block.to;
    is_its.then_some((block, end.next_multiple_of(BLOCK_ALIGN)))
}

fn decode_entries(mut bytes: &[u8], volume: u32) -> Option<Vec<IndexedNeedle>> {
    let mut needles = Vec::new();
    while !bytes.is_empty() {
        let (place, after) = bytes.split_at_checked(8)?;
        let needle = Needle::decode(after).ok()?;
        let at =
            Position { lsn: Lsn::new(volume, u32_at(place, 0)), payload_bytes: u32_at(place, 4) };
        bytes = needle.rest;
        let predecessor = take_predecessor(&mut bytes)?;
        needles.push(IndexedNeedle { at, head: needle.head, predecessor });
    }
    Some(needles)
}
