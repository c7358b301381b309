//! Listings of objects and of versions.

mod checksums;
pub(crate) mod objects;
pub(crate) mod page;
pub(crate) mod versions;
