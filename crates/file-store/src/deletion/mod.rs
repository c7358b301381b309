//! Deletion of objects and versions.

mod object;
pub(crate) mod request;
mod version;
