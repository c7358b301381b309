//! The sizes of the members' file systems, by which slots are spread.

use std::path::Path;

use crate::member::Member;

/// Returns the size of each member's file system; 1 for each if a size is unknown.
pub(crate) fn weights(members: &[Member]) -> Vec<u64> {
    let sizes: Option<Vec<u64>> =
        members.iter().map(|member| file_system_bytes(&member.dir)).collect();
    sizes.unwrap_or_else(|| vec![1; members.len()])
}

/// Returns the size of a directory's file system, in bytes.
pub(crate) fn file_system_bytes(dir: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    stat.f_blocks.checked_mul(stat.f_frsize).filter(|bytes| *bytes > 0)
}
