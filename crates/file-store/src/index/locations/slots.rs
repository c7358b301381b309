//! A page's slots: fields of equal length, by rank, in blocks of equal size.

use super::bits;

/// The number of words in a block. With its allocator header (8 bytes in glibc), a block fills 512
/// bytes. Blocks of one size do not fragment the heap.
const BLOCK_WORDS: usize = 63;

const BLOCK_BITS: usize = 64 * BLOCK_WORDS;

/// The block list grows by this many blocks.
const BLOCKS_STEP: usize = 4;

type Block = [u64; BLOCK_WORDS];

/// A list of slots. The free space is spread over the blocks, so that an insertion moves the slots
/// of few blocks.
#[derive(Debug, Clone)]
pub(super) struct Slots {
    #[expect(clippy::vec_box, reason = "one allocation for all blocks would fragment the heap")]
    blocks: Vec<Box<Block>>,
    /// The number of slots in each block.
    counts: Vec<u16>,
    len: usize,
    slot_bits: u32,
}

impl Slots {
    /// Returns an empty list of slots of `slot_bits` each: 1 to [`bits::FIELD_BITS_MAX`].
    pub(super) const fn new(slot_bits: u32) -> Self {
        Self { blocks: Vec::new(), counts: Vec::new(), len: 0, slot_bits }
    }

    /// Creates a list of `len` slots.
    pub(super) fn from_iter(slot_bits: u32, len: usize, slots: impl Iterator<Item = u64>) -> Self {
        let mut created = Self::with_len(slot_bits, len);
        let mut slots = slots.take(len);
        for (block, count) in created.blocks.iter_mut().zip(&created.counts) {
            for (index, slot) in (0..usize::from(*count)).zip(&mut slots) {
                bits::set(&mut block[..], index * slot_bits as usize, slot_bits, slot);
            }
        }
        created
    }

    /// Decodes a list of `len` slots; `None` if the bits after the last slot are not zero.
    pub(super) fn decode(slot_bits: u32, len: usize, words: &[u64]) -> Option<Self> {
        debug_assert_eq!(words.len(), encoded_words(slot_bits, len));
        let used = slot_bits as usize * len % 64;
        if used > 0 && words.last().is_some_and(|last| last >> used != 0) {
            return None;
        }
        let mut decoded = Self::with_len(slot_bits, len);
        let mut from = 0;
        for (block, count) in decoded.blocks.iter_mut().zip(&decoded.counts) {
            let length = usize::from(*count) * slot_bits as usize;
            bits::copy(words, from, &mut block[..], 0, length);
            from += length;
        }
        Some(decoded)
    }

    /// Returns the words that [`Self::decode`] decodes: the slots, and zeros up to a whole word.
    pub(super) fn encode(&self) -> Vec<u64> {
        let mut words = vec![0; encoded_words(self.slot_bits, self.len)];
        let mut to = 0;
        for (block, count) in self.blocks.iter().zip(&self.counts) {
            let length = usize::from(*count) * self.slot_bits as usize;
            bits::copy(&block[..], 0, &mut words, to, length);
            to += length;
        }
        words
    }

    /// Returns a list of `len` slots that are zero, spread evenly over as few blocks as possible.
    fn with_len(slot_bits: u32, len: usize) -> Self {
        let mut created = Self::new(slot_bits);
        created.allocate(len, len.div_ceil(created.slots_per_block()));
        created
    }

    /// Replaces all blocks by `count` blocks that have `len` slots, all zero.
    fn allocate(&mut self, len: usize, count: usize) {
        self.len = len;
        self.blocks = Vec::with_capacity(count.next_multiple_of(BLOCKS_STEP));
        self.blocks.extend((0..count).map(|_| Box::new([0; BLOCK_WORDS])));
        let slots = |block: usize| {
            let slots = len * (block + 1) / count - len * block / count;
            u16::try_from(slots).unwrap_or(u16::MAX)
        };
        self.counts = Vec::with_capacity(count.next_multiple_of(BLOCKS_STEP));
        self.counts.extend((0..count).map(slots));
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    const fn slots_per_block(&self) -> usize {
        BLOCK_BITS / self.slot_bits as usize
    }

    /// Returns the heap bytes, with an allocator header of `header` bytes for each allocation.
    pub(super) const fn heap_bytes(&self, header: usize) -> usize {
        let lists = match self.blocks.capacity() {
            0 => 0,
            blocks => blocks * size_of::<Box<Block>>() + self.counts.capacity() * 2 + 2 * header,
        };
        lists + self.blocks.len() * (size_of::<Block>() + header)
    }

    /// Returns all slots, by rank.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        let slot_bits = self.slot_bits;
        self.blocks.iter().zip(&self.counts).flat_map(move |(block, count)| {
            (0..usize::from(*count))
                .map(move |index| bits::get(&block[..], index * slot_bits as usize, slot_bits))
        })
    }

    pub(super) fn get(&self, rank: usize) -> u64 {
        let (block, index) = self.find(rank);
        self.get_in(block, index)
    }

    pub(super) fn set(&mut self, rank: usize, slot: u64) {
        let (block, index) = self.find(rank);
        self.set_in(block, index, slot);
    }

    fn get_in(&self, block: usize, index: usize) -> u64 {
        bits::get(&self.blocks[block][..], self.bit(index), self.slot_bits)
    }

    fn set_in(&mut self, block: usize, index: usize, slot: u64) {
        let bit = self.bit(index);
        bits::set(&mut self.blocks[block][..], bit, self.slot_bits, slot);
    }

    /// Inserts a slot into a block. A full block loses its last slot.
    fn insert_in(&mut self, block: usize, index: usize, slot: u64) {
        let bit = self.bit(index);
        bits::open_gap(&mut self.blocks[block], bit, self.slot_bits);
        self.set_in(block, index, slot);
    }

    fn remove_in(&mut self, block: usize, index: usize) {
        let bit = self.bit(index);
        bits::close_gap(&mut self.blocks[block], bit, self.slot_bits);
    }

    const fn bit(&self, index: usize) -> usize {
        index * self.slot_bits as usize
    }

    /// Returns the block that contains a rank, and the index in it. The rank after the last slot is
    /// at the end of the last block.
    fn find(&self, rank: usize) -> (usize, usize) {
        let (mut block, mut index) = (0, rank);
        while block + 1 < self.counts.len() && index >= usize::from(self.counts[block]) {
            index -= usize::from(self.counts[block]);
            block += 1;
        }
        (block, index)
    }

    fn is_full(&self, block: usize) -> bool {
        usize::from(self.counts[block]) == self.slots_per_block()
    }

    /// Inserts a slot before the slot that has this rank.
    pub(super) fn insert(&mut self, rank: usize, slot: u64) {
        debug_assert!(rank <= self.len);
        if self.len == self.blocks.len() * self.slots_per_block() {
            self.spread(self.blocks.len() + 1);
        }
        let (block, index) = self.find(rank);
        let right = (block..self.blocks.len()).find(|block| !self.is_full(*block));
        let left = (0..block).rev().find(|block| !self.is_full(*block));
        match (left, right) {
            (left, Some(right)) if left.is_none_or(|left| right - block <= block - left) => {
                self.insert_rightward(block, index, right, slot);
            }
            (Some(left), _) => self.insert_leftward(block, index, left, slot),
            (None, _) => debug_assert!(false, "a block has space"),
        }
        self.len += 1;
    }

    /// Inserts a slot, and moves the last slot of each block before `free` into the next one.
    fn insert_rightward(&mut self, block: usize, index: usize, free: usize, slot: u64) {
        let last = self.slots_per_block() - 1;
        let (mut carry, mut index) = (slot, index);
        for block in block..free {
            // The slot after the last one is the first slot of the next block.
            if index <= last {
                let moved = self.get_in(block, last);
                self.insert_in(block, index, carry);
                carry = moved;
            }
            index = 0;
        }
        self.insert_in(free, index, carry);
        self.counts[free] += 1;
    }

    /// Inserts a slot, and moves the first slot of each block after `free` into the previous one.
    fn insert_leftward(&mut self, block: usize, index: usize, free: usize, slot: u64) {
        let last = self.slots_per_block() - 1;
        let (mut carry, mut index) = (slot, index);
        for block in (free + 1..=block).rev() {
            // The slot before the first one is the last slot of the previous block.
            if index > 0 {
                let moved = self.get_in(block, 0);
                self.remove_in(block, 0);
                if index <= last {
                    self.insert_in(block, index - 1, carry);
                } else {
                    self.set_in(block, last, carry);
                }
                carry = moved;
            }
            index = last + 1;
        }
        let end = usize::from(self.counts[free]);
        self.set_in(free, end, carry);
        self.counts[free] += 1;
    }

    pub(super) fn remove(&mut self, rank: usize) {
        debug_assert!(rank < self.len);
        let (block, index) = self.find(rank);
        self.remove_in(block, index);
        self.counts[block] -= 1;
        self.len -= 1;
        // Half a block remains free, so that alternating changes do not spread the slots each time.
        let per_block = self.slots_per_block();
        let blocks = match self.len {
            0 => 0,
            len => (len + per_block / 2).div_ceil(per_block),
        };
        if blocks < self.blocks.len() {
            self.spread(blocks);
        }
    }

    /// Spreads the slots evenly over `count` blocks.
    fn spread(&mut self, count: usize) {
        let old = std::mem::replace(self, Self::new(self.slot_bits));
        self.allocate(old.len, count);
        let mut free = self.blocks.iter_mut().zip(&self.counts);
        let mut target = free.next();
        let mut filled = 0;
        for (block, slots) in old.blocks.iter().zip(&old.counts) {
            let mut done = 0;
            while let Some((to, capacity)) = &mut target
                && done < usize::from(*slots)
            {
                let step = (usize::from(*slots) - done).min(usize::from(**capacity) - filled);
                let [from, at, length] = [done, filled, step].map(|n| n * old.slot_bits as usize);
                bits::copy(&block[..], from, &mut to[..], at, length);
                (done, filled) = (done + step, filled + step);
                if filled == usize::from(**capacity) {
                    (target, filled) = (free.next(), 0);
                }
            }
        }
    }
}

/// Returns the number of words that encode `len` slots.
pub(super) const fn encoded_words(slot_bits: u32, len: usize) -> usize {
    (slot_bits as usize * len).div_ceil(64)
}

#[cfg(test)]
mod tests {
    use haul_testing::Random;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn slots_behave_as_a_list(
            slot_bits in 1_u32..=bits::FIELD_BITS_MAX,
            steps in 0_usize..1500,
            seed in any::<u64>(),
            removals in 1_u64..4,
        ) {
            let (mut slots, mut model) = (Slots::new(slot_bits), Vec::new());
            let mut random = Random(seed);
            for step in 0..steps {
                let rank = usize::try_from(random.below(model.len() as u64 + 1)).unwrap();
                let slot = random.number() >> (64 - slot_bits);
                if rank < model.len() && random.below(5) < removals {
                    slots.remove(rank);
                    model.remove(rank);
                } else if rank < model.len() && step % 3 == 0 {
                    slots.set(rank, slot);
                    model[rank] = slot;
                } else {
                    slots.insert(rank, slot);
                    model.insert(rank, slot);
                }
            }
            prop_assert_eq!(slots.iter().collect::<Vec<_>>(), model.clone());
            prop_assert!((0..model.len()).all(|rank| slots.get(rank) == model[rank]));
            let needed = model.len().div_ceil(slots.slots_per_block());
            prop_assert!(slots.blocks.len() <= needed + 1);
            let words = slots.encode();
            let decoded = Slots::decode(slot_bits, model.len(), &words).unwrap();
            prop_assert_eq!(decoded.encode(), words.clone());
            let created = Slots::from_iter(slot_bits, model.len(), model.into_iter());
            prop_assert_eq!(created.encode(), words);
        }

        #[test]
        fn full_blocks_pass_slots_to_the_nearest_free_one(seed in any::<u64>()) {
            let mut random = Random(seed);
            let (mut slots, mut model) = (Slots::new(50), Vec::new());
            for slot in 0..80 * 6 {
                // Most slots are inserted next to each other, at either end or in the middle.
                let rank = match seed % 4 {
                    0 => 0,
                    1 => model.len(),
                    2 => model.len() / 2,
                    _ => usize::try_from(random.below(model.len() as u64 + 1)).unwrap(),
                };
                slots.insert(rank, slot);
                model.insert(rank, slot);
            }
            prop_assert_eq!(slots.iter().collect::<Vec<_>>(), model);
        }
    }
}
