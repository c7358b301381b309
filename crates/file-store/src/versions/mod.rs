//! Versions of objects.
//!
//! A key's current object is stored as in a bucket without versions, so reading it costs the same.
//! Before it is replaced, it is stored once more, unchanged, in an internal bucket for versions
//! ([`crate::index::version_names`]). Delete markers are only in the internal bucket.
//!
//! Invariants, for each key of a bucket in which versioning was enabled:
//! - If there is a current object, it is the newest version.
//! - If there is none, the newest version is a delete marker, or there are no versions.
//! - At most one version has the ID `null`, except that the internal bucket may have a copy of the
//!   current object, which a crash between the two steps of a replacement leaves.
//!
//! While a key is moved to another store of a pool ([`crate::Store::move_key`]), each store may have
//! a part of the versions, for which only the last of these invariants holds.

pub(crate) mod attributes;
pub(crate) mod read;
pub(crate) mod retain;
mod state;
