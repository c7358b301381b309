//! Damaged places, and the list of those known in an open store.

pub(crate) mod found;
pub(crate) mod place;
