//! The hashes one usually wants of a file, behind one type.

mod hex;
mod kind;

pub use hex::{from_hex, to_hex};
pub use kind::{Digest, HashKind, Hasher};
