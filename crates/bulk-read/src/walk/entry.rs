//! The entries of one directory, as the kernel lists them.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, RawDir};
use rustix::io::Errno;

/// Room for some 1500 names: a directory that is not huge is one call, and one that says so.
const LIST_BYTES: usize = 64 << 10;

/// One name in a directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    name: u32,
    pub(super) inode: u64,
    pub(super) kind: FileType,
}

/// The entries of one directory after the other; the memory stays.
#[derive(Debug, Default)]
pub(super) struct Entries {
    list: Vec<MaybeUninit<u8>>,
    names: Vec<u8>,
    entries: Vec<Entry>,
}

impl Entries {
    /// Lists `dir` in the place of what was listed before, in the order of the inodes: what the
    /// kernel has to fetch to tell more of each mostly lies in that order.
    ///
    /// What was listed before a failure stays.
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
            // A directory with more than 4 GiB of names does not fit into memory anyhow.
            let Ok(at) = u32::try_from(self.names.len()) else { break };
            self.names.extend_from_slice(name);
            self.entries.push(Entry { name: at, inode: entry.ino(), kind: entry.file_type() });
        }
        self.entries.sort_unstable_by_key(|entry| entry.inode);
        outcome
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// One of them.
    pub(super) fn get(&self, index: usize) -> (Entry, &CStr) {
        let entry = self.entries[index];
        let name = CStr::from_bytes_until_nul(&self.names[entry.name as usize..]);
        (entry, name.unwrap_or_default())
    }
}
