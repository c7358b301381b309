//! Storing, reading and removing objects.

pub(crate) mod get;
pub(crate) mod put;
pub(crate) mod upload;
pub(crate) mod writers;
pub(crate) mod written;
