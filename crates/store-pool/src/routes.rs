//! Where the keys of an open pool are.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::slots::SlotHash;
use crate::table::Table;

/// The position of a slot's member, and of the member from which its keys are being moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) to: usize,
    pub(crate) from: Option<usize>,
}

/// The route of each slot.
#[derive(Debug)]
pub(crate) struct Routes {
    hash: SlotHash,
    routes: Box<[Route]>,
    /// For each member, `true` if keys are being moved from it.
    donors: Box<[bool]>,
    /// `true` once no member has keys to move. A call that looks at an old member nevertheless finds
    /// nothing there.
    are_moves_over: AtomicBool,
}

impl Routes {
    /// Returns the routes of a table. Positions are those in the table's list of members.
    pub(crate) fn new(table: &Table) -> Self {
        let position = |number: u16| {
            let found = table.members.iter().position(|member| member.number == number);
            found.expect("a table is checked when it is read: each slot has a member")
        };
        let route = |slot: &crate::slots::Slot| Route {
            to: position(slot.member),
            from: slot.from.map(position),
        };
        let routes: Box<[Route]> = table.slots.iter().map(route).collect();
        let mut donors: Box<[bool]> = table.members.iter().map(|_| false).collect();
        routes.iter().filter_map(|route| route.from).for_each(|from| donors[from] = true);
        let are_moves_over = AtomicBool::new(false);
        Self { hash: SlotHash::new(table.hash_key), routes, donors, are_moves_over }
    }

    /// Returns the route of a key.
    pub(crate) fn route(&self, bucket: &str, key: &str) -> Route {
        let route = self.routes[self.hash.slot(bucket, key)];
        match self.are_moves_over.load(Relaxed) {
            true => Route { from: None, ..route },
            false => route,
        }
    }

    /// Returns for each member whether keys are being moved from it.
    pub(crate) fn donors(&self) -> Vec<bool> {
        let are_moves_over = self.are_moves_over.load(Relaxed);
        self.donors.iter().map(|is_donor| *is_donor && !are_moves_over).collect()
    }

    /// Ends all moves, without waiting for the calls that use these routes.
    pub(crate) fn end_moves(&self) {
        self.are_moves_over.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moves::plan::spread_slots;

    #[test]
    fn moves_end_while_the_routes_are_used() {
        let mut table = Table::with_one_member(1, 1, String::new());
        table.add(1, 2, String::new());
        assert!(spread_slots(&mut table, |_| 1));
        let routes = Routes::new(&table);
        let keys: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let routed = || keys.iter().map(|key| routes.route("b", key)).collect::<Vec<_>>();
        let before = routed();
        assert!(before.contains(&Route { to: 1, from: Some(0) }));
        assert_eq!(routes.donors(), [true, false]);
        routes.end_moves();
        let without = |route: &Route| Route { from: None, ..*route };
        assert_eq!(routed(), before.iter().map(without).collect::<Vec<_>>());
        assert_eq!(routes.donors(), [false, false]);
    }
}
