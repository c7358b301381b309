//! The format of the indexes of volumes, which is described in `FORMAT.md`. Pure.

use haul_append_log::{Lsn, Position};

use crate::format::{FilePart, Head, Needle, u32_at, u64_at};
use crate::index::entry::{Predecessor, Replaced};
use crate::varint::{put_varint, take_varint};
use crate::volume_index::ranges::Ranges;

/// Blocks start at multiples of a sector, so that a torn or damaged one affects no other.
pub(crate) const BLOCK_ALIGN: usize = 512;

/// The length of a record without a needle: a watermark of the log.
pub(crate) const WATERMARK_BYTES: u32 = 32;

const MAGIC: [u8; 8] = *b"HAUL-IX3";
const BLOCK_HEADER_BYTES: usize = 48;

/// The magic of version 2: entries without predecessors.
const MAGIC_V2: [u8; 8] = *b"HAUL-IX2";

/// The magic of version 1: one checksum over the whole file, written when the volume was sealed.
const MAGIC_V1: [u8; 8] = *b"HAUL-IDX";
const HEADER_BYTES_V1: usize = 32;

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// The heads of all needles in a range of the volume.
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

/// A block to write.
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

/// A needle in an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexedNeedle {
    pub(crate) at: Position,
    pub(crate) head: Head,
    pub(crate) predecessor: Predecessor,
}

/// Appends the entry of a needle to those of a block.
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
    /// Appends the bytes of the block, padded to a whole number of sectors.
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

/// The decoded index of a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct VolumeIndex {
    /// The number of the volume.
    pub(crate) volume: u32,
    /// The nonce of the volume it was written for.
    pub(crate) nonce: u64,
    /// The needles, in the order of the volume.
    pub(crate) needles: Vec<IndexedNeedle>,
    /// The number of needles, including skipped ones.
    pub(crate) count: u64,
    /// The ranges whose needles are all in the index.
    pub(crate) covered: Ranges,
    /// The certain end of the needles, if the volume was sealed, or closed and not opened since.
    pub(crate) end: Option<u32>,
    /// `true` if the index covers all of a sealed volume, which then need not be read.
    pub(crate) is_complete: bool,
    /// The end of the prefix of the file whose blocks can be kept, without marks of an end.
    pub(crate) kept_bytes: u64,
}

/// Decodes an index. Damaged blocks are omitted; `None` if all are damaged.
///
/// `nonce` is that of the volume, if known: an index of another use of the file is ignored.
///
/// The needles of blocks that end at or before the offset `skip_before` are counted but not
/// decoded.
pub(crate) fn decode(
    bytes: &[u8],
    volume: u32,
    nonce: Option<u64>,
    skip_before: u32,
) -> Option<VolumeIndex> {
    if bytes.get(..8) == Some(&MAGIC_V1) {
        return decode_v1(bytes, volume, nonce);
    }
    let mut index = VolumeIndex { volume, ..VolumeIndex::default() };
    let (mut offset, mut found) = (0, None);
    let mut counted = None;
    while offset < bytes.len() {
        let Some((block, block_bytes)) = decode_block(&bytes[offset..], volume, found.or(nonce))
        else {
            // An earlier mark of the end of the volume may be obsolete.
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
                    let decoded = decode_entries(block.entries, volume, block.has_predecessors);
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

/// The offset of the first record of a volume.
pub(crate) const FIRST_RECORD: u32 = 4096;

struct DecodedBlock<'a> {
    nonce: u64,
    kind: BlockKind,
    from: u32,
    to: u32,
    needles: u32,
    entries: &'a [u8],
    has_predecessors: bool,
}

fn decode_block(
    bytes: &[u8],
    volume: u32,
    nonce: Option<u64>,
) -> Option<(DecodedBlock<'_>, usize)> {
    let header = bytes.get(..BLOCK_HEADER_BYTES)?;
    let has_predecessors = header[..8] == MAGIC;
    if !has_predecessors && header[..8] != MAGIC_V2 || u32_at(header, 12) != volume {
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
        has_predecessors,
    };
    let is_of_it = nonce.is_none_or(|nonce| nonce == block.nonce) && block.from <= block.to;
    is_of_it.then_some((block, end.next_multiple_of(BLOCK_ALIGN)))
}

fn decode_entries(
    mut bytes: &[u8],
    volume: u32,
    has_predecessors: bool,
) -> Option<Vec<IndexedNeedle>> {
    let mut needles = Vec::new();
    while !bytes.is_empty() {
        let (place, after) = bytes.split_at_checked(8)?;
        let needle = Needle::decode(after).ok()?;
        let at =
            Position { lsn: Lsn::new(volume, u32_at(place, 0)), payload_bytes: u32_at(place, 4) };
        bytes = needle.rest;
        let predecessor =
            if has_predecessors { take_predecessor(&mut bytes)? } else { Predecessor::Unknown };
        needles.push(IndexedNeedle { at, head: needle.head, predecessor });
    }
    Some(needles)
}

fn decode_v1(bytes: &[u8], volume: u32, nonce: Option<u64>) -> Option<VolumeIndex> {
    let header = bytes.get(..HEADER_BYTES_V1)?;
    let found = u64_at(header, 16);
    let is_good = haul_crc::crc32c(&bytes[12..]) == u32_at(header, 8)
        && u32_at(header, 12) == volume
        && nonce.is_none_or(|nonce| nonce == found);
    if !is_good {
        return None;
    }
    let needles = decode_entries(&bytes[HEADER_BYTES_V1..], volume, false)?;
    let mut covered = Ranges::default();
    covered.insert(FIRST_RECORD, u32::MAX);
    Some(VolumeIndex {
        volume,
        nonce: found,
        count: needles.len() as u64,
        needles,
        covered,
        end: Some(u32::MAX),
        is_complete: true,
        kept_bytes: bytes.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::Version;
    use crate::format::Kind;
    use crate::object::Etag;

    const VOLUME: VolumeId = VolumeId { number: 3, nonce: 99 };

    fn head(key: &str) -> Head {
        Head {
            kind: Kind::Object,
            version: Version(7),
            bucket: "photos".to_owned(),
            key: key.to_owned(),
            bytes: 5,
            etag: Etag { md5: [7; 16], parts: 0 },
            part: 0,
            upload: 0,
            files: Vec::new(),
            blocks: Box::default(),
        }
    }

    fn at(offset: u32) -> Position {
        Position { lsn: Lsn::new(VOLUME.number, offset), payload_bytes: 90 }
    }

    fn predecessor(offset: u32) -> Predecessor {
        let file = FilePart { id: 7, bytes: 9 };
        let replaced = |files: Vec<FilePart>| Replaced {
            at: Position { lsn: Lsn::new(1, 8192), payload_bytes: 900 },
            bytes: 800,
            files: files.into_boxed_slice(),
        };
        match offset {
            4096 => Predecessor::None,
            4224 => Predecessor::Object(replaced(Vec::new())),
            4352 => Predecessor::Object(replaced(vec![file, file])),
            _ => Predecessor::Unknown,
        }
    }

    fn block(out: &mut Vec<u8>, kind: BlockKind, (from, to): (u32, u32), keys: &[(u32, &str)]) {
        let mut entries = Vec::new();
        for (offset, key) in keys {
            push_entry(&mut entries, at(*offset), &head(key), &predecessor(*offset));
        }
        let needles =
            if kind == BlockKind::Complete { 3 } else { u32::try_from(keys.len()).unwrap() };
        Block { kind, from, to, needles, entries: &entries }.encode(VOLUME, out);
    }

    /// Returns two blocks of heads and the mark that the volume is complete.
    fn complete() -> Vec<u8> {
        let mut bytes = Vec::new();
        block(&mut bytes, BlockKind::Heads, (4096, 4352), &[(4096, "a"), (4224, "b")]);
        block(&mut bytes, BlockKind::Heads, (4352, 4480), &[(4352, "c")]);
        block(&mut bytes, BlockKind::Complete, (4480, 4480), &[]);
        bytes
    }

    #[test]
    fn index_round_trips() {
        let index = decode(&complete(), 3, Some(99), 0).unwrap();
        let keys: Vec<&str> = index.needles.iter().map(|needle| &*needle.head.key).collect();
        for needle in &index.needles {
            assert_eq!(needle.predecessor, predecessor(needle.at.lsn.offset()));
        }
        assert_eq!((keys, index.is_complete, index.end), (vec!["a", "b", "c"], true, Some(4480)));
        assert_eq!(decode(&complete(), 3, None, 0), Some(index), "the nonce is in each block");
        assert!(decode(&complete(), 3, Some(98), 0).is_none());
        assert!(decode(&complete(), 2, Some(99), 0).is_none());
    }

    #[test]
    fn skipped_needles_are_counted() {
        let whole = decode(&complete(), 3, Some(99), 0).unwrap();
        let index = decode(&complete(), 3, Some(99), 4352).unwrap();
        assert_eq!((index.needles.len(), index.count, index.is_complete), (1, 3, true));
        assert_eq!((&index.needles[..], index.covered), (&whole.needles[2..], whole.covered));
    }

    #[test]
    fn flipped_byte_invalidates_only_its_block() {
        let whole = decode(&complete(), 3, Some(99), 0).unwrap();
        let bytes = complete();
        for byte in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[byte] ^= 1;
            let index = decode(&bad, 3, Some(99), 0).unwrap();
            if index == whole {
                continue;
            }
            assert!(!index.is_complete, "byte {byte}");
            for IndexedNeedle { at, head, .. } in &whole.needles {
                let is_known = index.needles.iter().any(|found| found.head.key == head.key);
                let is_covered = index.covered.intersects(at.lsn.offset(), at.lsn.offset() + 1);
                assert_eq!(is_known, is_covered, "byte {byte}: {}", head.key);
            }
            assert!(!index.needles.is_empty(), "byte {byte} invalidates one block");
        }
    }

    #[test]
    fn mark_of_the_end_is_valid_only_as_the_last_block() {
        let mut bytes = Vec::new();
        block(&mut bytes, BlockKind::Heads, (4096, 4224), &[(4096, "a")]);
        let kept = bytes.len() as u64;
        block(&mut bytes, BlockKind::Closed, (4224, 4224), &[]);
        let index = decode(&bytes, 3, Some(99), 0).unwrap();
        assert_eq!((index.end, index.kept_bytes, index.is_complete), (Some(4224), kept, false));
        for (end, needles_end) in [(4256, 4224), (4264, 4264)] {
            let mut idle = bytes[..bytes.len() - BLOCK_ALIGN].to_vec();
            block(&mut idle, BlockKind::Closed, (end, end), &[]);
            let index = decode(&idle, 3, Some(99), 0).unwrap();
            assert_eq!(index.end, Some(needles_end), "only a watermark has no needle");
        }
        block(&mut bytes, BlockKind::Heads, (4224, 4352), &[(4224, "b")]);
        assert_eq!(decode(&bytes, 3, Some(99), 0).unwrap().end, None);
        let mut torn = bytes.clone();
        let last = bytes.len() - BLOCK_ALIGN;
        torn[last] ^= 1;
        assert_eq!(decode(&torn, 3, Some(99), 0).unwrap().end, None, "an unknown block follows");
    }

    #[test]
    fn block_that_overlaps_an_earlier_one_is_ignored() {
        let mut bytes = Vec::new();
        block(&mut bytes, BlockKind::Heads, (4096, 4352), &[(4096, "a"), (4224, "b")]);
        let first = decode(&bytes, 3, Some(99), 0).unwrap();
        block(&mut bytes, BlockKind::Heads, (4224, 4480), &[(4224, "x"), (4352, "c")]);
        assert_eq!(decode(&bytes, 3, Some(99), 0), Some(first));
    }

    #[test]
    fn malformed_entries_with_a_matching_checksum_cover_nothing() {
        let mut whole = Vec::new();
        push_entry(&mut whole, at(4096), &head("a"), &predecessor(4352));
        for end in 1..=whole.len() {
            let (mut bytes, entries) = (Vec::new(), &whole[..end]);
            let kind = BlockKind::Heads;
            Block { kind, from: 4096, to: 4224, needles: 1, entries }.encode(VOLUME, &mut bytes);
            let index = decode(&bytes, 3, Some(99), 0).unwrap();
            let found = (index.needles.len(), index.covered.intersects(4096, 4224));
            assert_eq!(found, if end == whole.len() { (1, true) } else { (0, false) }, "{end}");
        }
    }

    #[test]
    fn predecessors_of_version_2_are_unknown() {
        let mut entries = Vec::new();
        entries.extend_from_slice(&4096_u32.to_le_bytes());
        entries.extend_from_slice(&90_u32.to_le_bytes());
        entries.extend_from_slice(&head("a").encode_for_index());
        let (mut bytes, entries) = (Vec::new(), &entries[..]);
        let kind = BlockKind::Heads;
        Block { kind, from: 4096, to: 4224, needles: 1, entries }.encode(VOLUME, &mut bytes);
        bytes[..8].copy_from_slice(&MAGIC_V2);
        let index = decode(&bytes, 3, Some(99), 0).unwrap();
        let predecessor = Predecessor::Unknown;
        assert_eq!(index.needles, [IndexedNeedle { at: at(4096), head: head("a"), predecessor }]);
    }

    #[test]
    fn index_of_version_1_is_decoded() {
        let mut bytes = vec![0; HEADER_BYTES_V1];
        bytes[..8].copy_from_slice(&MAGIC_V1);
        bytes[12..16].copy_from_slice(&3_u32.to_le_bytes());
        bytes[16..24].copy_from_slice(&99_u64.to_le_bytes());
        bytes[24..28].copy_from_slice(&1_u32.to_le_bytes());
        bytes.extend_from_slice(&4096_u32.to_le_bytes());
        bytes.extend_from_slice(&90_u32.to_le_bytes());
        bytes.extend_from_slice(&head("a").encode_for_index());
        let checksum = haul_crc::crc32c(&bytes[12..]);
        bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
        let index = decode(&bytes, 3, Some(99), 0).unwrap();
        assert_eq!((index.needles.len(), index.is_complete), (1, true));
        for byte in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[byte] ^= 1;
            assert!(decode(&bad, 3, Some(99), 0).is_none(), "byte {byte}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(
            mut bytes in prop::collection::vec(any::<u8>(), 0..2000),
            magic in 0..3,
        ) {
            if magic > 0 && bytes.len() > 64 {
                bytes[..8].copy_from_slice(if magic == 1 { &MAGIC } else { &MAGIC_V1 });
                bytes[12..16].copy_from_slice(&3_u32.to_le_bytes());
                let end = bytes.len();
                bytes[40..44].copy_from_slice(&u32::try_from(end - 48).unwrap().to_le_bytes());
                let checksum = haul_crc::crc32c(&bytes[12..end]);
                bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
            }
            drop(decode(&bytes, 3, None, 0));
        }
    }
}
