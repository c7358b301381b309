//! The memory of this process.

use crate::sys;

/// Returns memory that this process has freed to the system, as far as the allocator can
/// (`malloc_trim`): glibc otherwise keeps what lies between memory in use. Takes a few milliseconds
/// per GiB, in which allocations of other threads wait. Does nothing with other C libraries.
pub fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    sys::malloc_trim();
}
