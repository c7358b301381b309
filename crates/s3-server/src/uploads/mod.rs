//! Operations on multipart uploads.

mod checksums;
pub(crate) mod complete;
pub(crate) mod list;
pub(crate) mod multipart;
mod name;
pub(crate) mod parts;
