//! Verification of all data: on request, and in the background at a limited rate.

pub(crate) mod scrub;
pub(crate) mod verify;
