//! A bucket's website: its configuration. Pure.

pub(crate) mod configuration;
