//! Encodes and decodes the records in the log, as described in `FORMAT.md`.

/// The magic number and version at the beginning of every record.
const MAGIC: [u8; 4] = *b"HPF1";

/// The length of a record header in bytes.
pub(crate) const HEADER_BYTES: usize = 16;

/// The kind of object to which a log belongs, stored in the log's checkpoint records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogKind {
    /// The log belongs to a page file: each write is valid by itself.
    PageFile,
    /// The log belongs to a patch: its writes are valid only if a commit record follows them.
    Patch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// All writes logged up to the LSN `through` are durable in the file. Each log's first record
    /// is a checkpoint with the LSN 0.
    Checkpoint {
        log_kind: LogKind,
        through: u64,
        /// The file length in bytes; the file is never shorter later.
        file_bytes: u64,
        /// The file's name, without its directory.
        name: &'a str,
    },
    Write {
        offset: u64,
        bytes: &'a [u8],
    },
    /// A patch's commit. `records` is the number of writes before the commit.
    Commit {
        records: u64,
    },
}

fn header(kind: u8, log_kind: u8, number: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&MAGIC);
    header[4] = kind;
    header[5] = log_kind;
    header[8..].copy_from_slice(&number.to_le_bytes());
    header
}

/// Encodes a write record's header; the bytes to write follow it.
pub(crate) fn encode_write_header(offset: u64) -> [u8; HEADER_BYTES] {
    header(2, 0, offset)
}

impl Record<'_> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Checkpoint { log_kind, through, file_bytes, name } => {
                let log_kind = match log_kind {
                    LogKind::PageFile => 1,
                    LogKind::Patch => 2,
                };
                let front = header(1, log_kind, *through);
                [&front[..], &file_bytes.to_le_bytes(), name.as_bytes()].concat()
            }
            Self::Write { offset, bytes } => [&encode_write_header(*offset)[..], bytes].concat(),
            Self::Commit { records } => header(3, 0, *records).to_vec(),
        }
    }
}

/// Decodes a record. Returns `None` if the record is invalid or has another version.
pub(crate) fn decode(bytes: &[u8]) -> Option<Record<'_>> {
    let (front, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let number = u64::from_le_bytes(*front.last_chunk()?);
    if front[..4] != MAGIC || front[6..8] != [0; 2] {
        return None;
    }
    match (front[4], front[5]) {
        (1, log_kind @ (1 | 2)) => {
            let log_kind = if log_kind == 1 { LogKind::PageFile } else { LogKind::Patch };
            let (file_bytes, name) = rest.split_first_chunk()?;
            let file_bytes = u64::from_le_bytes(*file_bytes);
            let name = std::str::from_utf8(name).ok()?;
            Some(Record::Checkpoint { log_kind, through: number, file_bytes, name })
        }
        (2, 0) => Some(Record::Write { offset: number, bytes: rest }),
        (3, 0) if rest.is_empty() => Some(Record::Commit { records: number }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        for log_kind in [LogKind::PageFile, LogKind::Patch] {
            let checkpoint =
                Record::Checkpoint { log_kind, through: 77, file_bytes: 5, name: "grün" };
            assert_eq!(decode(&checkpoint.encode()), Some(checkpoint));
        }
        for bytes in [&b""[..], b"x", &[7; 5000]] {
            let write = Record::Write { offset: u64::MAX, bytes };
            assert_eq!(decode(&write.encode()), Some(write));
        }
        let commit = Record::Commit { records: 3 };
        assert_eq!(decode(&commit.encode()), Some(commit));
    }

    #[test]
    fn invalid_bytes_are_no_record() {
        let checkpoint =
            Record::Checkpoint { log_kind: LogKind::Patch, through: 1, file_bytes: 2, name: "n" };
        let valid = checkpoint.encode();
        for (at, byte) in [(0, 0), (3, b'2'), (4, 0), (4, 4), (5, 0), (5, 3), (6, 1), (24, 0xff)] {
            let mut invalid = valid.clone();
            invalid[at] = byte;
            assert_eq!(decode(&invalid), None, "{at}");
        }
        for bytes in 0..24 {
            assert_eq!(decode(&valid[..bytes]), None, "{bytes}");
        }
        let longer = [&Record::Commit { records: 1 }.encode()[..], b"x"].concat();
        assert_eq!(decode(&longer), None);
    }

    #[test]
    fn example_in_format_md_matches_the_encoding() {
        let page = include_str!("../../FORMAT.md");
        let example = haul_testing::docs::hex_example(page);
        let checkpoint = Record::Checkpoint {
            log_kind: LogKind::PageFile,
            through: (1 << 32) + 4096,
            file_bytes: 8192,
            name: "data",
        };
        let write = Record::Write { offset: 4096, bytes: b"hello" };
        let records = [checkpoint, write, Record::Commit { records: 2 }];
        assert_eq!(example, records.map(|record| record.encode()).concat());
    }
}
