//! Reads many records with few requests: a plan, and a queue of reads in flight.

pub(crate) mod plan;
pub(crate) mod queue;
