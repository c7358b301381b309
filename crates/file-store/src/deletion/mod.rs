//! Deletes objects and versions.

pub(crate) mod batch;
mod object;
pub(crate) mod request;
pub(crate) mod version;
