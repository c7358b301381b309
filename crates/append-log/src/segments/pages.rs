//! Records whether callers may hold a segment file's pages after a read has returned.
//!
//! The kernel can send a file's pages without a copy. It reads them until the peer has acknowledged
//! them, long after the call has returned. A file whose pages were shared is therefore never
//! overwritten: it is removed, and the kernel keeps its pages until no socket needs them.

use std::sync::atomic::{AtomicU8, Ordering};

const SHARED: u8 = 1;
const RETIRED: u8 = 2;

/// The state of a file's pages: shared, and retired.
#[derive(Debug, Default)]
pub(crate) struct PagesState(AtomicU8);

impl PagesState {
    /// Notes that pages are shared. Returns `false` if the file was retired and may already be
    /// reused: its pages must not be shared.
    pub(crate) fn share(&self) -> bool {
        let share = |state| (state & RETIRED == 0).then_some(SHARED);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, share).is_ok()
    }

    /// Notes that the file is about to be overwritten or removed. Returns `true` if it may be
    /// overwritten: no page was shared, and none will be.
    pub(crate) fn retire(&self) -> bool {
        self.0.fetch_or(RETIRED, Ordering::AcqRel) & SHARED == 0
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.0.load(Ordering::Acquire) & RETIRED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_whose_pages_were_given_away_is_not_overwritten() {
        let (private, shared) = (PagesState::default(), PagesState::default());
        assert!(shared.share() && shared.share());
        assert!(private.retire() && !shared.retire());
        assert!(private.is_retired() && shared.is_retired());
        assert!(!private.share(), "it may be overwritten");
        assert!(!shared.share() && !shared.retire());
    }
}
