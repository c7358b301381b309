//! Reads the entries of a directory and sorts them by inode number.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, RawDir};
use rustix::io::Errno;

/// The size of the `getdents64` buffer: room for about 1500 names, so that most directories take
/// one call for all entries and a second one that reports the end.
const LIST_BYTES: usize = 64 << 10;

/// A directory entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    name: u32,
    pub(super) inode: u64,
    pub(super) kind: FileType,
}

/// The entries of a directory. The buffers are reused for the next directory.
#[derive(Debug, Default)]
pub(super) struct Entries {
    list: Vec<MaybeUninit<u8>>,
    names: Vec<u8>,
    entries: Vec<Entry>,
}

impl Entries {
    /// Replaces the content by the entries of `dir`, sorted by inode number: most file systems
    /// store inodes in the order of their numbers.
    ///
    /// After an error, the entries read before the error remain.
    pub(super) fn read(&mut self, dir: &OwnedFd) -> Result<(), Errno> {
        self.names.clear();
        self.entries.clear();
        self.list.resize(LIST_BYTES, MaybeUninit::uninit());
        let mut list = RawDir::new(dir, &mut self.list);
        let mut outcome = Ok(());
        while let Some(entry) = list.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(Errno::INTR) => continue,
                Err(errno) => {
                    outcome = Err(errno);
                    break;
                }
            };
            let name = entry.file_name().to_bytes_with_nul();
            if matches!(name, b".\0" | b"..\0") {
                continue;
            }
            // The position must fit into a `u32`: entries beyond 4 GiB of names in one directory
            // are ignored.
            let Ok(at) = u32::try_from(self.names.len()) else { break };
            self.names.extend_from_slice(name);
            self.entries.push(Entry { name: at, inode: entry.ino(), kind: entry.file_type() });
        }
        self.entries.sort_unstable_by_key(|entry| entry.inode);
        outcome
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns an entry and its name.
    pub(super) fn get(&self, index: usize) -> (Entry, &CStr) {
        let entry = self.entries[index];
        let name = CStr::from_bytes_until_nul(&self.names[entry.name as usize..]);
        (entry, name.unwrap_or_default())
    }
}
