//! Listings of objects and of versions.

pub(crate) mod objects;
pub(crate) mod page;
pub(crate) mod versions;
