//! The slots of a pool: groups of keys, each of which belongs to one member. Pure.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// The number of slots, which is also the maximum number of members that can have one.
pub(crate) const SLOTS: usize = 4096;

/// The hash function that assigns keys to slots. Its key is the ID that the pool had first, which is
/// secret, so that no client can choose keys that all belong to one member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotHash(SipHasher13);

impl SlotHash {
    pub(crate) fn new(key: u128) -> Self {
        Self(SipHasher13::new_with_key(&key.to_le_bytes()))
    }

    /// Returns the slot of a key in a bucket.
    pub(crate) fn slot(self, bucket: &str, key: &str) -> usize {
        let mut hasher = self.0;
        hasher.write(bucket.as_bytes());
        // No bucket name contains this byte.
        hasher.write_u8(0);
        hasher.write(key.as_bytes());
        usize::try_from(hasher.finish() % SLOTS as u64).unwrap_or(0)
    }
}

/// The member to which a slot belongs, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) member: u16,
    /// The member from which the slot's keys are being moved.
    pub(crate) from: Option<u16>,
}

/// A member's number and its share of the slots, in any unit, such as bytes of disk space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) member: u16,
    pub(crate) weight: u64,
}

/// Returns the owner of each slot after the slots were spread by weight over `shares`. Changes as
/// few slots as possible: only members with too many slots, or without a share, lose some.
pub(crate) fn spread(owners: &[u16], shares: &[Share]) -> Vec<u16> {
    let mut wanted = quotas(owners.len(), shares);
    let mut spread = owners.to_vec();
    let mut surplus = Vec::new();
    for (slot, owner) in owners.iter().enumerate() {
        match wanted.iter_mut().find(|(member, _)| member == owner) {
            Some((_, left)) if *left > 0 => *left -= 1,
            _ => surplus.push(slot),
        }
    }
    let mut gains = wanted.iter().flat_map(|(member, left)| std::iter::repeat_n(*member, *left));
    for slot in surplus {
        match gains.next() {
            Some(member) => spread[slot] = member,
            None => debug_assert!(shares.is_empty(), "the quotas add up to the slots"),
        }
    }
    spread
}

/// Returns the number of slots for each member. They add up to `slots`, and differ from the exact
/// shares by less than one.
pub(crate) fn quotas(slots: usize, shares: &[Share]) -> Vec<(u16, usize)> {
    let total: u128 = shares.iter().map(|share| u128::from(share.weight.max(1))).sum();
    let (mut quotas, mut given) = (Vec::with_capacity(shares.len()), 0);
    let mut sum = 0;
    // Rounding the running sum keeps all errors below one.
    for share in shares {
        sum += u128::from(share.weight.max(1));
        let end = usize::try_from(sum * slots as u128 / total).unwrap_or(slots);
        quotas.push((share.member, end - given));
        given = end;
    }
    quotas
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn counts(owners: &[u16]) -> HashMap<u16, usize> {
        let mut counts = HashMap::new();
        owners.iter().for_each(|owner| *counts.entry(*owner).or_insert(0) += 1);
        counts
    }

    #[test]
    fn slot_depends_on_pool_bucket_and_key() {
        let slot = |pool, bucket: &str, key: &str| SlotHash::new(pool).slot(bucket, key);
        assert_eq!(slot(7, "photos", "a"), slot(7, "photos", "a"));
        let differs = |of: &dyn Fn(u32) -> usize| (0..64).any(|number| of(number) != of(64));
        assert!(differs(&|number| slot(number.into(), "photos", "a")));
        assert!(differs(&|number| slot(7, &number.to_string(), "a")));
        assert!(differs(&|number| slot(7, "photos", &number.to_string())));
    }

    #[test]
    fn keys_are_spread_evenly() {
        let hash = SlotHash::new(1);
        let mut keys = vec![0; SLOTS];
        (0..SLOTS * 100).for_each(|number| keys[hash.slot("b", &number.to_string())] += 1);
        // 100 keys on average; six standard deviations.
        assert!(keys.iter().all(|keys| (40..=160).contains(keys)));
    }

    #[test]
    fn second_disk_of_twice_the_size_gets_two_thirds() {
        let shares = [Share { member: 0, weight: 1 }, Share { member: 1, weight: 2 }];
        let counts = counts(&spread(&[0; SLOTS], &shares));
        assert_eq!((counts[&0], counts[&1]), (1365, 2731));
    }

    proptest! {
        #[test]
        fn slots_follow_the_weights_and_few_of_them_move(
            owners in prop::collection::vec(0_u16..6, SLOTS),
            weights in prop::collection::vec(1_u64..1000, 1..6),
        ) {
            let shares: Vec<Share> = (0..).zip(&weights)
                .map(|(member, weight)| Share { member, weight: *weight })
                .collect();
            let after = spread(&owners, &shares);
            let (before, counts) = (counts(&owners), counts(&after));
            let total: u64 = weights.iter().sum();
            let mut moved = 0;
            for (member, weight) in (0_u16..).zip(&weights) {
                let exact = SLOTS as f64 * *weight as f64 / total as f64;
                let has = counts.get(&member).copied().unwrap_or(0);
                prop_assert!((has as f64 - exact).abs() <= 1.0, "{has} of {exact}");
                moved += has.saturating_sub(before.get(&member).copied().unwrap_or(0));
            }
            prop_assert_eq!(counts.values().sum::<usize>(), SLOTS);
            let changed = owners.iter().zip(&after).filter(|(one, other)| one != other).count();
            prop_assert_eq!(changed, moved, "a slot moved between members that need none");
        }
    }
}
