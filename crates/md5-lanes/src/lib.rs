//! MD5 of several messages at once.
//!
//! The steps of MD5 depend on each other, so one message cannot use more than a fraction of a
//! processor. Several messages are independent: each of them gets one *lane* (a 32-bit element) of
//! the vector registers, and one instruction executes a step for all lanes (\[MultiBuffer\]).
//! There are kernels with 16 lanes (AVX-512), with 8 lanes (AVX2), and with 4 lanes (any processor
//! with vectors of 128 bits). [`digest_many`] hashes a list of messages; with an [`Md5Queue`], the
//! messages of concurrent threads share the lanes.
//!
//! ```
//! let digests = haul_md5_lanes::digest_many(&[b"a", b"message digest"]);
//! assert_eq!(digests[1][..4], [0xf9, 0x6b, 0x69, 0x7d]);
//! assert_eq!(digests[0], haul_md5_lanes::digest(b"a"));
//! ```

mod kernels;
mod lanes;
mod pending;
mod queue;
mod rounds;
mod schedule;

pub use lanes::Lanes;
pub use queue::Md5Queue;
pub use schedule::digest;

/// An MD5 digest.
pub type Digest = [u8; 16];

/// Returns the digest of each message, in the order of the messages.
#[must_use]
pub fn digest_many(messages: &[&[u8]]) -> Vec<Digest> {
    Lanes::detect().digest_many(messages)
}
