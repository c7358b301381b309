//! Deletion of objects and versions.

pub(crate) mod object;
mod version;
