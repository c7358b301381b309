//! Keys and rights: which client may execute which operation.
//!
//! `rights` and `key` are the model, `format` is the text of a key file, and `seal` protects the
//! secrets in it. `key_ring` holds the keys of a running server, and `key_file` changes
//! the file in which they are. `action` maps each operation to
//! the right that it needs, `authorize` decides, and `caller` applies the decision to a request.
//! `lists` adds the access lists of buckets and objects. `service` passes both to the S3 service.

pub(crate) mod action;
pub(crate) mod authorize;
pub(crate) mod bucket_policy;
pub(crate) mod caller;
pub(crate) mod credentials;
mod expected_owner;
pub(crate) mod facts;
mod format;
pub(crate) mod key;
pub(crate) mod key_file;
pub(crate) mod key_ring;
mod lists;
pub(crate) mod rights;
pub(crate) mod seal;
pub(crate) mod service;
pub(crate) mod verified;
