//! Versions of objects.

mod attributes;
mod batch;
mod behaviour;
pub(crate) mod contents;
mod crash;
mod crash_settings;
mod damage;
mod expire;
mod full;
mod lock_crash;
mod lock_model;
mod locks;
mod model;
mod random;
