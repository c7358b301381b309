//! This process's memory.

use crate::sys;

/// Returns memory that this process has freed to the system, as far as the allocator can
/// (`malloc_trim`): glibc otherwise keeps what lies between memory in use. Takes a few milliseconds
/// per GiB, in which other threads' allocations wait. Does nothing with other C libraries.
pub fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    sys::malloc_trim();
}

/// Lets the allocator keep little freed memory: allocations of 128 KiB and more go back to the
/// system when they are freed (`M_MMAP_THRESHOLD`, which glibc otherwise raises), and all threads
/// share two arenas. To be called before threads are started, where memory is scarcer than time.
/// Does nothing with other C libraries.
pub fn keep_little_free_memory() {
    #[cfg(target_env = "gnu")]
    sys::set_malloc_options(128 << 10, 2);
}
