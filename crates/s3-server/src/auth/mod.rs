//! Authenticates a request: verifies its signature of any kind, once.
//!
//! `verify` recognizes the kind. `v4` and `v2` verify signatures in headers and URLs, `chunks`
//! verifies a body's chunk signatures, and `signer` finds the key. Signatures are compared in
//! constant time.

pub(crate) mod canonical;
pub(crate) mod chunks;
pub(crate) mod claimed;
pub(crate) mod payload;
pub(crate) mod scope;
pub(crate) mod signer;
mod v2;
mod v4;
pub(crate) mod verify;

/// The region in error messages. Signatures for any other valid region name are accepted, too.
pub(crate) const REGION: &str = "us-east-1";
