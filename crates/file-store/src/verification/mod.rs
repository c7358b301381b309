//! Reading everything: on request, and at a set rate in the background.

pub(crate) mod scrub;
pub(crate) mod verify;
