//! The keys of users, in a file and in a running server.
//!
//! `key` is the model, `format` is the text of a key file, and `seal` protects the secrets in it.
//! `key_ring` holds the keys of a running server, and `key_file` changes the file in which they are.

pub(crate) mod credentials;
mod format;
pub(crate) mod key;
pub(crate) mod key_file;
pub(crate) mod key_ring;
pub(crate) mod seal;
