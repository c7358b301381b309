//! Counts the requests for a window once for each connection in a row: a client that fetches a file
//! in pieces requests it once.

use std::sync::Arc;

use parking_lot::Mutex;

/// A window of a file: its device, inode and number.
pub(crate) type WindowKey = (u64, u64, u64);

/// The window that a connection counted last, and its number of requests.
#[derive(Debug, Default)]
pub(crate) struct LastCounted(Mutex<Option<(WindowKey, u32)>>);

impl LastCounted {
    /// Returns the number of requests for a window: the last one, if this window was counted last,
    /// or that which `count` returns.
    pub(crate) fn requests(&self, window: WindowKey, count: impl FnOnce() -> u32) -> u32 {
        let mut last = self.0.lock();
        match *last {
            Some((counted, requests)) if counted == window => requests,
            _ => {
                let requests = count();
                *last = Some((window, requests));
                requests
            }
        }
    }
}

/// The state of a connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState(Option<Arc<LastCounted>>);

impl ConnectionState {
    /// Returns the window counted last, which the responses of the connection share.
    pub(crate) fn last_counted(&mut self) -> Arc<LastCounted> {
        Arc::clone(self.0.get_or_insert_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_counts_a_window_once_in_a_row() {
        let mut state = ConnectionState::default();
        let counted: Vec<_> = [1, 1, 2, 2, 1]
            .into_iter()
            .scan(0, |calls, window| {
                let requests = state.last_counted().requests((0, 0, window), || {
                    *calls += 1;
                    *calls
                });
                Some(requests)
            })
            .collect();
        assert_eq!(counted, [1, 1, 2, 2, 3]);
    }
}
