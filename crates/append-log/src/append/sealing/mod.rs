//! Seals segments that are no longer being written, and reports sealed segments to the caller.

pub(crate) mod reporter;
pub(crate) mod seal;
