//! Server-side encryption: keys, the format of encrypted content, and the headers of requests.
//!
//! Content is encrypted in [segments](segments) with a random data key. The data key is sealed by
//! the key of a customer or of the operator, and stored in an attribute of the object, the
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
