//! Requests to hosts of buckets, such as `bucket.example.com`.
//!
//! `domains` finds the bucket in the name of a host. `rewrite` changes a request to a host of a
//! bucket to one that has the bucket in its path, for all parts of the server but the verification
//! of its signature.

pub(crate) mod domains;
pub(crate) mod rewrite;
