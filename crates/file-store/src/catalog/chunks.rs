//! Files of checksummed chunks.
//!
//! | bytes | |
//! |---|---|
//! | 8 | `HAUL-CHK` |
//! | 8 | the number of the file |
//! | | chunks: length (4), checksum of the chunk, seeded with its number (4), bytes |
//! | 8 | the end: a chunk of length 0, with the number of chunks instead of the checksum |

use haul_disk::{Disk, Durability, File, Open, read_full, write_full};

use crate::error::{Error, Result};
use crate::format::{u32_at, u64_at};

const MAGIC: [u8; 8] = *b"HAUL-CHK";
const HEADER_BYTES: usize = 16;
const CHUNK_HEADER_BYTES: usize = 8;

/// The longest chunk that a reader accepts.
const CHUNK_BYTES_MAX: usize = 64 << 20;

/// Writes a new file of chunks and syncs it.
///
/// # Errors
/// A failed system call; the caller then removes the file.
///
/// # Durability
/// The file survives a power cut if the caller syncs the directory, too.
pub(crate) fn write(
    disk: &dyn Disk,
    name: &str,
    number: u64,
    chunks: impl Iterator<Item = Vec<u8>>,
) -> Result<()> {
    let file = disk.create(name, Open::default())?;
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&number.to_le_bytes());
    let mut offset = append(&*file, &header, 0)?;
    let mut count = 0_u32;
    for chunk in chunks {
        let mut framed = Vec::with_capacity(CHUNK_HEADER_BYTES + chunk.len());
        let length = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
        framed.extend_from_slice(&length.to_le_bytes());
        framed.extend_from_slice(&checksum(count, &chunk).to_le_bytes());
        framed.extend_from_slice(&chunk);
        offset = append(&*file, &framed, offset)?;
        count += 1;
    }
    let mut end = vec![0; 4];
    end.extend_from_slice(&count.to_le_bytes());
    append(&*file, &end, offset)?;
    Ok(file.sync(Durability::Data)?)
}

fn append(file: &dyn File, bytes: &[u8], offset: u64) -> Result<u64> {
    write_full(file, bytes, offset)?;
    Ok(offset + bytes.len() as u64)
}

fn checksum(number: u32, chunk: &[u8]) -> u32 {
    haul_crc::crc32c(chunk) ^ number
}

/// Reads a file of chunks and calls `take` with each. `take` returns `false` if the chunk is
/// inconsistent.
///
/// # Errors
/// [`Error::Damaged`] if the file is truncated or damaged; a failed system call.
pub(crate) fn read(
    disk: &dyn Disk,
    name: &str,
    number: u64,
    mut take: impl FnMut(&[u8]) -> bool,
) -> Result<()> {
    let file = disk.open(name, Open { read_only: true, ..Open::default() })?;
    let damaged = |offset: u64| Error::Damaged {
        file: disk.root().join(name),
        offset,
        what: "the checksum of this part of the index does not match".to_owned(),
    };
    let mut header = [0; HEADER_BYTES];
    let read = read_full(&*file, &mut header, 0)?;
    if read < HEADER_BYTES || header[..8] != MAGIC || u64_at(&header, 8) != number {
        return Err(damaged(0));
    }
    let (mut offset, mut chunk) = (HEADER_BYTES as u64, Vec::new());
    for count in 0.. {
        let mut header = [0; CHUNK_HEADER_BYTES];
        if read_full(&*file, &mut header, offset)? < CHUNK_HEADER_BYTES {
            return Err(damaged(offset));
        }
        let (length, expected) = (u32_at(&header, 0) as usize, u32_at(&header, 4));
        if length == 0 {
            return if expected == count { Ok(()) } else { Err(damaged(offset)) };
        }
        if length > CHUNK_BYTES_MAX || offset + length as u64 > file.bytes()? {
            return Err(damaged(offset));
        }
        chunk.resize(length, 0);
        let read = read_full(&*file, &mut chunk, offset + CHUNK_HEADER_BYTES as u64)?;
        if read < length || checksum(count, &chunk) != expected || !take(&chunk) {
            return Err(damaged(offset));
        }
        offset += (CHUNK_HEADER_BYTES + length) as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use haul_disk_sim::MemoryDisk;

    use super::*;

    fn read_all(disk: &MemoryDisk, number: u64) -> Result<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        read(disk, "file", number, |chunk| {
            found.push(chunk.to_vec());
            true
        })?;
        Ok(found)
    }

    #[test]
    fn flipped_bit_or_shorter_file_is_damage() {
        let disk = MemoryDisk::default();
        let chunks = [vec![1; 100], vec![2; 3]];
        write(&disk, "file", 7, chunks.clone().into_iter()).unwrap();
        assert_eq!(read_all(&disk, 7).unwrap(), chunks);
        assert!(read_all(&disk, 8).is_err(), "another file");
        let medium = disk.medium();
        let bytes = disk.open("file", Open::default()).unwrap().bytes().unwrap();
        for offset in 0..bytes {
            let disk = MemoryDisk::on(&medium);
            disk.rot("file", offset, 3);
            assert!(matches!(read_all(&disk, 7), Err(Error::Damaged { .. })), "{offset}");
            let disk = MemoryDisk::on(&medium);
            disk.open("file", Open::default()).unwrap().resize(offset).unwrap();
            assert!(matches!(read_all(&disk, 7), Err(Error::Damaged { .. })), "{offset}");
        }
    }
}
