//! Opening a store: the index rebuilt from the manifest, volume indexes and needles; damage found.

pub(crate) mod accept_damage;
mod apply;
mod coverage;
mod known;
pub(crate) mod marker;
mod naming;
mod open_index;
pub(crate) mod recover;
pub(crate) mod replay;
pub(crate) mod spill;
pub(crate) mod survey;
