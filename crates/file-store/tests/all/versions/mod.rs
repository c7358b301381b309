//! Versions of objects.

mod attributes;
mod behaviour;
mod crash;
mod damage;
mod full;
pub(crate) mod model;
mod random;
