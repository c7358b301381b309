//! A bucket's notification configuration. Pure: `configuration` is the document, `name` has the
//! names of events, and `destination` those of targets.

pub(crate) mod configuration;
pub(crate) mod destination;
pub(crate) mod name;
