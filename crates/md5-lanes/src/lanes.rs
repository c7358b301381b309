//! The number of lanes, and the kernel for them.

use crate::Digest;
use crate::kernels::{Kernel, eight, portable, sixteen};
use crate::schedule::{digest, schedule};

/// A number of messages that are hashed at once.
#[derive(Debug, Clone, Copy)]
pub struct Lanes(Kernels);

/// The kernels for a number of lanes.
#[derive(Debug, Clone, Copy)]
enum Kernels {
    One,
    Four,
    Eight(Kernel<8>),
    /// Sixteen lanes, and eight for batches of no more messages.
    Sixteen(Kernel<16>, Kernel<8>),
}

impl Lanes {
    /// Returns the most lanes for which the processor has instructions.
    #[must_use]
    pub fn detect() -> Self {
        Self(match (sixteen(), eight()) {
            (Some(sixteen), Some(eight)) => Kernels::Sixteen(sixteen, eight),
            (_, Some(eight)) => Kernels::Eight(eight),
            _ => Kernels::Four,
        })
    }

    /// Returns all numbers of lanes for which the processor has instructions, ascending.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let eight = eight().map(Kernels::Eight);
        let best = Self::detect();
        let sixteen = matches!(best.0, Kernels::Sixteen(..)).then_some(best.0);
        let vectors = eight.into_iter().chain(sixteen);
        [Kernels::One, Kernels::Four].into_iter().chain(vectors).map(Self).collect()
    }

    /// Returns the number of lanes.
    #[must_use]
    pub fn count(self) -> usize {
        match self.0 {
            Kernels::One => 1,
            Kernels::Four => 4,
            Kernels::Eight(_) => 8,
            Kernels::Sixteen(..) => 16,
        }
    }

    /// Returns the digest of each message, in the order of the messages.
    #[must_use]
    pub fn digest_many(self, messages: &[&[u8]]) -> Vec<Digest> {
        let mut numbered: Vec<_> =
            messages.iter().enumerate().map(|(number, bytes)| Numbered { number, bytes }).collect();
        // Long messages first, so that the last ones to finish are short.
        numbered.sort_by_key(|message| std::cmp::Reverse(message.bytes.len()));
        let mut digests = vec![[0; 16]; messages.len()];
        self.digest_each(numbered, |message, digest| digests[message.number] = digest);
        digests
    }

    /// Calls `done` with each message and its digest, as soon as it has been hashed.
    pub(crate) fn digest_each<M: AsRef<[u8]>>(
        self,
        messages: Vec<M>,
        mut done: impl FnMut(M, Digest),
    ) {
        match self.0 {
            Kernels::Four => schedule(portable::<4>, messages, done),
            Kernels::Sixteen(sixteen, _) if messages.len() > 8 => schedule(sixteen, messages, done),
            Kernels::Eight(eight) | Kernels::Sixteen(_, eight) => schedule(eight, messages, done),
            Kernels::One => {
                for message in messages {
                    let digest = digest(message.as_ref());
                    done(message, digest);
                }
            }
        }
    }
}

/// A message and its position in the list of messages.
struct Numbered<'a> {
    number: usize,
    bytes: &'a [u8],
}

impl AsRef<[u8]> for Numbered<'_> {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}
