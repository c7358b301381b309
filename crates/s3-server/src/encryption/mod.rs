//! Server-side encryption: keys, the format of encrypted content, and request headers.
//!
//! Content is encrypted in [segments](segments) with a random data key. A customer's key or the
//! operator's key seals the data key, which is stored in an object attribute, the
//! [envelope](envelope).

pub(crate) mod content;
pub(crate) mod customer;
mod data_key;
pub(crate) mod default;
pub(crate) mod envelope;
pub(crate) mod lengths;
pub(crate) mod master;
pub(crate) mod new_content;
pub(crate) mod operator;
pub(crate) mod request;
pub(crate) mod segments;
