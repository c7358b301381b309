//! Messages of any lengths, distributed over the lanes.

use std::array;

use crate::Digest;
use crate::kernels::{Kernel, portable};
use crate::rounds::{BLOCK_BYTES, Block, INITIAL, States};

/// Bytes of the length of a message, at the end of its last block.
const LENGTH_BYTES: usize = 8;

/// Returns the MD5 digest of a message.
///
/// This needs about 1.26 ns per byte on a processor on which the crate `md-5` needs 1.55 ns: here
/// the compiler adds the state, the word and the constant of a step before the state of the
/// preceding step is known.
#[must_use]
pub fn digest(message: &[u8]) -> Digest {
    let mut states = INITIAL.map(|word| [word]);
    finish_alone(&mut states, &Lane::new(message));
    digest_of(&states, 0)
}

/// Hashes messages in `N` lanes, and calls `done` with each message and its digest. A lane whose
/// message is complete gets the next message.
pub(crate) fn schedule<M: AsRef<[u8]>, const N: usize>(
    kernel: Kernel<N>,
    messages: Vec<M>,
    mut done: impl FnMut(M, Digest),
) {
    let mut waiting = messages.into_iter();
    let mut lanes: [Option<Lane<M>>; N] = array::from_fn(|_| None);
    let mut states = [[0; N]; 4];
    loop {
        for (number, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| lane.is_none()) {
            *lane = waiting.next().map(Lane::new);
            set_column(&mut states, number, INITIAL);
        }
        let mut active = lanes.iter().enumerate().filter_map(|(n, lane)| Some((n, lane.as_ref()?)));
        let Some((number, first)) = active.next() else { return };
        if active.next().is_none() {
            let mut alone = states.map(|words| [words[number]]);
            finish_alone(&mut alone, first);
            if let Some(lane) = lanes[number].take() {
                done(lane.message, digest_of(&alone, 0));
            }
            continue;
        }
        // A lane without a message gets blocks, too; its state is not used.
        let rest: [_; N] =
            array::from_fn(|n| lanes[n].as_ref().map_or_else(|| first.rest(), Lane::rest));
        let run = rest.iter().map(|blocks| blocks.len()).min().unwrap_or(0);
        kernel(&mut states, &rest.map(|blocks| &blocks[..run]));
        for (number, lane) in lanes.iter_mut().enumerate() {
            if let Some(lane) = lane.take_if(|lane| lane.advance(run)) {
                done(lane.message, digest_of(&states, number));
            }
        }
    }
}

/// Adds the remaining blocks of one lane to its state.
fn finish_alone<M: AsRef<[u8]>>(state: &mut States<1>, lane: &Lane<M>) {
    let rest = lane.rest();
    portable(state, &[rest]);
    let is_body = lane.position < lane.body().len();
    if is_body {
        portable(state, &[lane.tail()]);
    }
}

fn set_column<const N: usize>(states: &mut States<N>, lane: usize, column: [u32; 4]) {
    for (words, word) in states.iter_mut().zip(column) {
        words[lane] = word;
    }
}

fn digest_of<const N: usize>(states: &States<N>, lane: usize) -> Digest {
    let mut digest = [0; 16];
    for (bytes, words) in digest.as_chunks_mut().0.iter_mut().zip(states) {
        *bytes = words[lane].to_le_bytes();
    }
    digest
}

/// A message in a lane: its whole blocks (the body), and one or two blocks with its last bytes, the
/// padding and its length (the tail).
struct Lane<M> {
    message: M,
    tail: [Block; 2],
    tail_blocks: usize,
    /// Number of blocks that were added to the state.
    position: usize,
}

impl<M: AsRef<[u8]>> Lane<M> {
    fn new(message: M) -> Self {
        let bytes = message.as_ref();
        let (_, last) = bytes.as_chunks::<BLOCK_BYTES>();
        let mut tail = [0; 2 * BLOCK_BYTES];
        tail[..last.len()].copy_from_slice(last);
        tail[last.len()] = 0x80;
        let tail_blocks = (last.len() + 1 + LENGTH_BYTES).div_ceil(BLOCK_BYTES);
        let end = tail_blocks * BLOCK_BYTES;
        // The length in bits, modulo 2 to the 64th power.
        let bits = (bytes.len() as u64).wrapping_mul(8).to_le_bytes();
        tail[end - LENGTH_BYTES..end].copy_from_slice(&bits);
        let (first, second) = tail.split_at(BLOCK_BYTES);
        let mut blocks = [[0; BLOCK_BYTES]; 2];
        blocks[0].copy_from_slice(first);
        blocks[1].copy_from_slice(second);
        Self { message, tail: blocks, tail_blocks, position: 0 }
    }

    fn body(&self) -> &[Block] {
        self.message.as_ref().as_chunks().0
    }

    fn tail(&self) -> &[Block] {
        &self.tail[..self.tail_blocks]
    }

    /// Returns the blocks that follow in memory: the rest of the body, or else of the tail.
    fn rest(&self) -> &[Block] {
        match self.position.checked_sub(self.body().len()) {
            None => &self.body()[self.position..],
            Some(in_tail) => &self.tail()[in_tail..],
        }
    }

    /// Counts blocks that were added to the state; returns `true` if the message is complete.
    fn advance(&mut self, blocks: usize) -> bool {
        self.position += blocks;
        self.position == self.body().len() + self.tail_blocks
    }
}
