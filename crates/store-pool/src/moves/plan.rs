//! Decides which slots move. Pure.

use crate::slots::{Share, Slot, spread};
use crate::table::Table;

/// Spreads the slots over the members that stay. `weight` returns the weight of a member by its
/// position, such as the size of its disk. Returns `true` if any slot moves.
///
/// While slots are being moved, nothing changes: a slot has one old member.
pub(crate) fn spread_slots(table: &mut Table, weight: impl Fn(usize) -> u64) -> bool {
    if table.has_moves() {
        return false;
    }
    let staying = table.members.iter().enumerate().filter(|(_, member)| !member.is_leaving);
    let shares: Vec<Share> = staying
        .map(|(position, member)| Share { member: member.number, weight: weight(position) })
        .collect();
    let owners = table.owners();
    let spread = spread(&owners, &shares);
    if is_even(&owners, &spread, table) {
        return false;
    }
    for (slot, member) in table.slots.iter_mut().zip(&spread) {
        if slot.member != *member {
            *slot = Slot { member: *member, from: Some(slot.member) };
        }
    }
    true
}

/// Returns `true` if slots must be spread: a member that leaves has some, or one that stays has none.
pub(crate) fn must_spread(table: &Table) -> bool {
    let owners = table.owners();
    table.members.iter().any(|member| member.is_leaving == owners.contains(&member.number))
}

/// The slots, of a hundred, that a member may have too many before any is moved: disks of the same
/// model differ in size by a little.
const UNEVEN_MAX: usize = 2;

/// Returns `true` if too few slots would move to be worth it.
fn is_even(owners: &[u16], spread: &[u16], table: &Table) -> bool {
    let moving = owners.iter().zip(spread).filter(|(owner, new)| owner != new);
    let must_move = |(owner, new): &(&u16, &u16)| {
        let is_leaving = table.member(**owner).is_none_or(|member| member.is_leaving);
        is_leaving || !owners.contains(new)
    };
    let (mut count, mut is_necessary) = (0, false);
    for moved in moving {
        count += 1;
        is_necessary = is_necessary || must_move(&moved);
    }
    !is_necessary && count * 100 <= owners.len() * UNEVEN_MAX
}

/// Gives the slots of a member that is lost to the members that stay. Its keys are lost. If only
/// members are left that were leaving, they stay.
pub(crate) fn give_up(table: &mut Table, lost: u16, weight: impl Fn(u16) -> u64) {
    table.members.retain(|member| member.number != lost);
    if table.members.iter().all(|member| member.is_leaving) {
        table.members.iter_mut().for_each(|member| member.is_leaving = false);
    }
    let staying = table.members.iter().filter(|member| !member.is_leaving);
    let shares: Vec<Share> = staying
        .map(|member| Share { member: member.number, weight: weight(member.number) })
        .collect();
    let is_lost: Vec<bool> = table.slots.iter().map(|slot| slot.member == lost).collect();
    // Only the lost slots change their member: the keys of the others stay where they are.
    let owners: Vec<u16> = vec![lost; is_lost.iter().filter(|is_lost| **is_lost).count()];
    let mut new = spread(&owners, &shares).into_iter();
    for (slot, is_lost) in table.slots.iter_mut().zip(is_lost) {
        if is_lost {
            // Keys that had not been moved yet are still in the old member, which must not lose
            // them: it gets the slot back.
            let owner = slot.from.or_else(|| new.next()).unwrap_or(slot.member);
            *slot = Slot { member: owner, from: None };
        } else if slot.from == Some(lost) {
            slot.from = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(members: u16) -> Table {
        let mut table = Table::with_one_member(1, 1, String::new());
        for number in 1..members {
            table.add(number, u128::from(number) + 1, String::new());
        }
        table
    }

    fn count(table: &Table, member: u16) -> usize {
        table.slots.iter().filter(|slot| slot.member == member).count()
    }

    #[test]
    fn new_member_gets_its_share_and_the_old_one_keeps_the_rest() {
        let mut two = table(2);
        assert!(spread_slots(&mut two, |_| 1));
        assert_eq!((count(&two, 0), count(&two, 1)), (2048, 2048));
        let is_right = |slot: &Slot| match slot.member {
            0 => slot.from.is_none(),
            _ => slot.from == Some(0),
        };
        assert!(two.slots.iter().all(is_right));
        assert!(!spread_slots(&mut two, |position| position as u64), "a move is under way");
        two.end_moves();
        assert!(!spread_slots(&mut two, |_| 1));
    }

    #[test]
    fn leaving_member_loses_all_slots() {
        let mut three = table(3);
        spread_slots(&mut three, |_| 1);
        three.end_moves();
        three.members[1].is_leaving = true;
        assert!(spread_slots(&mut three, |_| 1));
        assert_eq!((count(&three, 1), count(&three, 0) + count(&three, 2)), (0, 4096));
        let moving = three.slots.iter().filter(|slot| slot.from == Some(1)).count();
        assert!((1365..=1366).contains(&moving), "{moving}");
        assert_eq!(three.slots.iter().filter(|slot| slot.from.is_some()).count(), moving);
    }

    #[test]
    fn small_difference_moves_nothing() {
        let mut two = table(2);
        spread_slots(&mut two, |_| 1000);
        two.end_moves();
        assert!(!spread_slots(&mut two, |position| 1000 + 50 * position as u64));
        assert!(spread_slots(&mut two, |position| 1000 * (1 + position as u64)));
    }

    #[test]
    fn slots_of_a_lost_member_go_to_the_others() {
        let mut three = table(3);
        spread_slots(&mut three, |_| 1);
        three.end_moves();
        let before = three.clone();
        // Some slots of the lost member are on their way to it, and some from it.
        three.slots[before.slots.iter().position(|slot| slot.member == 1).unwrap()].from = Some(2);
        three.slots[before.slots.iter().position(|slot| slot.member == 0).unwrap()].from = Some(1);
        give_up(&mut three, 1, |_| 1);
        assert_eq!(three.members.len(), 2);
        assert!(three.slots.iter().all(|slot| slot.member != 1 && slot.from.is_none()));
        for (old, new) in before.slots.iter().zip(&three.slots) {
            assert!(old.member == new.member || old.member == 1, "another slot moved");
        }
        let difference = count(&three, 0).abs_diff(count(&three, 2));
        assert!(difference <= 2, "{difference}");
    }

    #[test]
    fn members_that_were_leaving_stay_if_no_other_is_left() {
        let mut two = table(2);
        spread_slots(&mut two, |_| 1);
        two.end_moves();
        two.members[0].is_leaving = true;
        assert!(spread_slots(&mut two, |_| 1));
        give_up(&mut two, 1, |_| 1);
        assert!(!two.members[0].is_leaving && !two.has_moves() && !must_spread(&two));
        assert_eq!(count(&two, 0), two.slots.len());
    }

    #[test]
    fn slots_must_be_spread_while_a_member_has_none_or_leaves_with_some() {
        let mut three = table(3);
        assert!(must_spread(&three));
        spread_slots(&mut three, |_| 1);
        assert!(!must_spread(&three));
        three.members[0].is_leaving = true;
        assert!(must_spread(&three) && !spread_slots(&mut three, |_| 1), "a move is under way");
        three.end_moves();
        assert!(spread_slots(&mut three, |_| 1) && !must_spread(&three));
        // A loss gives the slots that were on their way back to the member that leaves.
        give_up(&mut three, 1, |_| 1);
        assert!(must_spread(&three));
    }

    #[test]
    fn last_member_cannot_leave() {
        let mut one = table(1);
        one.members[0].is_leaving = true;
        assert!(!spread_slots(&mut one, |_| 1));
    }
}
