//! Versions of objects.

mod attributes;
mod behaviour;
mod crash;
mod crash_settings;
mod damage;
mod expire;
mod full;
mod lock_crash;
mod lock_model;
mod locks;
pub(crate) mod model;
mod random;
mod repeated;
