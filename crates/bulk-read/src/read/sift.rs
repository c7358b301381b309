//! For devices that may rotate: what is in memory is read at once, by all threads; what is not is
//! put aside, so that it can be read in the order it lies.

use parking_lot::Mutex;
use rustix::fd::OwnedFd;

use haul_disk::{PAGE_BYTES, Unplaced, align_down, extents, first_extent, resident};

use super::Want;
use super::kind::{ALONE, Decided, Kind, TOGETHER, samples};
use super::measure::measure;
use super::plan::{Item, Place};
use crate::tree::{FileId, Tree};

/// As many files that are not in memory tell what device they are on.
const FILES_TO_MEASURE: usize = 32;

/// What was put aside, and what is known of the device by now.
#[derive(Debug)]
pub(super) struct Sift {
    state: Mutex<State>,
    /// The order of places was asked for, whatever the device is.
    by_place: bool,
}

#[derive(Debug)]
struct State {
    verdict: Option<(Kind, Decided)>,
    /// How many files are put aside before it is measured; nobody does while another one is at it.
    measure_at: usize,
    aside: Vec<(Place, Item)>,
}

impl Sift {
    /// One for a device of a known kind, or an unknown.
    pub(super) fn new(verdict: Option<(Kind, Decided)>, by_place: bool) -> Self {
        let state = State { verdict, measure_at: FILES_TO_MEASURE, aside: Vec::new() };
        Self { state: Mutex::new(state), by_place }
    }

    /// Puts the item aside, unless it is to be read now: in memory, or on a device that was found
    /// not to rotate.
    pub(super) fn takes(&self, tree: &Tree, wants: &[Want], item: Item, fd: &OwnedFd) -> bool {
        let offset = item.of(wants).offset;
        if self.is_solid() || item.bytes == 0 || is_in_memory(&item, offset, fd) {
            return false;
        }
        let place = place(&item, offset, fd);
        let mut state = self.state.lock();
        state.aside.push((place, item));
        if state.verdict.is_none() && state.aside.len() >= state.measure_at {
            state.measure_at = usize::MAX;
            let picked = picked(&state.aside, wants);
            let count = state.aside.len();
            drop(state);
            let verdict = measure(tree, &picked);
            let mut state = self.state.lock();
            state.verdict = verdict;
            // Where these files could not tell, many more of them may.
            state.measure_at = count * 2;
        }
        true
    }

    fn is_solid(&self) -> bool {
        !self.by_place && matches!(self.state.lock().verdict, Some((Kind::Solid, _)))
    }

    /// What was put aside, and the verdict.
    pub(super) fn into_aside(
        self,
        tree: &Tree,
        wants: &[Want],
    ) -> (Vec<(Place, Item)>, (Kind, Decided)) {
        let State { verdict, aside, .. } = self.state.into_inner();
        let verdict = verdict.or_else(|| measure(tree, &picked(&aside, wants)));
        let verdict = verdict.unwrap_or((Kind::Rotating, Decided::Unmeasured));
        (aside, verdict)
    }
}

/// Some places of the files put aside that tell of the device.
fn picked(aside: &[(Place, Item)], wants: &[Want]) -> Vec<(FileId, u64)> {
    let lengths = aside.iter().map(|(_, item)| item.bytes);
    let place = |(index, within): (usize, u64)| {
        let Want { file, offset, .. } = aside[index].1.of(wants);
        (*file, align_down(offset.saturating_add(within), PAGE_BYTES as u64))
    };
    samples(lengths, ALONE + TOGETHER).into_iter().map(place).collect()
}

/// Whether all of it is in the page cache. Of a file of somebody else that is not told. To find out
/// by a read that does not wait would have the kernel read ahead, in this order.
fn is_in_memory(item: &Item, offset: u64, fd: &OwnedFd) -> bool {
    let told = resident(fd, offset, item.bytes);
    told.is_ok_and(|told| told.resident_bytes >= item.bytes)
}

/// Where the first byte wanted is.
fn place(item: &Item, offset: u64, fd: &OwnedFd) -> Place {
    let extent = if offset == 0 {
        first_extent(fd).ok().flatten()
    } else {
        let map = extents(fd, offset, 1, Unplaced::Tell).unwrap_or_default();
        map.extents.first().copied()
    };
    let at = extent.and_then(|extent| {
        let within = offset.saturating_sub(extent.logical);
        extent.place().map(|place| place.saturating_add(within))
    });
    at.map_or(Place::Unknown { inode: item.inode }, |at| Place::At { at })
}
