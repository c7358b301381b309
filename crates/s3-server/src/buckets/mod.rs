//! Operations on buckets, their lifecycles, settings and versioning, and features that are not
//! implemented.

pub(crate) mod bucket;
pub(crate) mod cors;
pub(crate) mod create_configuration;
pub(crate) mod documents;
pub(crate) mod encryption;
pub(crate) mod lifecycle;
pub(crate) mod logging;
pub(crate) mod object_lock;
pub(crate) mod ownership_controls;
pub(crate) mod parsed;
pub(crate) mod policy;
pub(crate) mod public_access_block;
pub(crate) mod settings;
pub(crate) mod stubs;
pub(crate) mod tags;
pub(crate) mod versioning;
