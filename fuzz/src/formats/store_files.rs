//! Sets the checksums in the files of a file store, so that edited bytes are read as if a store had
//! written them. The formats are in `FORMAT.md` of the file store.

use std::ops::Range;

use crate::formats::segment;

/// Sets the checksums of a file, as far as its content has the form that its name promises.
pub(crate) fn set_checksums(name: &str, file: &mut [u8]) {
    // A part that is cut off has no checksum to set.
    let _form = match name {
        "MANIFEST" | "MANIFEST.copy" => manifest(file),
        "index/CATALOG" => catalog(file),
        _ if name.ends_with(".segment") => volume(file),
        _ if name.ends_with(".index") => volume_index(file),
        _ if name.ends_with(".keys") => run(file),
        _ if name.ends_with(".locations") || name.ends_with(".changes") => chunks(file),
        _ if name.starts_with("objects/") => big_file(file),
        _ => None,
    };
}

fn number(file: &[u8], at: usize) -> Option<usize> {
    let four = file.get(at..)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*four)).ok()
}

fn long_number(file: &[u8], at: usize) -> Option<usize> {
    let eight = file.get(at..)?.first_chunk()?;
    usize::try_from(u64::from_le_bytes(*eight)).ok()
}

/// Stores the checksum of a range at an offset.
fn set(file: &mut [u8], at: usize, covered: Range<usize>) -> Option<()> {
    let checksum = haul_crc::crc32c(file.get(covered)?).to_le_bytes();
    file.get_mut(at..at + 4)?.copy_from_slice(&checksum);
    Some(())
}

fn manifest(file: &mut [u8]) -> Option<()> {
    let entries = number(file, 28)?.checked_add(number(file, 32)?)?;
    set(file, 8, 12..entries.checked_mul(16)?.checked_add(48)?)
}

fn catalog(file: &mut [u8]) -> Option<()> {
    set(file, 8, 20..20_usize.checked_add(long_number(file, 12)?)?)
}

/// Sets the checksums of the head of each needle that is alone in its record, and then those of the
/// records.
fn volume(file: &mut [u8]) -> Option<()> {
    for record in segment::records(file).collect::<Vec<_>>() {
        let payload = file.get_mut(record.start + 32..record.end)?;
        if let Some(head_bytes) = head_bytes(payload).filter(|bytes| *bytes <= payload.len()) {
            set(payload, 0, 4..head_bytes);
        }
    }
    segment::set_checksums(file);
    Some(())
}

/// Returns the length of the head of a needle.
fn head_bytes(needle: &[u8]) -> Option<usize> {
    let (flags, bucket_bytes) = (*needle.get(5)?, usize::from(*needle.get(6)?));
    let key_bytes = usize::from(u16::from_le_bytes(*needle.get(7..)?.first_chunk()?));
    let has = |flag: u8| flags & flag != 0;
    let mut at = if has(1) { 33 } else { 17 };
    let mut field = |flag: u8| if has(flag) { varint(needle, &mut at) } else { Some(0) };
    let [bytes, files, attributes, _parts, _part] =
        [field(1)?, field(2)?, field(4)?, field(8)?, field(16)?];
    let identifier = if has(0x20) { 16 } else { 0 };
    let blocks = if has(0x40) { bytes.div_ceil(64 << 10) } else { 0 };
    let fixed = at + identifier + bucket_bytes + key_bytes;
    let lists = files.checked_mul(24)?.checked_add(blocks.checked_mul(4)?)?;
    fixed.checked_add(lists)?.checked_add(attributes)
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= usize::from(byte & 127) << shift;
        if byte < 128 {
            return Some(value);
        }
    }
    None
}

fn volume_index(file: &mut [u8]) -> Option<()> {
    for at in (0..file.len()).step_by(512) {
        if file[at..].starts_with(b"HAUL-IX") {
            let block = &mut file[at..];
            let entries_bytes = number(block, 40)?;
            set(block, 8, 12..entries_bytes.checked_add(48)?);
        }
    }
    Some(())
}

fn run(file: &mut [u8]) -> Option<()> {
    let footer = file.len().checked_sub(64)?;
    let (from, bytes) = (long_number(file, footer + 48)?, long_number(file, footer + 56)?);
    set(file, footer + 44, from..from.checked_add(bytes)?);
    let id: [u8; 8] = file[footer + 16..].first_chunk().copied()?;
    blocks(file, id, from..from.checked_add(bytes)?);
    set(file, footer + 8, footer + 12..footer + 64)
}

/// Sets the checksums of the data blocks of a run, whose lengths are in the block index.
fn blocks(file: &mut [u8], id: [u8; 8], index: Range<usize>) -> Option<()> {
    let (mut entry, mut from) = (index.start, 0_usize);
    while entry < index.end {
        let separator_bytes = varint(file, &mut entry)?;
        let bytes = varint(file, &mut entry)?;
        entry = entry.checked_add(separator_bytes)?;
        let place = u64::try_from(from).ok()?.to_le_bytes();
        let covered = file.get(from.checked_add(4)?..from.checked_add(bytes)?)?;
        let identity = haul_crc::crc32c(&[id, place].concat());
        let checksum = haul_crc::crc32c_append(identity, covered).to_le_bytes();
        file[from..from + 4].copy_from_slice(&checksum);
        from += bytes;
    }
    Some(())
}

fn chunks(file: &mut [u8]) -> Option<()> {
    let mut at = 16_usize;
    for chunk in 0_u32.. {
        let bytes = number(file, at).filter(|bytes| *bytes > 0)?;
        let content = file.get(at + 8..at.checked_add(8)?.checked_add(bytes)?)?;
        let checksum = (haul_crc::crc32c(content) ^ chunk).to_le_bytes();
        file[at + 4..at + 8].copy_from_slice(&checksum);
        at += 8 + bytes;
    }
    Some(())
}

/// Sets the checksums of the pieces of a big object, of their table, and of the footer.
fn big_file(file: &mut [u8]) -> Option<()> {
    const PIECE_BYTES: usize = 128 << 10;
    let footer = file.len().checked_sub(4096)?;
    let bytes = long_number(file, footer + 32)?;
    let (table, pieces) = (bytes.checked_next_multiple_of(4096)?, bytes.div_ceil(PIECE_BYTES));
    for piece in 0..pieces.min(64) {
        let from = piece * PIECE_BYTES;
        set(file, table + 4 * piece, from..bytes.min(from + PIECE_BYTES))?;
    }
    set(file, footer + 40, table..table.checked_add(pieces.checked_mul(4)?)?)?;
    set(file, footer + 8, footer + 12..footer + 48)
}
