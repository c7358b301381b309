//! Keys and rights: which client may execute which operation.
//!
//! `rights` is the model, and `keys` are the keys of users and the file in which they are. `action`
//! maps each operation to the right that it needs, `authorize` decides, and `caller` applies the
//! decision to a request. `lists` adds the access lists of buckets and objects. `service` passes both
//! to the S3 service.

pub(crate) mod action;
pub(crate) mod authorize;
pub(crate) mod bucket_policy;
pub(crate) mod caller;
mod expected_owner;
pub(crate) mod facts;
pub(crate) mod keys;
mod lists;
pub(crate) mod rights;
pub(crate) mod service;
mod stored_facts;
pub(crate) mod verified;

#[cfg(test)]
mod tests;
