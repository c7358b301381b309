//! Listings of objects and versions.

mod checksums;
pub(crate) mod objects;
pub(crate) mod page;
pub(crate) mod versions;
