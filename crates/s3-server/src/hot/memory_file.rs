//! Contents of hot objects in memory that the kernel sends without a copy.
//!
//! Each object has a file in memory (`memfd_create(2)`) of its own, which is written once and never
//! reused. `sendfile(2)` passes references to its pages to the socket, and these pages are read
//! after the call has returned, for as long as the client has not acknowledged them. So they must
//! never carry other bytes, also when the object is overwritten or evicted.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use haul_http_engine::Window;
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{pwrite, retry_on_intr};

/// The unit in which the kernel allocates the memory of a file.
const PAGE_BYTES: u64 = 4096;

/// The memory of a file beside its content: its inode and its descriptor.
const OVERHEAD_BYTES: u64 = 1536;

/// Creates files in memory, up to a number and to a total length. Files that were evicted from the
/// cache count as long as they are being sent.
#[derive(Debug)]
pub(crate) struct MemoryFiles {
    files_max: usize,
    bytes_max: u64,
    open: Arc<Mutex<Open>>,
}

/// The existing files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) files: usize,
    /// The memory that they take.
    pub(crate) bytes: u64,
}

/// The content of one object. It never changes.
#[derive(Debug)]
pub(crate) struct MemoryFile {
    file: OwnedFd,
    bytes: u64,
    _share: Share,
}

/// The share of one file in the limits.
#[derive(Debug)]
struct Share {
    bytes: u64,
    open: Arc<Mutex<Open>>,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        open.files -= 1;
        open.bytes -= self.bytes;
    }
}

impl MemoryFiles {
    pub(crate) fn new(files_max: usize, bytes_max: u64) -> Self {
        Self { files_max, bytes_max, open: Arc::default() }
    }

    /// Returns the existing files.
    pub(crate) fn open(&self) -> Open {
        *self.open.lock()
    }

    /// Returns a file with this content; `None` if a limit is reached, or if the kernel has no
    /// memory or descriptors left.
    pub(crate) fn create(&self, content: &[u8]) -> Option<Arc<MemoryFile>> {
        let share = self.share(memory_bytes(content.len() as u64))?;
        let file = memfd_create("haul-object", MemfdFlags::CLOEXEC).ok()?;
        let mut at = 0;
        while at < content.len() {
            match retry_on_intr(|| pwrite(&file, &content[at..], at as u64)).ok()? {
                0 => return None,
                written => at += written,
            }
        }
        Some(Arc::new(MemoryFile { file, bytes: content.len() as u64, _share: share }))
    }

    fn share(&self, bytes: u64) -> Option<Share> {
        let mut open = self.open.lock();
        let after = Open { files: open.files + 1, bytes: open.bytes + bytes };
        if after.files > self.files_max || after.bytes > self.bytes_max {
            return None;
        }
        *open = after;
        Some(Share { bytes, open: Arc::clone(&self.open) })
    }
}

/// Returns the memory that a file of this length takes.
fn memory_bytes(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE_BYTES) + OVERHEAD_BYTES
}

impl MemoryFile {
    /// Returns the window of a range.
    pub(crate) fn window(self: &Arc<Self>, offset: u64, bytes: u64) -> Window {
        Window { file: Arc::clone(self) as _, offset, bytes }
    }

    /// Returns the length of the content.
    pub(crate) fn len(&self) -> u64 {
        self.bytes
    }

    /// Returns the memory that the file takes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        memory_bytes(self.bytes)
    }
}

impl AsFd for MemoryFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(file: &MemoryFile) -> Vec<u8> {
        let mut bytes = vec![0; 2 * usize::try_from(file.len()).unwrap() + 1];
        let read = rustix::io::pread(file, &mut *bytes, 0).unwrap();
        bytes.truncate(read);
        bytes
    }

    #[test]
    fn file_has_the_content_and_counts_whole_pages() {
        let files = MemoryFiles::new(2, 1 << 20);
        let bytes: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
        let file = files.create(&bytes).unwrap();
        let memory_bytes = 25 * PAGE_BYTES + OVERHEAD_BYTES;
        assert_eq!((file.len(), file.memory_bytes()), (100_000, memory_bytes));
        assert_eq!(files.open(), Open { files: 1, bytes: memory_bytes });
        assert!(content(&file) == bytes);
    }

    #[test]
    fn evicted_file_counts_until_it_is_sent() {
        let of_one = memory_bytes(1);
        for files in [MemoryFiles::new(2, 1 << 20), MemoryFiles::new(9, 2 * of_one)] {
            let (first, second) = (files.create(b"a").unwrap(), files.create(b"b").unwrap());
            assert!(files.create(b"c").is_none());
            let window = first.window(0, 1);
            drop(first);
            assert!(files.create(b"c").is_none());
            drop(window);
            let third = files.create(b"c").unwrap();
            assert_eq!((content(&second), content(&third)), (b"b".into(), b"c".into()));
            assert_eq!(files.open(), Open { files: 2, bytes: 2 * of_one });
        }
        assert!(MemoryFiles::new(0, 1 << 20).create(b"a").is_none());
    }
}
