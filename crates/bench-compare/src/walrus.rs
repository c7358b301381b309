//! Appends records with walrus, which syncs each append (`FsyncSchedule::SyncEach`) and uses its
//! default backend (file descriptors).
//!
//! walrus reads its directory and its verbosity from the environment, which `main` sets.

use haul_bench::log::{Contender, Failure};
use walrus_rust::{FsyncSchedule, ReadConsistency, Walrus};

/// The assignment of writers to topics.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Topics {
    /// One topic (a named log) for all writers: their records have a single order, as in the logs
    /// of other rivals.
    One,
    /// One topic per writer, so that writers do not wait for the topic's lock.
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
