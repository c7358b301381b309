//! A parsed request: its head, its names and its operation. Pure.

pub(crate) mod copy_source;
pub(crate) mod domains;
pub(crate) mod fields;
pub(crate) mod head;
pub(crate) mod ids;
pub(crate) mod name;
pub(crate) mod operation;
pub(crate) mod query;
pub(crate) mod trailer;
