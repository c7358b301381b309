//! Where the keys of an open pool are.

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
        Self { hash: SlotHash::new(table.hash_key), routes, donors }
    }

    /// Returns the route of a key.
    pub(crate) fn route(&self, bucket: &str, key: &str) -> Route {
        self.routes[self.hash.slot(bucket, key)]
    }

    /// Returns `true` for each member from which keys are being moved.
    pub(crate) fn donors(&self) -> &[bool] {
        &self.donors
    }
}
