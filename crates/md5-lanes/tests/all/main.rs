//! Tests of the digests against known vectors and another implementation, and of the queue.

mod digests;
mod sharing;
