//! Operations on multipart uploads.

pub(crate) mod complete;
pub(crate) mod list;
pub(crate) mod multipart;
pub(crate) mod parts;
