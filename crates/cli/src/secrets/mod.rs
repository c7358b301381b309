//! Secrets in files and in the environment.

pub(crate) mod credentials;
pub(crate) mod encryption_keys;
pub(crate) mod file;
pub(crate) mod key_file;
pub(crate) mod live_keys;
