//! Versions of objects.

mod behaviour;
mod crash;
mod damage;
mod model;
mod random;
