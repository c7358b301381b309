//! Encodes an entry in 64 bits: a fingerprint of 21 bits above a value of 43 bits.
//!
//! The fingerprint consists of the known hash bits (at most 20), a terminating 1 bit, and zeros.

pub(super) const VALUE_BITS: u32 = 43;

/// The number of known hash bits in a new entry's slot.
pub(super) const KNOWN_BITS_MAX: u32 = 20;

const VALUE_MASK: u64 = (1 << VALUE_BITS) - 1;

/// Returns a new entry's slot with the value 0, in a page with the given depth. Lookups compare
/// slots with it.
pub(super) const fn fresh(hash: u64, depth: u32) -> u64 {
    const KNOWN_MASK: u64 = !0 << (64 - KNOWN_BITS_MAX);
    (hash << depth) & KNOWN_MASK | 1 << VALUE_BITS
}

pub(super) const fn value(slot: u64) -> u64 {
    slot & VALUE_MASK
}

/// Returns the number of known hash bits.
pub(super) const fn known_bits(slot: u64) -> u32 {
    63 - (slot & !VALUE_MASK).trailing_zeros()
}

/// Returns `true` if a slot's known bits equal the same bits in a probe that [`fresh`] returned.
pub(super) const fn matches(slot: u64, probe: u64) -> bool {
    let end = (slot & !VALUE_MASK).trailing_zeros();
    (slot ^ probe) >> end >> 1 == 0
}

/// Returns the same entry's slot in a page that is one level deeper, without the first known bit.
/// The slot must have a known bit.
pub(super) const fn descend(slot: u64) -> u64 {
    (slot & !VALUE_MASK) << 1 | value(slot)
}

/// Returns `true` if the slot is valid: its fingerprint is not zero.
pub(super) const fn is_valid(slot: u64) -> bool {
    slot > VALUE_MASK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_slot_knows_the_20_bits_behind_the_depth() {
        let slot = fresh(0x12ab_cde7_0000_0000, 8);
        assert_eq!(slot >> VALUE_BITS, 0xabcde << 1 | 1);
        assert_eq!(known_bits(slot), 20);
        assert_eq!(value(slot | 77), 77);
    }

    #[test]
    fn descending_slot_matches_until_no_bit_is_known() {
        let hash = 0x12ab_cde7_89ab_0000;
        let mut slot = fresh(hash, 8) | VALUE_MASK;
        for level in 1..=20 {
            slot = descend(slot);
            assert_eq!((known_bits(slot), value(slot)), (20 - level, VALUE_MASK));
            assert!(is_valid(slot) && matches(slot, fresh(hash, 8 + level)));
            let last_known = 1 << (64 - 28);
            assert_eq!(matches(slot, fresh(hash ^ last_known, 8 + level)), level == 20);
        }
        assert!(!is_valid(VALUE_MASK));
    }
}
