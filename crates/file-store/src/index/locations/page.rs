//! A page: the sorted slots of all entries whose hashes start with the same bits.

use super::slot;

/// The number of slots in a block. With its allocator header (8 bytes in glibc), a block fills 512
/// bytes.
pub(super) const BLOCK_SLOTS: usize = 63;

/// The number of slots at which a page is split: 16 blocks.
pub(super) const PAGE_SLOTS_MAX: usize = 16 * BLOCK_SLOTS;

/// The bytes that the allocator adds to each allocation.
const ALLOCATION_HEADER_BYTES: usize = 8;

/// The block list grows by this many blocks.
const BLOCKS_STEP: usize = 4;

/// The first step of a search away from the expected index, in slots.
const FIRST_STEP: usize = 16;

type Block = [u64; BLOCK_SLOTS];

/// The entries whose hashes start with the same `depth` bits, sorted by slot. Blocks of one size do
/// not fragment the heap; all but the last are full.
#[derive(Debug, Clone)]
pub(super) struct Page {
    #[expect(clippy::vec_box, reason = "one allocation for all blocks would fragment the heap")]
    blocks: Vec<Box<Block>>,
    len: usize,
    depth: u32,
    /// The smallest number of known bits that a slot has.
    known_min: u32,
}

impl Page {
    pub(super) const fn new(depth: u32) -> Self {
        Self { blocks: Vec::new(), len: 0, depth, known_min: slot::KNOWN_BITS_MAX }
    }

    /// Creates a page from slots; `None` if they are not sorted or one is invalid.
    pub(super) fn from_sorted(
        depth: u32,
        slots: impl ExactSizeIterator<Item = u64>,
    ) -> Option<Self> {
        let mut page = Self::new(depth);
        page.extend(slots);
        page.check().then_some(page)
    }

    /// Returns the number of first bits that all hashes in this page share.
    pub(super) const fn depth(&self) -> u32 {
        self.depth
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if every slot has a known bit, which a split needs.
    pub(super) const fn can_split(&self) -> bool {
        self.known_min > 0
    }

    /// Returns the heap bytes of this page, including its `Arc`.
    pub(super) const fn heap_bytes(&self) -> usize {
        const BLOCK_BYTES: usize = size_of::<Block>() + ALLOCATION_HEADER_BYTES;
        const PAGE_BYTES: usize =
            size_of::<Page>() + 2 * size_of::<usize>() + ALLOCATION_HEADER_BYTES;
        let list = match self.blocks.capacity() {
            0 => 0,
            blocks => blocks * size_of::<Box<Block>>() + ALLOCATION_HEADER_BYTES,
        };
        PAGE_BYTES + list + self.blocks.len() * BLOCK_BYTES
    }

    /// Returns all slots in order.
    pub(super) fn slots(&self) -> impl Iterator<Item = &[u64]> {
        let last = self.len - self.len.saturating_sub(1) / BLOCK_SLOTS * BLOCK_SLOTS;
        let count = self.blocks.len();
        let lengths = (1..=count).map(move |n| if n == count { last } else { BLOCK_SLOTS });
        self.blocks.iter().zip(lengths).map(|(block, length)| &block[..length])
    }

    /// Returns the index and the slot of each entry that matches a probe.
    pub(super) fn matching(&self, probe: u64) -> impl Iterator<Item = (usize, u64)> {
        // All known bits of a match lie behind these first bits.
        let behind = u64::MAX >> self.known_min;
        let last = probe | behind;
        (self.lower_bound(probe & !behind)..self.len)
            .map(|index| (index, self.slot(index)))
            .take_while(move |(_, found)| *found <= last)
            .filter(move |(_, found)| slot::matches(*found, probe))
    }

    pub(super) fn insert(&mut self, new: u64) {
        let index = self.lower_bound(new);
        if self.len == self.blocks.len() * BLOCK_SLOTS {
            self.push_block();
        }
        let (mut carry, mut at) = (new, index % BLOCK_SLOTS);
        for block in &mut self.blocks[index / BLOCK_SLOTS..] {
            let last = block[BLOCK_SLOTS - 1];
            block.copy_within(at..BLOCK_SLOTS - 1, at + 1);
            block[at] = carry;
            (carry, at) = (last, 0);
        }
        self.len += 1;
        debug_assert!(index == 0 || self.slot(index - 1) <= new, "slots are sorted");
        debug_assert!(index + 1 == self.len || new <= self.slot(index + 1), "slots are sorted");
        self.known_min = self.known_min.min(slot::known_bits(new));
    }

    pub(super) fn remove(&mut self, index: usize) {
        debug_assert!(index < self.len);
        let removed = self.slot(index);
        let mut at = index % BLOCK_SLOTS;
        for number in index / BLOCK_SLOTS..self.blocks.len() {
            let carry = self.blocks.get(number + 1).map_or(0, |next| next[0]);
            let block = &mut self.blocks[number];
            block.copy_within(at + 1.., at);
            block[BLOCK_SLOTS - 1] = carry;
            at = 0;
        }
        self.len -= 1;
        self.blocks.truncate(self.len.div_ceil(BLOCK_SLOTS));
        let known_min = self.known_min;
        let is_min = |stored: &u64| slot::known_bits(*stored) == known_min;
        if is_min(&removed) && !self.slots().flatten().any(is_min) {
            self.update_known_min();
        }
    }

    /// Splits the page by the first known bit. Returns the page with the entries in which this bit
    /// is 1. All slots must have a known bit.
    pub(super) fn split(&mut self) -> Self {
        debug_assert!(self.can_split(), "an entry without known bits has no half");
        self.depth += 1;
        let cut = self.lower_bound(1 << 63);
        let mut upper = Self::new(self.depth);
        upper.extend((cut..self.len).map(|index| slot::descend(self.slot(index))));
        self.len = cut;
        self.blocks.truncate(cut.div_ceil(BLOCK_SLOTS));
        self.blocks.shrink_to_fit();
        for stored in self.blocks.iter_mut().flat_map(|block| block.iter_mut()) {
            *stored = slot::descend(*stored);
        }
        self.update_known_min();
        upper.update_known_min();
        upper
    }

    fn slot(&self, index: usize) -> u64 {
        self.blocks[index / BLOCK_SLOTS][index % BLOCK_SLOTS]
    }

    /// Returns the index of the first slot that is not less than `target`. The search starts at the
    /// index that `target` would have among uniform hashes.
    fn lower_bound(&self, target: u64) -> usize {
        // Invariant: every slot before `low` is less than the target, and no slot from `high` on
        // is.
        let (mut low, mut high, mut step) = (0, self.len, FIRST_STEP);
        let expected = (u128::from(target) * self.len as u128) >> 64;
        let mut probe = usize::try_from(expected).unwrap_or(0);
        while low <= probe && probe < high {
            if self.slot(probe) < target {
                low = probe + 1;
                probe = probe.saturating_add(step);
            } else {
                high = probe;
                probe = probe.wrapping_sub(step);
            }
            step *= 2;
        }
        while low < high {
            let middle = low.midpoint(high);
            if self.slot(middle) < target {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Appends slots to an empty page.
    fn extend(&mut self, mut slots: impl ExactSizeIterator<Item = u64>) {
        self.len = slots.len();
        self.blocks.reserve_exact(self.len.div_ceil(BLOCK_SLOTS));
        while slots.len() > 0 {
            let mut block = Box::new([0; BLOCK_SLOTS]);
            for (place, stored) in block.iter_mut().zip(slots.by_ref()) {
                *place = stored;
            }
            self.blocks.push(block);
        }
    }

    fn push_block(&mut self) {
        if self.blocks.len() == self.blocks.capacity() {
            let step = if self.blocks.len() > PAGE_SLOTS_MAX / BLOCK_SLOTS {
                self.blocks.len()
            } else {
                BLOCKS_STEP
            };
            self.blocks.reserve_exact(step);
        }
        self.blocks.push(Box::new([0; BLOCK_SLOTS]));
    }

    /// Updates the smallest number of known bits. Returns `false` if a slot is invalid or out of
    /// order.
    fn check(&mut self) -> bool {
        let mut last = 0;
        let sorted = self.slots().all(|slots| {
            let in_order = slots.first().is_some_and(|first| *first >= last) && slots.is_sorted();
            last = slots.last().copied().unwrap_or(last);
            in_order
        });
        let valid = self.len == 0 || slot::is_valid(self.slot(0));
        self.update_known_min();
        sorted && valid
    }

    fn update_known_min(&mut self) {
        // The fingerprint with the most trailing zeros has the fewest known bits.
        let ends = self.slots().flatten().fold(0, |ends, stored| {
            let fingerprint = stored >> slot::VALUE_BITS;
            ends | fingerprint & fingerprint.wrapping_neg()
        });
        self.known_min = ends
            .checked_ilog2()
            .map_or(slot::KNOWN_BITS_MAX, |zeros| slot::KNOWN_BITS_MAX.saturating_sub(zeros));
    }
}
