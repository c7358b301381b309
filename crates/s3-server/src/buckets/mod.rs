//! Operations on buckets: lifecycles, settings and versioning, and features that are not
//! implemented.

pub(crate) mod acl;
pub(crate) mod bucket;
pub(crate) mod create_configuration;
pub(crate) mod documents;
pub(crate) mod encryption;
pub(crate) mod logging;
pub(crate) mod notification;
pub(crate) mod object_lock;
pub(crate) mod policy;
pub(crate) mod quota;
pub(crate) mod stubs;
pub(crate) mod tags;
pub(crate) mod versioning;
