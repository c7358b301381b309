//! The first bits of a page's hashes, as the number of entries in each group.
//!
//! A page has 2,048 groups, selected by the first 11 hash bits behind the page's depth. Like the
//! upper bits of an Elias-Fano list \[Elias74\], the groups are encoded in order: a one for each
//! entry of a group, then a zero. An entry takes one bit and its share of the zeros, not 11 bits.

use std::ops::Range;

use super::bits;

/// The number of hash bits that select an entry's group.
pub(super) const GROUP_BITS: u32 = 11;

pub(super) const GROUPS: usize = 1 << GROUP_BITS;

/// The number of words by which the array grows. With its allocator header (8 bytes in glibc), an
/// array of this length fills 512 bytes.
const STEP_WORDS: usize = 63;

/// The maximum number of entries for which [`STEP_WORDS`] suffice.
pub(super) const LEN_MAX: usize = 64 * STEP_WORDS - GROUPS;

/// The number of words between two samples of the number of ones.
const SAMPLE_WORDS: usize = 8;

const SAMPLES: usize = STEP_WORDS.div_ceil(SAMPLE_WORDS);

/// The group of each entry. An entry's rank is its index in the order of the groups.
#[derive(Debug, Clone)]
pub(super) struct Groups {
    /// Empty if there are no entries. All bits behind the last group's zero are zero.
    words: Box<[u64]>,
    /// The number of ones before every eighth of the first words.
    samples: [u32; SAMPLES],
    len: usize,
}

/// The entries of one group.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) ranks: Range<usize>,
    /// The index of the bit of the first entry, or of the zero if the group is empty.
    bit: usize,
}

impl Groups {
    pub(super) fn new() -> Self {
        Self::with_len(0)
    }

    /// Returns an array for `len` entries, which has only zeros.
    fn with_len(len: usize) -> Self {
        let words = match len {
            0 => 0,
            len => word_count(len).next_multiple_of(STEP_WORDS),
        };
        Self { words: vec![0; words].into_boxed_slice(), samples: [0; SAMPLES], len }
    }

    /// Creates the groups of `len` entries from the group of each, in ascending order.
    pub(super) fn from_sorted(len: usize, groups: impl Iterator<Item = usize>) -> Self {
        let mut created = Self::with_len(len);
        for (rank, group) in groups.enumerate() {
            let bit = group + rank;
            created.words[bit / 64] |= 1 << (bit % 64);
        }
        created.sample();
        created
    }

    /// Decodes the groups of `len` entries; `None` if the words have another number of entries or
    /// groups.
    pub(super) fn decode(len: usize, words: &[u64]) -> Option<Self> {
        debug_assert_eq!(words.len(), encoded_words(len));
        let mut decoded = Self::with_len(len);
        decoded.words[..words.len()].copy_from_slice(words);
        let ones: usize = decoded.words.iter().map(|word| word.count_ones() as usize).sum();
        let end = len + GROUPS;
        let last = decoded.words.iter().rposition(|word| *word != 0);
        let used = last.map_or(0, |at| 64 * at + 64 - decoded.words[at].leading_zeros() as usize);
        // The last bit of the last group is a zero.
        if ones != len || used >= end {
            return None;
        }
        decoded.sample();
        Some(decoded)
    }

    /// Returns the words that [`Self::decode`] decodes.
    pub(super) fn encode(&self) -> &[u64] {
        &self.words[..encoded_words(self.len)]
    }

    pub(super) const fn heap_bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    /// Returns the group of each entry, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        let mut words = self.words.iter();
        let (mut word, mut at) = (0, 0);
        (0..self.len).map(move |rank| {
            while word == 0 {
                word = words.next().copied().unwrap_or(1);
                at += 64;
            }
            let bit = at - 64 + word.trailing_zeros() as usize;
            word &= word - 1;
            bit - rank
        })
    }

    pub(super) fn group(&self, group: usize) -> Group {
        debug_assert!(group < GROUPS);
        if self.words.is_empty() {
            return Group { ranks: 0..0, bit: group };
        }
        let bit = match group {
            0 => 0,
            _ => self.find_zero(group - 1) + 1,
        };
        let first = bit - group;
        Group { ranks: first..first + self.ones_from(bit), bit }
    }

    /// Returns the index of the zero that follows `before` other zeros.
    fn find_zero(&self, before: usize) -> usize {
        let zeros = |sample: usize| 64 * SAMPLE_WORDS * sample - self.samples[sample] as usize;
        let sample = (1..SAMPLES).take_while(|sample| zeros(*sample) <= before).last().unwrap_or(0);
        let (mut left, mut word) = (before - zeros(sample), sample * SAMPLE_WORDS);
        loop {
            let count = self.words[word].count_zeros() as usize;
            if left < count {
                return 64 * word + bits::select_zero(self.words[word], left);
            }
            (left, word) = (left - count, word + 1);
        }
    }

    /// Returns the number of ones from bit `at` to the next zero.
    fn ones_from(&self, at: usize) -> usize {
        let mut end = at;
        loop {
            let rest = 64 - end % 64;
            let ones = (self.words[end / 64] >> (end % 64)).trailing_ones() as usize;
            end += ones;
            if ones < rest {
                return end - at;
            }
        }
    }

    /// Adds an entry to a group.
    pub(super) fn insert(&mut self, group: &Group) {
        if word_count(self.len + 1) > self.words.len() {
            let mut words = std::mem::take(&mut self.words).into_vec();
            words.resize(words.len() + STEP_WORDS, 0);
            self.words = words.into_boxed_slice();
        }
        let (word, shift) = (group.bit / 64, group.bit % 64);
        for sample in word / SAMPLE_WORDS + 1..SAMPLES {
            // The bit that moves over the sample's border was counted after it.
            let moved = u32::from(self.words[SAMPLE_WORDS * sample - 1] >> 63 == 1);
            self.samples[sample] = self.samples[sample] + 1 - moved;
        }
        let kept = self.words[word] & ((1 << shift) - 1);
        let mut carry = self.words[word] >> 63;
        self.words[word] = kept | 1 << shift | (self.words[word] - kept) << 1;
        for word in &mut self.words[word + 1..] {
            (carry, *word) = (*word >> 63, *word << 1 | carry);
        }
        debug_assert_eq!(carry, 0, "the array has space");
        self.len += 1;
    }

    /// Removes an entry from a group that has one.
    pub(super) fn remove(&mut self, group: &Group) {
        debug_assert!(!group.ranks.is_empty());
        let (word, shift) = (group.bit / 64, group.bit % 64);
        for sample in word / SAMPLE_WORDS + 1..SAMPLES {
            let moved = u32::from(self.words[SAMPLE_WORDS * sample] & 1 == 1);
            self.samples[sample] = self.samples[sample] + moved - 1;
        }
        let mut carry = 0;
        for word in self.words[word + 1..].iter_mut().rev() {
            (carry, *word) = (*word << 63, *word >> 1 | carry);
        }
        let kept = self.words[word] & ((1 << shift) - 1);
        let behind = (self.words[word] - kept) >> 1 & !((1 << shift) - 1);
        self.words[word] = kept | behind | carry;
        self.len -= 1;
        if self.len == 0 {
            *self = Self::new();
        }
    }

    fn sample(&mut self) {
        let mut ones = 0;
        let samples = self.samples.iter_mut().zip(self.words.chunks(SAMPLE_WORDS));
        for (sample, words) in samples {
            *sample = ones;
            ones += words.iter().map(|word| word.count_ones()).sum::<u32>();
        }
    }
}

/// Returns the number of words for the groups of `len` entries.
const fn word_count(len: usize) -> usize {
    (GROUPS + len).div_ceil(64)
}

/// Returns the number of words that encode the groups of `len` entries: none without entries.
pub(super) const fn encoded_words(len: usize) -> usize {
    if len == 0 { 0 } else { word_count(len) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(groups: &Groups, model: &[usize]) {
        assert_eq!(groups.iter().collect::<Vec<_>>(), model);
        let mut from = 0;
        for group in 0..GROUPS {
            let count = model[from..].iter().take_while(|entry| **entry == group).count();
            assert_eq!(groups.group(group).ranks, from..from + count, "{group}");
            from += count;
        }
        let words = groups.encode();
        let decoded = Groups::decode(model.len(), words).unwrap();
        assert_eq!(decoded.encode(), words);
        assert_eq!(decoded.samples, groups.samples);
    }

    #[test]
    fn more_entries_than_a_step_are_in_their_groups() {
        let (mut groups, mut model) = (Groups::new(), Vec::new());
        for entry in 0..2 * LEN_MAX {
            let group = if entry % 2 == 0 { 700 } else { entry % GROUPS };
            groups.insert(&groups.group(group));
            model.push(group);
        }
        model.sort_unstable();
        check(&groups, &model);
        for entry in 0..LEN_MAX / 2 {
            groups.remove(&groups.group(700));
            model.remove(model.partition_point(|group| *group < 700));
            assert_eq!(groups.len, 2 * LEN_MAX - entry - 1);
        }
        check(&groups, &model);
    }

    #[test]
    fn words_of_other_numbers_are_invalid() {
        let groups = Groups::from_sorted(3, [0, 5, GROUPS - 1].into_iter());
        let good = groups.encode().to_vec();
        let decode = |len, words: &[u64]| Groups::decode(len, words).is_some();
        assert!(decode(3, &good));
        assert!(!decode(2, &good) && !decode(4, &good));
        let mut bits = good.clone();
        bits[32] <<= 1;
        assert!(!decode(3, &bits), "a group too many");
        assert!(decode(0, &[]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn groups_behave_as_a_sorted_list(
            changes in prop::collection::vec((0_usize..GROUPS, 0..3_u8), 0..600),
            spread in prop::sample::select(vec![1_usize, 7, 300]),
        ) {
            let (mut groups, mut model) = (Groups::new(), Vec::new());
            for (group, kind) in changes {
                let group = group / spread * spread;
                let found = groups.group(group);
                if kind > 0 {
                    groups.insert(&found);
                    model.insert(found.ranks.start, group);
                } else if !found.ranks.is_empty() {
                    groups.remove(&found);
                    model.remove(found.ranks.start);
                }
            }
            check(&groups, &model);
            let created = Groups::from_sorted(model.len(), model.iter().copied());
            prop_assert_eq!(created.encode(), groups.encode());
        }
    }
}
