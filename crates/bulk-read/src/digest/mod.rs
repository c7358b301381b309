//! Offers common hash functions through one type, [`HashKind`].

mod hex;
mod kind;
mod parts;

pub use hex::{from_hex, to_hex};
pub use kind::{Digest, HashKind, Hasher};
pub use parts::{PartHasher, PartSum, Parts};
