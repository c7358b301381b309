//! A position in a run that moves forward from block to block.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::index::runs::block::{Block, BlockPosition, EntryAt};
use crate::index::runs::format::{BLOCK_BYTES, Malformed, shared_prefix};
use crate::index::runs::run::Run;
use crate::index::runs::source::Source;

/// A position in a run.
///
/// After a seek, the cursor reads one block. While it advances, each read is twice as long as the
/// previous one, up to a limit. It allocates only when its buffers grow.
#[derive(Debug)]
pub(crate) struct Cursor {
    run: Arc<Run>,
    readahead_bytes_max: usize,
    readahead_bytes: usize,
    /// The bytes of the blocks `loaded`, followed by unspecified bytes.
    buffer: Vec<u8>,
    loaded: Range<usize>,
    state: State,
    /// The number of the current block.
    number: usize,
    /// The entries of the current block.
    block: Block,
    /// The position of the next entry.
    next: BlockPosition,
    key: Vec<u8>,
    value: Option<Range<usize>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    BeforeFirst,
    AtEntry,
    AtEnd,
    Failed,
}

impl Cursor {
    /// Creates a cursor that reads at most `readahead_bytes_max` bytes at once, but at least one
    /// block.
    pub(crate) fn new(run: Arc<Run>, readahead_bytes_max: usize) -> Self {
        Self {
            run,
            readahead_bytes_max,
            readahead_bytes: 0,
            buffer: Vec::new(),
            loaded: 0..0,
            state: State::BeforeFirst,
            number: 0,
            block: Block::default(),
            next: BlockPosition::default(),
            key: Vec::new(),
            value: None,
        }
    }

    /// Returns the current entry; its value is `None` for a tombstone.
    #[cfg(test)]
    #[inline]
    pub(crate) fn current(&self) -> Option<(&[u8], Option<&[u8]>)> {
        (self.state == State::AtEntry).then(|| (&self.key[..], self.current_value()))
    }

    #[inline]
    fn current_value(&self) -> Option<&[u8]> {
        self.value.clone().map(|value| self.block.value(value))
    }

    fn try_seek(&mut self, target: &[u8]) -> Result<()> {
        let Some(number) = self.run.index().find(target) else {
            self.state = State::AtEnd;
            return Ok(());
        };
        let mut matched = 0;
        if self.state == State::AtEntry && self.number == number && self.key[..] <= *target {
            if self.key == target {
                return Ok(());
            }
            matched = shared_prefix(&self.key, target);
        } else {
            self.readahead_bytes = 0;
            self.key.clear();
            // Only a seek uses a kept block, so that scans, which advance only, verify the file.
            match self.run.take_kept_block(number) {
                Some(block) => {
                    (self.block, self.number, self.next) =
                        (block, number, BlockPosition::default());
                }
                None => self.enter(number)?,
            }
        }
        let found = self
            .block
            .seek(self.next, matched, target)
            .map_err(|Malformed| self.run.malformed(number))?;
        match found {
            Some(entry) => {
                self.key.clear();
                self.key.extend_from_slice(&target[..entry.shared]);
                self.set_current(entry);
            }
            None => self.enter_first(number + 1)?,
        }
        Ok(())
    }

    /// Moves before the first entry of a block.
    fn enter(&mut self, number: usize) -> Result<()> {
        if !self.loaded.contains(&number) {
            let end = self.run.index().end_within(number, self.readahead_bytes);
            self.loaded = 0..0;
            self.run.read_blocks(number, end, &mut self.buffer)?;
            self.loaded = number..end;
        }
        self.run.unpack_block(number, self.loaded.start, &self.buffer, &mut self.block)?;
        self.next = BlockPosition::default();
        self.number = number;
        Ok(())
    }

    /// Moves to the first entry of a block, or to the end.
    fn enter_first(&mut self, number: usize) -> Result<()> {
        if number == self.run.index().blocks() {
            self.state = State::AtEnd;
            return Ok(());
        }
        self.readahead_bytes =
            (2 * self.readahead_bytes).max(2 * BLOCK_BYTES).min(self.readahead_bytes_max);
        self.enter(number)?;
        let entry = self.decode_next()?;
        let is_first = entry.shared == 0 && *self.block.suffix(&entry) > self.key[..];
        if !is_first {
            return Err(self.run.malformed(number));
        }
        self.set_current(entry);
        Ok(())
    }

    fn try_advance(&mut self) -> Result<()> {
        if self.block.is_end(self.next) {
            return self.enter_first(self.number + 1);
        }
        let entry = self.decode_next()?;
        // A damaged run may have entries out of order, which would mislead the caller, so keys must
        // ascend.
        let first = self.block.suffix(&entry).first();
        let is_ascending = match self.key.get(entry.shared) {
            Some(replaced) => first > Some(replaced),
            None => entry.shared == self.key.len() && first.is_some(),
        };
        if !is_ascending {
            return Err(self.run.malformed(self.number));
        }
        self.set_current(entry);
        Ok(())
    }

    #[inline]
    fn decode_next(&self) -> Result<EntryAt> {
        self.block.decode(self.next).map_err(|Malformed| self.run.malformed(self.number))
    }

    /// Makes an entry the current one. The current key has at least the bytes that the entry
    /// shares.
    #[inline]
    fn set_current(&mut self, entry: EntryAt) {
        self.key.truncate(entry.shared);
        self.key.extend_from_slice(self.block.suffix(&entry));
        self.value = entry.value;
        self.next = entry.end;
        self.state = State::AtEntry;
    }

    #[inline]
    fn note_failure(&mut self, outcome: Result<()>) -> Result<()> {
        if outcome.is_err() {
            self.state = State::Failed;
        }
        outcome
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        // After an error, the block may not be the one with this number. At the end it is the last
        // one, which the next page of a bucket that follows all keys of the run needs again.
        if self.state != State::Failed && !self.block.is_empty() {
            self.run.keep_block(self.number, std::mem::take(&mut self.block));
        }
    }
}

impl Source for Cursor {
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        let outcome = self.try_seek(key);
        self.note_failure(outcome)
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        let outcome = match self.state {
            State::AtEntry => self.try_advance(),
            State::BeforeFirst => self.enter_first(0),
            State::AtEnd => return Ok(()),
            State::Failed => {
                let what = "a failed cursor must be repositioned by a seek".to_owned();
                return Err(Error::Invalid { what });
            }
        };
        self.note_failure(outcome)
    }

    #[inline]
    fn key(&self) -> Option<&[u8]> {
        (self.state == State::AtEntry).then_some(&self.key[..])
    }

    #[inline]
    fn value(&self) -> Option<&[u8]> {
        if self.state == State::AtEntry { self.current_value() } else { None }
    }
}
