//! Damaged places, and those that are known in an open store.

pub(crate) mod found;
pub(crate) mod place;
