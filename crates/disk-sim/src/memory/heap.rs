//! Heap settings for tests that allocate the same buffers for thousands of recoveries.
#![expect(unsafe_code, reason = "the settings are those of the C library")]

use std::sync::Once;

/// The largest threshold that the C library accepts on a 64-bit processor.
const BYTES: i32 = 32 << 20;

/// Lets the heap keep freed buffers. It would otherwise return buffers of some megabytes to the
/// kernel, and the next recovery's page faults would take a third of the time.
pub(super) fn keep_freed_buffers() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD].into_iter().for_each(set));
}

fn set(parameter: i32) {
    // SAFETY: `mallopt` only changes a number that later allocations read.
    unsafe { libc::mallopt(parameter, BYTES) };
}
