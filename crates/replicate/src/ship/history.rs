//! Keeps the copy's states for some time, so that it can be restored as it was.

use std::time::Instant;

use bytes::Bytes;

use crate::error::Result;
use crate::manifest::names;
use crate::manifest::{HistoryEntry, Manifest, encode};
use crate::ship::round::Shipper;
use crate::source::Source;

impl<S: Source> Shipper<S> {
    /// Keeps the manifest that the draft will replace, if that is due, and removes entries that are
    /// too old from the draft.
    ///
    /// The kept manifest is stored before the draft lists it. A crash in between leaves an object
    /// that no manifest lists.
    pub(super) fn keep_history(&mut self) -> Result<()> {
        if self.options.keep.is_zero() {
            let removed = std::mem::take(&mut self.draft.history);
            self.discard_history(&removed);
            return Ok(());
        }
        let every = self.options.keep_every;
        if self.history_kept.is_none_or(|kept| kept.elapsed() >= every) {
            let kept = Manifest { history: Vec::new(), ..self.object.current().clone() };
            let entry = HistoryEntry::of(&kept);
            let is_new = self.draft.history.last().is_none_or(|last| last.precedes(&entry));
            if !kept.segments.is_empty() && is_new {
                let bytes = Bytes::from(encode(&kept));
                self.remote.put_all(vec![(names::history(&entry), bytes)])?;
                self.draft.history.push(entry);
            }
            self.history_kept = Some(Instant::now());
        }
        let too_old = self.history_age.oldest_ms(self.options.keep);
        let removed = self.draft.remove_history_before(too_old);
        self.discard_history(&removed);
        Ok(())
    }

    fn discard_history(&mut self, removed: &[HistoryEntry]) {
        self.garbage.extend(removed.iter().map(names::history));
    }
}
