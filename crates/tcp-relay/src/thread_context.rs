//! Holds the copy buffer, the pipes and the counters that all sessions of a thread share.

use std::sync::Arc;

use haul_pipe::PipePool;

use crate::stats::Counters;
use crate::transfer_mode::TransferMode;

/// State shared by all flows of a thread.
#[derive(Debug)]
pub(crate) struct ThreadContext {
    /// The buffer of copied bytes; a flow leaves nothing in it between calls.
    pub(crate) scratch: Box<[u8]>,
    pub(crate) pool: PipePool,
    pub(crate) counters: Arc<Counters>,
    pub(crate) transfer_mode: TransferMode,
}

/// The maximum number of bytes copied with one read, and the minimum capacity of a pipe in bytes: a
/// smaller pipe would be slower than copying.
pub(crate) const COPY_BYTES_MAX: usize = 64 << 10;

impl ThreadContext {
    /// Creates a context whose counters are zero.
    pub(crate) fn new(pool: PipePool, transfer_mode: TransferMode) -> Self {
        let scratch = vec![0; COPY_BYTES_MAX].into_boxed_slice();
        Self { scratch, pool, counters: Arc::default(), transfer_mode }
    }
}
