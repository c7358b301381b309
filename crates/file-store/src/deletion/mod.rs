//! Deletes objects and versions.

mod batch;
mod object;
pub(crate) mod request;
mod version;
