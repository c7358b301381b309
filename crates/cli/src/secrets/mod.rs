//! Secrets in files and in the environment.

pub(crate) mod credentials;
pub(crate) mod file;
