//! For devices that may rotate: what is in memory is read at once, by all threads; what is not is
//! put aside, so that it can be read in the order it lies.

use parking_lot::Mutex;
use rustix::fd::OwnedFd;

use haul_disk::{Unplaced, extents, first_extent, resident};

use super::kind::{Decided, Kind};
use super::measure::measure;
use super::plan::{Item, Place};
use crate::tree::Tree;

/// As many files that are not in memory tell what device they are on.
const FILES_TO_MEASURE: usize = 32;

/// What was put aside, and what is known of the device by now.
#[derive(Debug)]
pub(super) struct Sift {
    state: Mutex<State>,
    /// The order of places was asked for, whatever the device is.
    by_place: bool,
}

#[derive(Debug, Default)]
struct State {
    verdict: Option<(Kind, Decided)>,
    is_measuring: bool,
    aside: Vec<(Place, Item)>,
}

impl Sift {
    /// One for a device of a known kind, or an unknown.
    pub(super) fn new(verdict: Option<(Kind, Decided)>, by_place: bool) -> Self {
        Self { state: Mutex::new(State { verdict, ..State::default() }), by_place }
    }

    /// Puts the item aside, unless it is to be read now: in memory, or on a device that was found
    /// not to rotate.
    pub(super) fn takes(&self, tree: &Tree, item: Item, fd: &OwnedFd) -> bool {
        if self.is_solid() || item.bytes == 0 || is_in_memory(&item, fd) {
            return false;
        }
        let place = place(&item, fd);
        let mut state = self.state.lock();
        state.aside.push((place, item));
        let is_time = state.aside.len() >= FILES_TO_MEASURE;
        if state.verdict.is_none() && is_time && !state.is_measuring {
            state.is_measuring = true;
            let items: Vec<Item> = state.aside.iter().map(|(_, item)| *item).collect();
            drop(state);
            let verdict = measure(tree, &items);
            let mut state = self.state.lock();
            state.verdict = verdict;
            // Where these files could not tell, more of them may.
            state.is_measuring = false;
        }
        true
    }

    fn is_solid(&self) -> bool {
        !self.by_place && matches!(self.state.lock().verdict, Some((Kind::Solid, _)))
    }

    /// What was put aside, and the verdict.
    pub(super) fn into_aside(self, tree: &Tree) -> (Vec<(Place, Item)>, (Kind, Decided)) {
        let State { verdict, aside, .. } = self.state.into_inner();
        let last = || {
            let items: Vec<Item> = aside.iter().map(|(_, item)| *item).collect();
            measure(tree, &items)
        };
        let verdict = verdict.or_else(last).unwrap_or((Kind::Rotating, Decided::Unmeasured));
        (aside, verdict)
    }
}

/// Whether all of it is in the page cache. Of a file of somebody else that is not told.
fn is_in_memory(item: &Item, fd: &OwnedFd) -> bool {
    let told = resident(fd, item.offset, item.bytes);
    told.is_ok_and(|told| told.resident_bytes >= item.bytes)
}

/// Where the first byte wanted is.
fn place(item: &Item, fd: &OwnedFd) -> Place {
    let extent = if item.offset == 0 {
        first_extent(fd).ok().flatten()
    } else {
        let map = extents(fd, item.offset, 1, Unplaced::Tell).unwrap_or_default();
        map.extents.first().copied()
    };
    let at = extent.and_then(|extent| {
        let within = item.offset.saturating_sub(extent.logical);
        extent.place().map(|place| place.saturating_add(within))
    });
    at.map_or(Place::Unknown { inode: item.inode }, |at| Place::At { at })
}
