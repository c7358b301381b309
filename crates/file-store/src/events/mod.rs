//! Queues of events, which describe changes until a consumer removes them.
//!
//! An event is an object in its queue, which is an internal bucket. Its needle follows the needle of
//! the change in the same record, so that after a crash both exist or neither. It is the only needle
//! whose position does not begin with it; when compaction moves it, it gets a record of its own.
//! Otherwise compaction, checkpoints, recovery and copies of the store treat it like any other
//! object. A move between the stores of a pool leaves it where the change was made.
//!
//! `append` makes the needles of events, and `queue` reads and removes queued events. The newest
//! events are also in memory ([`crate::EventQueues`]).

pub(crate) mod append;
pub(crate) mod queue;
