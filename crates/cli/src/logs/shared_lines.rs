//! A sink for access log lines whose destination may change.

use std::sync::Arc;

use haul_file_server::Lines;
use parking_lot::RwLock;

/// A sink for access log lines. The server gets the sink when its addresses are bound. The
/// destination of the lines is set afterwards, before the server accepts a connection, and may
/// change later.
#[derive(Default)]
pub(crate) struct SharedLines(RwLock<Option<Arc<dyn Lines>>>);

impl SharedLines {
    /// Sets the destination. When this returns, no line is appended to the one before.
    pub(crate) fn set(&self, log: Arc<dyn Lines>) {
        *self.0.write() = Some(log);
    }
}

impl Lines for SharedLines {
    fn append(&self, line: &[u8]) {
        if let Some(log) = &*self.0.read() {
            log.append(line);
        }
    }
}
