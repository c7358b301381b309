//! Versions of objects.

mod behaviour;
mod crash;
mod damage;
mod full;
pub(crate) mod model;
mod random;
