//! Decides which copies are a pool, and which member gets each slot. Pure.

use std::collections::BTreeMap;

use crate::membership::Membership;
use crate::slots::{SLOTS, Share, Slot, quotas};

/// The copy of a member that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundCopy {
    /// The number of the member.
    pub member: u16,
    /// The time of the copy, in milliseconds since 1970.
    pub written_ms: u64,
    /// The content of its [`MembershipFile`](crate::MembershipFile), if it has one.
    pub membership: Option<Vec<u8>>,
}

/// Returns the members of the pool whose copies were found, as the newest copy lists them. Copies of
/// members that have left are ignored.
///
/// # Errors
/// The reason why the copies are not a pool: a copy is missing or of another pool.
pub(super) fn choose(found: &[FoundCopy]) -> Result<Membership, String> {
    let mut known = BTreeMap::new();
    for copy in found {
        let Some(file) = &copy.membership else { continue };
        let number = copy.member;
        let membership = Membership::decode(file).map_err(|why| {
            format!("the copy of member-{number} does not say to which pool it belongs: {why}")
        })?;
        if membership.own != number {
            let own = membership.own;
            return Err(format!("the copy at member-{number} is that of member-{own}"));
        }
        known.insert(number, (membership, copy.written_ms));
    }
    let newest = known.values().max_by_key(|(known, written)| (known.generation, *written));
    let Some((newest, _)) = newest else {
        return Err(match found.is_empty() {
            true => "there is no copy of a member".to_owned(),
            false => "no copy says which members the pool has: restore each as a store of its own"
                .to_owned(),
        });
    };
    let lacks = |number: &&u16| !known.contains_key(number);
    let missing = newest.members.iter().filter(lacks).map(name).collect::<Vec<_>>();
    if !missing.is_empty() {
        let (missing, all) = (missing.join(", "), names(&newest.members));
        return Err(format!(
            "there is no copy of {missing}, whose keys would be lost: the pool has {all}; bring the \
             copy back, or restore each of the others as a store of its own"
        ));
    }
    let is_foreign = |number: &&u16| known[*number].0.hash_key != newest.hash_key;
    if let Some(number) = newest.members.iter().find(is_foreign) {
        return Err(format!("the copy of member-{number} is of another pool"));
    }
    Ok(newest.clone())
}

fn name(number: &u16) -> String {
    format!("member-{number}")
}

/// Returns the names of members, for messages.
pub(super) fn names(numbers: &[u16]) -> String {
    numbers.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The slots of which a member has keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holding {
    pub(super) member: u16,
    /// The time of its copy.
    pub(super) written_ms: u64,
    /// `true` for each slot of which it has a key.
    pub(super) slots: Vec<bool>,
}

/// Two members that have keys of a slot: it was being moved, or the copy of its old member is older
/// than the move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SharedSlot {
    /// The indexes of the members.
    pub(super) members: [usize; 2],
    /// `true` for a member that has a newer state of a key than the other one.
    pub(super) has_newer: [bool; 2],
}

/// Returns the slots of which two members have keys.
///
/// # Errors
/// Three members have keys of a slot.
pub(super) fn shared_slots(holdings: &[Holding]) -> Result<BTreeMap<usize, SharedSlot>, String> {
    let mut shared = BTreeMap::new();
    for slot in 0..SLOTS {
        let holders = holdings.iter().enumerate().filter(|(_, holding)| holding.slots[slot]);
        let holders: Vec<usize> = holders.map(|(index, _)| index).collect();
        match *holders {
            [] | [_] => {}
            [one, other] => {
                let pair = SharedSlot { members: [one, other], has_newer: [false; 2] };
                shared.insert(slot, pair);
            }
            _ => {
                let numbers: Vec<u16> =
                    holders.iter().map(|index| holdings[*index].member).collect();
                return Err(too_far_apart(&numbers));
            }
        }
    }
    Ok(shared)
}

fn too_far_apart(numbers: &[u16]) -> String {
    format!(
        "the times of the copies are too far apart: {} have keys of the same slot; restore an \
         earlier state, or each copy as a store of its own",
        names(numbers)
    )
}

/// Returns the table's slots. A slot belongs to the member that has its keys. One whose keys are in
/// two members is moving to the member with the newer states: what is written to a moving slot is
/// written there. If neither has a newer state, the one whose copy is newer gets it. Slots without
/// keys are given out so that the members have their shares.
///
/// # Errors
/// Each of two members has newer states of a slot's keys than the other.
pub(super) fn assign(
    holdings: &[Holding],
    shared: &BTreeMap<usize, SharedSlot>,
    shares: &[Share],
) -> Result<Vec<Slot>, String> {
    let mut slots = vec![None; SLOTS];
    for (number, slot) in slots.iter_mut().enumerate() {
        *slot = match shared.get(&number) {
            Some(pair) => Some(direction(pair, holdings)?),
            None => holdings
                .iter()
                .find(|holding| holding.slots[number])
                .map(|holding| Slot { member: holding.member, from: None }),
        };
    }
    let mut lacking: Vec<(u16, usize)> = quotas(SLOTS, shares);
    for slot in slots.iter().flatten() {
        if let Some((_, lacks)) = lacking.iter_mut().find(|(member, _)| *member == slot.member) {
            *lacks = lacks.saturating_sub(1);
        }
    }
    // Members that have too many slots keep them, so that the others together lack at least as many
    // slots as there are without keys.
    let assigned = slots.into_iter().map(|slot| {
        slot.or_else(|| {
            let (member, lacks) = lacking.iter_mut().max_by_key(|(_, lacks)| *lacks)?;
            *lacks = lacks.saturating_sub(1);
            Some(Slot { member: *member, from: None })
        })
    });
    assigned.collect::<Option<Vec<Slot>>>().ok_or_else(|| "the pool has no members".to_owned())
}

fn direction(pair: &SharedSlot, holdings: &[Holding]) -> Result<Slot, String> {
    let [one, other] = pair.members.map(|index| &holdings[index]);
    let [to, from] = match pair.has_newer {
        [true, true] => return Err(too_far_apart(&[one.member, other.member])),
        [true, false] => [one, other],
        [false, true] => [other, one],
        [false, false] if one.written_ms > other.written_ms => [one, other],
        [false, false] => [other, one],
    };
    Ok(Slot { member: to.member, from: Some(from.member) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(member: u16, generation: u64, members: &[u16]) -> FoundCopy {
        let next = members.last().unwrap() + 1;
        let members = members.to_vec();
        let membership = Membership { hash_key: 7, generation, own: member, next, members };
        let content = membership.to_file().content;
        FoundCopy { member, written_ms: 1, membership: Some(content) }
    }

    #[test]
    fn newest_copy_says_who_is_a_member() {
        // Member 0 has left, and member 3 has joined.
        let found = [
            copy(0, 1, &[0, 1, 2]),
            copy(1, 3, &[1, 2, 3]),
            copy(2, 1, &[0, 1, 2]),
            copy(3, 3, &[1, 2, 3]),
        ];
        assert_eq!(choose(&found).unwrap().members, [1, 2, 3]);
        let why = choose(&found[..3]).unwrap_err();
        assert!(why.contains("no copy of member-3, whose keys would be lost"), "{why}");
    }

    #[test]
    fn copies_that_are_no_pool_are_refused() {
        let whole = [copy(0, 1, &[0, 1]), copy(1, 1, &[0, 1])];
        let refused = |found: &[FoundCopy], why: &str| {
            let found = choose(found).unwrap_err();
            assert!(found.contains(why), "{found}");
        };
        refused(&[], "there is no copy");
        let mut unknown = whole.clone();
        unknown.iter_mut().for_each(|copy| copy.membership = None);
        refused(&unknown, "no copy says which members");
        unknown[0] = whole[0].clone();
        refused(&unknown, "no copy of member-1");
        let mut elsewhere = whole.clone();
        elsewhere[1].member = 2;
        refused(&elsewhere, "the copy at member-2 is that of member-1");
        let mut damaged = whole.clone();
        damaged[1].membership = Some(b"x".to_vec());
        refused(&damaged, "the copy of member-1 does not say");
        let other = Membership { hash_key: 8, ..choose(&whole).unwrap() };
        let mut foreign = whole;
        foreign[0].membership = Some(Membership { own: 0, ..other }.to_file().content);
        assert!(choose(&foreign).is_err());
    }

    fn holding(member: u16, written_ms: u64, has: impl Fn(usize) -> bool) -> Holding {
        Holding { member, written_ms, slots: (0..SLOTS).map(has).collect() }
    }

    fn shares(members: &[u16]) -> Vec<Share> {
        members.iter().map(|member| Share { member: *member, weight: 1 }).collect()
    }

    fn count(slots: &[Slot], member: u16) -> usize {
        slots.iter().filter(|slot| slot.member == member).count()
    }

    #[test]
    fn slots_with_keys_stay_and_the_others_make_the_shares_even() {
        let holdings = [holding(1, 1, |slot| slot < 3000), holding(4, 1, |slot| slot >= 4000)];
        let shared = shared_slots(&holdings).unwrap();
        assert!(shared.is_empty());
        let slots = assign(&holdings, &shared, &shares(&[1, 4, 5])).unwrap();
        assert!(slots[..3000].iter().all(|slot| slot.member == 1));
        assert!(slots[4000..].iter().all(|slot| slot.member == 4));
        assert!(slots.iter().all(|slot| slot.from.is_none()));
        assert_eq!(count(&slots, 1), 3000);
        // The exact shares are rounded.
        assert!(count(&slots, 4).abs_diff(count(&slots, 5)) <= 2);
    }

    #[test]
    fn no_keys_at_all_give_even_shares() {
        let holdings = [0, 1, 2].map(|member| holding(member, 1, |_| false));
        let slots = assign(&holdings, &BTreeMap::new(), &shares(&[0, 1, 2])).unwrap();
        assert!((0..3).all(|member| (1365..=1366).contains(&count(&slots, member))));
    }

    #[test]
    fn shared_slot_moves_to_the_member_with_newer_states() {
        let holdings = [holding(0, 9, |slot| slot < 10), holding(1, 5, |slot| slot < 10)];
        let mut shared = shared_slots(&holdings).unwrap();
        assert_eq!(shared.len(), 10);
        shared.get_mut(&1).unwrap().has_newer = [false, true];
        shared.get_mut(&2).unwrap().has_newer = [true, false];
        let slots = assign(&holdings, &shared, &shares(&[0, 1])).unwrap();
        let moving = |member, from| Slot { member, from: Some(from) };
        // Without newer states, the member with the newer copy gets it.
        assert_eq!(slots[..3], [moving(0, 1), moving(1, 0), moving(0, 1)]);
        assert!(slots[10..].iter().all(|slot| slot.from.is_none()));
        shared.get_mut(&3).unwrap().has_newer = [true, true];
        let why = assign(&holdings, &shared, &shares(&[0, 1])).unwrap_err();
        assert!(why.contains("member-0, member-1 have keys of the same slot"), "{why}");
    }

    #[test]
    fn slot_with_keys_in_three_members_is_an_error() {
        let holdings = [0, 1, 2].map(|member| holding(member, 1, |slot| slot == 77));
        let why = shared_slots(&holdings).unwrap_err();
        assert!(why.contains("member-0, member-1, member-2 have keys of the same slot"), "{why}");
    }
}
