//! Deletion of objects and versions.

mod object;
mod version;
