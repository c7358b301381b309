//! Expires noncurrent versions, and delete markers without other versions.
//!
//! `plan` computes which versions have expired, `list` finds the keys that have some, and `delete`
//! evaluates each of these keys again while it is locked.

pub(super) mod delete;
pub(super) mod list;
mod plan;
