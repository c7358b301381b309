//! Damage reports, and the list of an open store's known damage.

pub(crate) mod found;
pub(crate) mod report;
