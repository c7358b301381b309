//! The keys of users, in a file and in a running server.
//!
//! `key` is the model with `names`, `policies` has the policies of users and groups, `format` is
//! the text of a key file, and `seal` protects the secrets in it. `key_ring` holds a running
//! server's keys, `key_file` changes their file, and `session` has temporary keys.

pub(crate) mod credentials;
mod format;
pub(crate) mod key;
pub(crate) mod key_file;
pub(crate) mod key_ring;
pub(crate) mod names;
pub(crate) mod policies;
pub(crate) mod seal;
pub(crate) mod session;
