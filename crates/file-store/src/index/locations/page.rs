//! A page: all entries whose hashes start with the same bits.

use super::bits::{FIELD_BITS_MAX, low_bits};
use super::groups::{self, GROUP_BITS, Groups, LEN_MAX};
use super::slots::{self, Slots};
use super::{HASH_BITS, VALUE_BITS};

/// The bytes that the allocator adds to each allocation.
const ALLOCATION_HEADER_BYTES: usize = 8;

/// The entries whose hashes start with the same `depth` bits, in the order of their known hash bits.
///
/// The known bits behind the first `depth` ones are the group, and the remainder. A slot has the
/// value in its low bits, and the remainder above it.
#[derive(Debug, Clone)]
pub(super) struct Page {
    groups: Groups,
    slots: Slots,
    depth: u32,
    /// The length of each value.
    value_bits: u32,
}

/// An entry that matches a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    rank: usize,
    pub(super) value: u64,
}

impl Page {
    pub(super) fn new(depth: u32) -> Self {
        Self::from_sorted(depth, 1, &[])
    }

    /// Creates a page from its known hash bits behind the first `depth` ones, and its values.
    fn from_sorted(depth: u32, value_bits: u32, entries: &[(u64, u64)]) -> Self {
        debug_assert!(entries.is_sorted_by_key(|(known, _)| known));
        let remainder_bits = remainder_bits(depth);
        let groups = entries.iter().map(|(known, _)| group(*known, remainder_bits));
        let slot = |known: u64, value| (known & low_bits(remainder_bits)) << value_bits | value;
        let slots = entries.iter().map(|(known, value)| slot(*known, *value));
        Self {
            groups: Groups::from_sorted(entries.len(), groups),
            slots: Slots::from_iter(remainder_bits + value_bits, entries.len(), slots),
            depth,
            value_bits,
        }
    }

    /// Returns the number of first bits that all hashes in this page share.
    pub(super) const fn depth(&self) -> u32 {
        self.depth
    }

    pub(super) const fn value_bits(&self) -> u32 {
        self.value_bits
    }

    pub(super) const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns `true` if the page should not be split before it gets an entry with this value.
    pub(super) fn has_space(&self, value: u64) -> bool {
        let value_bits = self.value_bits.max(bit_length(value));
        self.len() < LEN_MAX && remainder_bits(self.depth) + value_bits <= FIELD_BITS_MAX
    }

    /// Returns `true` if the entries have a remainder, of which a split needs a bit.
    pub(super) const fn can_split(&self) -> bool {
        remainder_bits(self.depth) > 0
    }

    /// Returns the heap bytes of this page, including its `Arc`.
    pub(super) const fn heap_bytes(&self) -> usize {
        const PAGE_BYTES: usize =
            size_of::<Page>() + 2 * size_of::<usize>() + ALLOCATION_HEADER_BYTES;
        let groups = match self.groups.heap_bytes() {
            0 => 0,
            bytes => bytes + ALLOCATION_HEADER_BYTES,
        };
        PAGE_BYTES + groups + self.slots.heap_bytes(ALLOCATION_HEADER_BYTES)
    }

    /// Returns each entry that matches a hash.
    pub(super) fn matching(&self, hash: u64) -> impl Iterator<Item = Match> {
        let (group, remainder) = self.group_and_remainder(hash);
        self.groups.group(group).ranks.filter_map(move |rank| {
            let slot = self.slots.get(rank);
            let value = slot & low_bits(self.value_bits);
            (slot >> self.value_bits == remainder).then_some(Match { rank, value })
        })
    }

    /// Inserts an entry. If the value is longer than those in the page, all slots become longer.
    pub(super) fn insert(&mut self, hash: u64, value: u64) {
        self.widen(value);
        let (group, remainder) = self.group_and_remainder(hash);
        let group = self.groups.group(group);
        let slot = remainder << self.value_bits | value;
        let is_less = |rank: &usize| self.slots.get(*rank) < slot;
        let rank = group.ranks.start + group.ranks.clone().take_while(is_less).count();
        self.groups.insert(&group);
        self.slots.insert(rank, slot);
    }

    pub(super) fn remove(&mut self, hash: u64, found: Match) {
        let (group, _) = self.group_and_remainder(hash);
        let group = self.groups.group(group);
        debug_assert!(group.ranks.contains(&found.rank));
        self.groups.remove(&group);
        self.slots.remove(found.rank);
    }

    /// Replaces the value of an entry.
    pub(super) fn replace(&mut self, found: Match, value: u64) {
        self.widen(value);
        let remainder = self.slots.get(found.rank) >> self.value_bits;
        self.slots.set(found.rank, remainder << self.value_bits | value);
    }

    /// Makes all slots long enough for a value.
    fn widen(&mut self, value: u64) {
        let value_bits = bit_length(value);
        if value_bits > self.value_bits {
            *self = Self::from_sorted(self.depth, value_bits, &self.entries());
        }
    }

    /// Splits the page by the next bit of the hashes. Returns the page with the entries in which
    /// this bit is 1. The entries must have a remainder.
    pub(super) fn split(&mut self) -> Self {
        debug_assert!(self.can_split(), "an entry without a remainder has no half");
        let mut entries = self.entries();
        let bit = 1 << (HASH_BITS - self.depth - 1);
        let cut = entries.partition_point(|(known, _)| known & bit == 0);
        entries[cut..].iter_mut().for_each(|(known, _)| *known -= bit);
        let depth = self.depth + 1;
        let upper = Self::from_sorted(depth, self.value_bits, &entries[cut..]);
        *self = Self::from_sorted(depth, self.value_bits, &entries[..cut]);
        upper
    }

    /// Returns the known hash bits and the value of each entry, sorted by the known bits.
    fn entries(&self) -> Vec<(u64, u64)> {
        let (remainder_bits, value_bits) = (remainder_bits(self.depth), self.value_bits);
        let entry = |(group, slot): (usize, u64)| {
            ((group as u64) << remainder_bits | slot >> value_bits, slot & low_bits(value_bits))
        };
        let mut entries: Vec<_> = self.groups.iter().zip(self.slots.iter()).map(entry).collect();
        // Only in a page that another program wrote, the entries of a group may have any order.
        if !entries.is_sorted_by_key(|(known, _)| *known) {
            entries.sort_by_key(|(known, _)| *known);
        }
        entries
    }

    fn group_and_remainder(&self, hash: u64) -> (usize, u64) {
        let known = hash << self.depth >> (64 - HASH_BITS + self.depth);
        let remainder_bits = remainder_bits(self.depth);
        (group(known, remainder_bits), known & low_bits(remainder_bits))
    }

    /// Returns the words that [`Self::decode`] decodes.
    pub(super) fn encode(&self) -> (&[u64], Vec<u64>) {
        (self.groups.encode(), self.slots.encode())
    }

    /// Returns the number of words that encode a page of `len` entries; `None` if the page would be
    /// invalid.
    pub(super) fn encoded_words(depth: u32, value_bits: u32, len: usize) -> Option<usize> {
        let slot_bits = remainder_bits(depth) + value_bits;
        let is_valid = (1..=VALUE_BITS).contains(&value_bits) && slot_bits <= FIELD_BITS_MAX;
        let len = u32::try_from(len).ok().filter(|_| is_valid)? as usize;
        Some(groups::encoded_words(len) + slots::encoded_words(slot_bits, len))
    }

    /// Decodes a page of `len` entries, whose number of words [`Self::encoded_words`] returned.
    /// `None` if the words have another number of entries, or other bits than those of the entries.
    pub(super) fn decode(depth: u32, value_bits: u32, len: usize, words: &[u64]) -> Option<Self> {
        let (groups, slots) = words.split_at_checked(groups::encoded_words(len))?;
        Some(Self {
            groups: Groups::decode(len, groups)?,
            slots: Slots::decode(remainder_bits(depth) + value_bits, len, slots)?,
            depth,
            value_bits,
        })
    }
}

/// Returns the number of known hash bits behind those of the depth and of the group.
const fn remainder_bits(depth: u32) -> u32 {
    HASH_BITS - GROUP_BITS - depth
}

/// Returns the group of an entry's known hash bits.
fn group(known: u64, remainder_bits: u32) -> usize {
    usize::try_from(known >> remainder_bits).unwrap_or(usize::MAX)
}

/// Returns the number of bits that a value needs: at least 1.
const fn bit_length(value: u64) -> u32 {
    64 - (value | 1).leading_zeros()
}
