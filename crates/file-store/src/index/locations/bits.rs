//! Reads, writes and moves fields of up to 63 bits in arrays of words. The lowest bits come first.

/// The most bits that a field can have.
pub(super) const FIELD_BITS_MAX: u32 = 63;

/// Returns a word whose low `count` bits are set; `count` is less than 64.
pub(super) const fn low_bits(count: u32) -> u64 {
    (1 << count) - 1
}

/// Returns the field of `count` bits that begins at bit `at`.
pub(super) fn get(words: &[u64], at: usize, count: u32) -> u64 {
    let (word, shift) = (at / 64, at % 64);
    let mut field = words[word] >> shift;
    if shift + count as usize > 64 {
        field |= words[word + 1] << (64 - shift);
    }
    field & low_bits(count)
}

/// Overwrites the field of `count` bits that begins at bit `at`.
pub(super) fn set(words: &mut [u64], at: usize, count: u32, field: u64) {
    debug_assert!(field <= low_bits(count), "a field has its length");
    let (word, shift) = (at / 64, at % 64);
    words[word] = words[word] & !(low_bits(count) << shift) | field << shift;
    if shift + count as usize > 64 {
        let done = 64 - shift;
        words[word + 1] = words[word + 1] & !(low_bits(count) >> done) | field >> done;
    }
}

/// Copies `count` bits from bit `from` of `source` to bit `to` of `target`.
pub(super) fn copy(source: &[u64], from: usize, target: &mut [u64], to: usize, count: usize) {
    let mut done = 0;
    while done < count {
        let (word, shift) = ((to + done) / 64, (to + done) % 64);
        let step = (64 - shift).min(count - done);
        let at = from + done;
        let mut bits = source[at / 64] >> (at % 64);
        if at % 64 + step > 64 {
            bits |= source[at / 64 + 1] << (64 - at % 64);
        }
        let mask = u64::MAX >> (64 - step);
        target[word] = target[word] & !(mask << shift) | (bits & mask) << shift;
        done += step;
    }
}

/// Moves all bits from bit `at` on up by `count`, less than 64. The last bits are lost.
pub(super) fn open_gap<const WORDS: usize>(words: &mut [u64; WORDS], at: usize, count: u32) {
    let (first, kept) = (at / 64, low_bits_of(at));
    // From a copy, the compiler moves several words at once.
    let old = *words;
    for word in first + 1..WORDS {
        words[word] = old[word] << count | old[word - 1] >> (64 - count);
    }
    if let Some(second) = words.get_mut(first + 1) {
        *second = old[first + 1] << count | (old[first] & !kept) >> (64 - count);
    }
    words[first] = old[first] & kept | (old[first] & !kept) << count;
}

/// Removes the `count` bits, less than 64, that begin at bit `at`: the bits behind them move down.
pub(super) fn close_gap<const WORDS: usize>(words: &mut [u64; WORDS], at: usize, count: u32) {
    let (first, kept) = (at / 64, low_bits_of(at));
    let old = *words;
    for word in first..WORDS - 1 {
        words[word] = old[word] >> count | old[word + 1] << (64 - count);
    }
    words[WORDS - 1] = old[WORDS - 1] >> count;
    words[first] = old[first] & kept | words[first] & !kept;
}

/// Returns the mask of the bits before bit `at` in its word.
const fn low_bits_of(at: usize) -> u64 {
    (1 << (at % 64)) - 1
}

/// Returns the index of the zero bit that follows `before` other zero bits. The word must have it.
pub(super) fn select_zero(word: u64, mut before: usize) -> usize {
    let (mut zeros, mut index) = (!word, 0);
    for half in [32, 16, 8] {
        let count = (zeros & low_bits(half)).count_ones() as usize;
        if before >= count {
            before -= count;
            zeros >>= half;
            index += half;
        }
    }
    for _ in 0..before {
        zeros &= zeros - 1;
    }
    (index + zeros.trailing_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bits_of(words: &[u64]) -> Vec<bool> {
        (0..words.len() * 64).map(|bit| words[bit / 64] >> (bit % 64) & 1 == 1).collect()
    }

    proptest! {
        #[test]
        fn fields_behave_as_ranges_of_a_list_of_bits(
            words in any::<[u64; 4]>(),
            other in any::<[u64; 4]>(),
            at in 0_usize..256,
            to in 0_usize..256,
            count in 1_u32..64,
        ) {
            let (model, length) = (bits_of(&words), count as usize);
            if at + length <= 256 {
                let field = get(&words, at, count);
                prop_assert_eq!(&bits_of(&[field])[..length], &model[at..at + length]);
                let mut changed = other;
                set(&mut changed, at, count, field);
                let mut expected = bits_of(&other);
                expected[at..at + length].copy_from_slice(&model[at..at + length]);
                prop_assert_eq!(bits_of(&changed), expected);
                let mut closed = words;
                close_gap(&mut closed, at, count);
                prop_assert_eq!(&bits_of(&closed)[..at], &model[..at]);
                prop_assert_eq!(&bits_of(&closed)[at..256 - length], &model[at + length..]);
                let mut opened = words;
                open_gap(&mut opened, at, count);
                prop_assert_eq!(&bits_of(&opened)[..at], &model[..at]);
                prop_assert_eq!(&bits_of(&opened)[at + length..], &model[at..256 - length]);
            }
            let length = (256 - at.max(to)).min(3 * length);
            let (mut copied, mut expected) = (other, bits_of(&other));
            copy(&words, at, &mut copied, to, length);
            expected[to..to + length].copy_from_slice(&model[at..at + length]);
            prop_assert_eq!(bits_of(&copied), expected);
        }

        #[test]
        fn selected_zero_follows_as_many_zeros(word in any::<u64>()) {
            let zeros = (0..64).filter(|bit| word >> bit & 1 == 0);
            for (before, bit) in (0..).zip(zeros) {
                prop_assert_eq!(select_zero(word, before), bit);
            }
        }
    }
}
