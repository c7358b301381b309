//! Storing, reading and removing objects.

pub(crate) mod completing;
pub(crate) mod get;
pub(crate) mod get_many;
pub(crate) mod put;
pub(crate) mod put_many;
mod start_put;
pub(crate) mod stored;
pub(crate) mod upload;
