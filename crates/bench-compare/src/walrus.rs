//! walrus: each append synced (`FsyncSchedule::SyncEach`), on its default backend of descriptors.
//!
//! It takes its directory and its silence from the environment, which `main` sets before.

use haul_bench::log::{Contender, Failure};
use walrus_rust::{FsyncSchedule, ReadConsistency, Walrus};

/// Who writes to which topic.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Topics {
    /// All to one: a log with one order, as the others are.
    One,
    /// Each writer to its own, so that the topic's lock is not waited for.
    Each,
}

pub(crate) struct Log {
    walrus: Walrus,
    topics: Vec<String>,
}

impl Log {
    pub(crate) fn open(topics: Topics, writers: usize) -> Result<Self, Failure> {
        let consistency = ReadConsistency::AtLeastOnce { persist_every: 1000 };
        let walrus = Walrus::with_consistency_and_schedule(consistency, FsyncSchedule::SyncEach)?;
        let name = |writer| match topics {
            Topics::One => "records".to_owned(),
            Topics::Each => format!("records-{writer}"),
        };
        Ok(Self { walrus, topics: (0..writers).map(name).collect() })
    }
}

impl Contender for Log {
    fn append(&self, writer: usize, record: &[u8]) -> Result<(), Failure> {
        self.walrus.append_for_topic(&self.topics[writer], record)?;
        Ok(())
    }
}
