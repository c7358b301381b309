//! The hosts of buckets, such as `bucket.example.com`.

pub(crate) mod domains;
