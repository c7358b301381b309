//! What every log under test must be able to do, ours and others alike.

use std::error::Error;

/// Why a contender gave up.
pub type Failure = Box<dyn Error + Send + Sync>;

/// A log under test. All calls but [`Contender::warm_up`] come from several threads at once.
pub trait Contender: Sync {
    /// Appends `record`. Of each `writer`, a number from 0, there is one call at a time.
    ///
    /// # Errors
    /// Whatever the log says. It ends the measurement.
    ///
    /// # Durability
    /// When this returns, the record survives a power cut.
    fn append(&self, writer: usize, record: &[u8]) -> Result<(), Failure>;

    /// Brings the log to its steady state, called once before any append: files that are used
    /// again have been used before.
    ///
    /// # Errors
    /// Whatever the log says.
    fn warm_up(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// What the owner of such a log does beside appending, such as removing what a checkpoint has
    /// made superfluous; called some hundred times a second, by a thread of its own.
    ///
    /// # Errors
    /// Whatever the log says.
    fn housekeep(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Brings all to where it is read from in the end, once the writers have stopped: what was put
    /// off is done now.
    ///
    /// # Errors
    /// Whatever the log says.
    fn finish(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// What the log counts about itself; `None` where it counts nothing.
    fn counts(&self) -> Option<Counts> {
        None
    }
}

/// What a log counts about itself, since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Groups of records made durable together, each with one write and one sync.
    pub commits: u64,
    /// The bytes handed to the kernel for them, padding included.
    pub padded_bytes: u64,
}

impl Counts {
    /// What was added since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            commits: self.commits.saturating_sub(before.commits),
            padded_bytes: self.padded_bytes.saturating_sub(before.padded_bytes),
        }
    }
}
