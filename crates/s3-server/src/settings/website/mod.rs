//! A bucket's website: its configuration, and what it makes of a request. Pure.

pub(crate) mod configuration;
pub(crate) mod routing;
