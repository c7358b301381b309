//! Sets the checksums in a segment of an append log, so that edited bytes are read as if a log had
//! written them. The format is in `FORMAT.md` of the append log.

/// The beginning of a segment header.
const MAGIC: &[u8] = b"HAUL-LOG";
const PAGE_BYTES: usize = 4096;
const HEADER_BYTES: usize = 48;
const RECORD_HEADER_BYTES: usize = 32;

/// The kind of a seal, which ends a segment.
const SEAL: u8 = 2;

/// Returns the offsets of the header pages and of the records of a segment.
#[must_use]
pub(crate) fn places(file: &[u8]) -> Vec<usize> {
    let end_page = file.len().saturating_sub(PAGE_BYTES);
    let mut places = vec![0, 2048, end_page, end_page + 2048];
    places.extend(records(file).map(|record| record.start));
    places
}

/// Sets the checksums of the headers and of all records of a segment.
pub(crate) fn set_checksums(file: &mut [u8]) {
    for page in [0, file.len().saturating_sub(PAGE_BYTES)] {
        for copy in [page, page + 2048] {
            if let Some(header) = file.get_mut(copy..copy + HEADER_BYTES) {
                set_header_checksum(header);
            }
        }
    }
    let Some(nonce) = file.get(24..32).map(<[u8]>::to_vec) else { return };
    let tag = [nonce[0], nonce[1], nonce[2]];
    for record in records(file).collect::<Vec<_>>() {
        let payload = record.start + RECORD_HEADER_BYTES..record.end;
        let checksum = haul_crc::crc32c(&file[payload]).to_le_bytes();
        let header = &mut file[record.start..record.start + RECORD_HEADER_BYTES];
        header[25..28].copy_from_slice(&tag);
        header[28..32].copy_from_slice(&checksum);
        let checksum = haul_crc::crc32c_append(haul_crc::crc32c(&nonce), &header[4..]);
        header[..4].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// Checks that [`set_checksums`] computes the checksums of a segment that was not edited.
///
/// # Panics
/// If it computes others.
pub(crate) fn assert_checksums(name: &str, file: &[u8]) {
    let mut again = file.to_vec();
    set_checksums(&mut again);
    assert!(again == file, "the checksums of {name} are computed otherwise");
}

fn set_header_checksum(header: &mut [u8]) {
    if header.starts_with(MAGIC) {
        header[12..16].fill(0);
        let checksum = haul_crc::crc32c(header).to_le_bytes();
        header[12..16].copy_from_slice(&checksum);
    }
}

/// The range of a record in a segment, without padding.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordRange {
    /// The offset of the record's header.
    pub(crate) start: usize,
    /// The offset after the payload.
    pub(crate) end: usize,
}

/// Returns the records of a segment, as far as each is where the length of the preceding one
/// declares it, and has the LSN of this place. Stale records in a recycled file have another LSN.
pub(crate) fn records(file: &[u8]) -> impl Iterator<Item = RecordRange> + '_ {
    let mut at = Some(PAGE_BYTES);
    std::iter::from_fn(move || {
        let start = at?;
        let header = file.get(start..start + RECORD_HEADER_BYTES)?;
        let lsn = [&u32::try_from(start).ok()?.to_le_bytes()[..], &file[16..20]].concat();
        if header[8..16] != lsn {
            return None;
        }
        let length = u32::from_le_bytes(header[4..8].try_into().ok()?) as usize;
        let end = start.checked_add(RECORD_HEADER_BYTES + length).filter(|end| *end <= file.len());
        let kind = header[24];
        at = end.filter(|_| kind != SEAL).map(|end| end.next_multiple_of(8));
        end.filter(|_| kind != 0).map(|end| RecordRange { start, end })
    })
}
