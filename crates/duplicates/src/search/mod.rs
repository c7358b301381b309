//! Finds files with equal content by reading as little as possible.

mod cache;
mod candidates;
mod consumer;
mod content_hash;
mod device_kind;
mod digests;
mod events;
mod find;
mod options;
mod plan;
mod reflinks;
mod replication;
mod result;
mod rounds;
mod transformed;

pub use events::{Events, Phase};
pub(crate) use find::WalkForwarder;
pub use find::find;
pub use options::Options;
pub use result::SearchResult;
