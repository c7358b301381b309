//! The bytes of the records in the log. `FORMAT.md` has the picture.

/// In front of every record: what it is, and the version.
const MAGIC: [u8; 4] = *b"HPF1";

/// The length of what stands in front of the bytes of a write.
pub(crate) const HEADER_BYTES: usize = 16;

/// Whose log it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A page file: each write stands for itself.
    PageFile,
    /// A patch: its writes count when they are all there.
    Patch,
}

/// A record of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// Everything up to the record at the LSN `through` is in the file and synced there. The first
    /// record of each log is one, with nothing applied.
    Mark {
        owner: Owner,
        through: u64,
        /// How long the file was, at least.
        file_bytes: u64,
        /// The name of the file.
        name: &'a str,
    },
    /// Bytes for the file.
    Write { offset: u64, bytes: &'a [u8] },
    /// All writes of a patch are in front of this, so many.
    Commit { records: u64 },
}

fn header(kind: u8, owner: u8, number: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&MAGIC);
    header[4] = kind;
    header[5] = owner;
    header[8..].copy_from_slice(&number.to_le_bytes());
    header
}

/// What stands in front of the bytes of a write.
pub(crate) fn write_header(offset: u64) -> [u8; HEADER_BYTES] {
    header(2, 0, offset)
}

impl Record<'_> {
    /// Its bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Mark { owner, through, file_bytes, name } => {
                let owner = match owner {
                    Owner::PageFile => 1,
                    Owner::Patch => 2,
                };
                let front = header(1, owner, *through);
                [&front[..], &file_bytes.to_le_bytes(), name.as_bytes()].concat()
            }
            Self::Write { offset, bytes } => [&write_header(*offset)[..], bytes].concat(),
            Self::Commit { records } => header(3, 0, *records).to_vec(),
        }
    }
}

/// A record from its bytes; `None` when it is of another version, or of somebody else.
pub(crate) fn decode(bytes: &[u8]) -> Option<Record<'_>> {
    let (front, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let number = u64::from_le_bytes(*front.last_chunk()?);
    if front[..4] != MAGIC || front[6..8] != [0; 2] {
        return None;
    }
    match (front[4], front[5]) {
        (1, owner @ (1 | 2)) => {
            let owner = if owner == 1 { Owner::PageFile } else { Owner::Patch };
            let (file_bytes, name) = rest.split_first_chunk()?;
            let file_bytes = u64::from_le_bytes(*file_bytes);
            let name = std::str::from_utf8(name).ok()?;
            Some(Record::Mark { owner, through: number, file_bytes, name })
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
    fn a_record_is_read_as_it_was_written() {
        for owner in [Owner::PageFile, Owner::Patch] {
            let mark = Record::Mark { owner, through: 77, file_bytes: 5, name: "grün" };
            assert_eq!(decode(&mark.encode()), Some(mark));
        }
        for bytes in [&b""[..], b"x", &[7; 5000]] {
            let write = Record::Write { offset: u64::MAX, bytes };
            assert_eq!(decode(&write.encode()), Some(write));
        }
        let commit = Record::Commit { records: 3 };
        assert_eq!(decode(&commit.encode()), Some(commit));
    }

    #[test]
    fn what_nobody_wrote_is_no_record() {
        let mark = Record::Mark { owner: Owner::Patch, through: 1, file_bytes: 2, name: "n" };
        let good = mark.encode();
        for (at, byte) in [(0, 0), (3, b'2'), (4, 0), (4, 4), (5, 0), (5, 3), (6, 1), (24, 0xff)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(decode(&bad), None, "{at}");
        }
        for bytes in 0..24 {
            assert_eq!(decode(&good[..bytes]), None, "{bytes}");
        }
        let longer = [&Record::Commit { records: 1 }.encode()[..], b"x"].concat();
        assert_eq!(decode(&longer), None);
    }

    /// The example of `FORMAT.md`, byte for byte.
    #[test]
    fn the_worked_example_is_true() {
        let page = include_str!("../../FORMAT.md");
        let shown: Vec<Vec<u8>> = page
            .lines()
            .filter_map(|line| line.strip_prefix("    "))
            .filter_map(|line| {
                line.split_whitespace().map(|two| u8::from_str_radix(two, 16).ok()).collect()
            })
            .collect();
        let mark = Record::Mark {
            owner: Owner::PageFile,
            through: (1 << 32) + 4096,
            file_bytes: 8192,
            name: "data",
        };
        let write = Record::Write { offset: 4096, bytes: b"hello" };
        let records = [mark, write, Record::Commit { records: 2 }];
        assert_eq!(shown, records.map(|record| record.encode()));
    }
}
