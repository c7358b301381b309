//! Operations on objects: reads, writes, copies, listings, tags.

pub(crate) mod acl;
pub(crate) mod conditions;
pub(crate) mod copy;
pub(crate) mod delete;
pub(crate) mod get_attributes;
pub(crate) mod headers;
pub(crate) mod listing;
pub(crate) mod lock;
pub(crate) mod new_acl;
pub(crate) mod range;
pub(crate) mod read;
pub(crate) mod tagging;
pub(crate) mod update;
pub(crate) mod write;
