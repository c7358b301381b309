//! Replaces a sealed segment's file.

use std::sync::Arc;

use super::Log;
use crate::error::{Error, Result};
use crate::segments::{RANDOM, Segment};

impl Log {
    /// Calls `replace`, which replaces a sealed segment's file with another file with the same
    /// bytes, such as one on another machine. The log then reads from that file, except for reads
    /// that began before. No segment is removed meanwhile.
    ///
    /// # Errors
    /// Returns `replace`'s error, and [`Error::Invalid`] if `number` is the segment being written
    /// or does not exist, or if the other file belongs to another segment. Returns [`Error::Disk`],
    /// [`Error::Damaged`] and [`Error::UnsupportedFormat`] if the other file cannot be opened. The
    /// log then still reads from the former file until it is closed.
    ///
    /// # Durability
    /// The replacement is as durable as `replace` makes it.
    pub fn replace_file(
        &self,
        number: u32,
        replace: &mut dyn FnMut() -> haul_disk::Result<()>,
    ) -> Result<()> {
        let _one_at_a_time = self.removal.lock();
        let before = self.segment(number)?;
        if self.shared.segments.read().keys().next_back() == Some(&number) {
            return Err(Error::Invalid(
                "the file of the segment being written cannot be exchanged",
            ));
        }
        replace()?;
        let (after, _reported) = Segment::open(&*self.shared.disk, number, RANDOM)?;
        if after.info().nonce != before.info().nonce {
            return Err(Error::Invalid("the other file is of another segment"));
        }
        after.end_at(before.end());
        self.shared.segments.write().insert(number, Arc::new(after));
        Ok(())
    }
}
