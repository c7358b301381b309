//! The two copies of the file with the table in a member's directory.
//!
//! They are overwritten in place, one after the other: a torn write leaves the other copy intact,
//! and a change of the table needs no space, which a full disk does not have.

use std::sync::Arc;

use haul_disk::{Disk, Durability, File, Open, read_full, write_full};
use haul_file_store::{Error, Result};

use crate::table::PoolFile;

/// The names of the copies.
pub(crate) const NAMES: [&str; 2] = ["POOL", "POOL.copy"];

/// The name of a copy that is not complete.
const UNFINISHED: &str = "POOL.new";

/// The name of the mark of a directory into which a member's copy is being restored.
pub(crate) const MARK: &str = "POOL.refill";

/// The length of a copy is a multiple of this: its text, and line ends. Few tables are longer.
const STEP_BYTES: usize = 16 << 10;

/// A longer file is not read: the longest table has one range for each slot, and many members.
const BYTES_MAX: usize = 4 << 20;

/// What a directory has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Copies {
    /// No copy.
    None,
    /// The newest intact copy.
    Intact(PoolFile),
    /// Only damaged copies, with the violated rule.
    Damaged(&'static str),
}

/// Reads both copies, and syncs them: a process that was killed may have written or renamed a copy
/// and not synced it, and what follows from a table must not be durable before the table.
///
/// # Errors
/// A failed system call.
///
/// # Durability
/// The copies survive a power cut when this returns.
pub(crate) fn read(disk: &dyn Disk) -> Result<Copies> {
    let (mut intact, mut damaged) = (None::<PoolFile>, None);
    for name in NAMES {
        match read_copy(disk, name)? {
            None => {}
            Some(Err(why)) => damaged = Some(why),
            Some(Ok(copy)) => {
                let is_newer = |file: &PoolFile| copy.table.generation > file.table.generation;
                if intact.as_ref().is_none_or(is_newer) {
                    intact = Some(copy);
                }
            }
        }
    }
    if intact.is_some() || damaged.is_some() {
        disk.sync_dir("")?;
    }
    Ok(match (intact, damaged) {
        (Some(file), _) => Copies::Intact(file),
        (None, Some(why)) => Copies::Damaged(why),
        (None, None) => Copies::None,
    })
}

/// Returns the names of the copies; the copy that counts less is the first.
fn by_value(disk: &dyn Disk) -> Result<[&'static str; 2]> {
    let generation = |name| {
        let copy = open_copy(disk, name)?.map(|file| decode_copy(&*file)).transpose()?;
        Ok::<_, Error>(copy.and_then(std::result::Result::ok).map(|file| file.table.generation))
    };
    let [first, second] = NAMES;
    Ok(if generation(first)? > generation(second)? { [second, first] } else { NAMES })
}

/// Opens a copy; `None` if there is none.
fn open_copy(disk: &dyn Disk, name: &str) -> Result<Option<Arc<dyn File>>> {
    match disk.open(name, Open { read_only: true, ..Open::default() }) {
        Err(error) if error.is_not_found() => Ok(None),
        opened => Ok(Some(opened?)),
    }
}

/// Reads and syncs a copy.
fn read_copy(
    disk: &dyn Disk,
    name: &str,
) -> Result<Option<std::result::Result<PoolFile, &'static str>>> {
    let Some(file) = open_copy(disk, name)? else { return Ok(None) };
    file.sync(Durability::Everything)?;
    decode_copy(&*file).map(Some)
}

/// Reads a copy; the inner error is the violated rule.
fn decode_copy(file: &dyn File) -> Result<std::result::Result<PoolFile, &'static str>> {
    let length = usize::try_from(file.bytes()?).unwrap_or(usize::MAX);
    let mut bytes = vec![0; length.min(BYTES_MAX)];
    let read = read_full(file, &mut bytes, 0)?;
    bytes.truncate(read);
    Ok(decode(bytes))
}

fn decode(bytes: Vec<u8>) -> std::result::Result<PoolFile, &'static str> {
    let text = String::from_utf8(bytes).map_err(|_not_utf8| "it is not text")?;
    if text.len() % STEP_BYTES != 0 {
        return Err("its length is wrong");
    }
    // The checksum is in the last line with text.
    let end = text.trim_end_matches('\n').len();
    PoolFile::decode(text.get(..=end).ok_or("it does not end with a line end")?)
}

fn encode(file: &PoolFile) -> Vec<u8> {
    let mut bytes = file.encode().into_bytes();
    bytes.resize(bytes.len().next_multiple_of(STEP_BYTES), b'\n');
    bytes
}

/// Overwrites both copies, and creates missing ones: first the one that counts less, because it is
/// damaged, missing or older.
///
/// 1. Overwrites and syncs the first one. After a crash it may be torn: the other one counts.
/// 2. Overwrites and syncs the other one. After a crash the first one counts.
///
/// A missing copy is written under a temporary name and renamed: after a crash it exists as a whole
/// or not at all.
///
/// # Errors
/// A failed system call; on a full disk only if a copy is missing, or gets longer.
///
/// # Durability
/// The table survives a power cut when this returns.
pub(crate) fn write(disk: &dyn Disk, file: &PoolFile) -> Result<()> {
    let bytes = encode(file);
    for name in by_value(disk)? {
        let copy = match disk.open(name, Open::default()) {
            Err(error) if error.is_not_found() => {
                create(disk, name, &bytes)?;
                continue;
            }
            opened => opened?,
        };
        write_full(&*copy, &bytes, 0)?;
        if copy.bytes()? != bytes.len() as u64 {
            copy.resize(bytes.len() as u64)?;
        }
        copy.sync(Durability::Everything)?;
    }
    Ok(())
}

/// Returns `true` if the directory has the mark.
///
/// # Errors
/// A failed system call.
pub(crate) fn is_marked(disk: &dyn Disk) -> Result<bool> {
    match disk.open(MARK, Open { read_only: true, ..Open::default() }) {
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(true),
    }
}

/// Marks a directory.
///
/// # Errors
/// A failed system call.
///
/// # Durability
/// The mark survives a power cut when this returns.
pub(crate) fn mark(disk: &dyn Disk) -> Result<()> {
    match disk.create(MARK, Open::default()) {
        Err(error) if !error.is_already_exists() => return Err(error.into()),
        _ => {}
    }
    Ok(disk.sync_dir("")?)
}

/// Removes the mark.
///
/// # Errors
/// A failed system call.
///
/// # Durability
/// The removal survives a power cut when this returns.
pub(crate) fn unmark(disk: &dyn Disk) -> Result<()> {
    disk.remove(MARK)?;
    Ok(disk.sync_dir("")?)
}

fn create(disk: &dyn Disk, name: &str, bytes: &[u8]) -> Result<()> {
    match disk.remove(UNFINISHED) {
        Err(error) if !error.is_not_found() => return Err(error.into()),
        _ => {}
    }
    let copy = disk.create(UNFINISHED, Open::default())?;
    write_full(&*copy, bytes, 0)?;
    copy.sync(Durability::Everything)?;
    disk.rename(UNFINISHED, name)?;
    Ok(disk.sync_dir("")?)
}

#[cfg(test)]
mod tests {
    use haul_disk_sim::{MemoryDisk, Survival};

    use super::*;
    use crate::table::Table;

    #[test]
    fn table_that_was_read_survives_a_power_cut() {
        let disk = MemoryDisk::default();
        let mut file = PoolFile { own: 0, table: Table::with_one_member(1, 2, "d0".to_owned()) };
        write(&disk, &file).unwrap();
        // The process is killed before it syncs the first copy.
        file.table.generation += 1;
        let copy = disk.open(NAMES[0], Open::default()).unwrap();
        write_full(&*copy, &encode(&file), 0).unwrap();
        let left = || MemoryDisk::on(&disk.medium().cut(Survival::Nothing));
        assert_ne!(read(&left()).unwrap(), Copies::Intact(file.clone()));
        assert_eq!(read(&disk).unwrap(), Copies::Intact(file.clone()));
        assert_eq!(read(&left()).unwrap(), Copies::Intact(file));
    }

    #[test]
    fn damaged_copy_is_overwritten_before_the_intact_one() {
        for damaged in [0, 1] {
            let disk = MemoryDisk::default();
            let table = Table::with_one_member(1, 2, "d0".to_owned());
            let file = PoolFile { own: 0, table };
            write(&disk, &file).unwrap();
            let copy = disk.open(NAMES[damaged], Open::default()).unwrap();
            write_full(&*copy, b"X", 0).unwrap();
            assert_eq!(by_value(&disk).unwrap()[0], NAMES[damaged]);
            // A stop within the first overwriting leaves the copy that was intact.
            assert_eq!(read(&disk).unwrap(), Copies::Intact(file));
        }
    }
}
