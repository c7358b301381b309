//! Operations on buckets, lifecycles, versioning, and features that are not implemented.

pub(crate) mod bucket;
pub(crate) mod lifecycle;
pub(crate) mod stubs;
pub(crate) mod versioning;
