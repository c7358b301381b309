//! Defers the uncached files of a possibly rotational device. All threads read cached files
//! immediately; the deferred files are read later, in physical order.

use parking_lot::Mutex;
use rustix::fd::OwnedFd;

use haul_disk::{
    DelayedAllocation, DeviceKind, KIND_SAMPLES, KindSource, PAGE_BYTES, align_down, extents,
    first_extent, resident, sample_places,
};

use super::device::measure;
use super::plan::{Item, Position};
use super::request::ReadRequest;
use crate::tree::{FileId, Tree};

/// The number of deferred files after which the device is measured.
const FILES_TO_MEASURE: usize = 32;

/// The deferred requests, and the kind of the device if it is known.
#[derive(Debug)]
pub(super) struct Deferral {
    state: Mutex<State>,
    /// `true` if the caller requested physical order for every kind of device.
    by_position: bool,
}

#[derive(Debug)]
struct State {
    verdict: Option<(DeviceKind, KindSource)>,
    /// The number of deferred files at which the next measurement starts; `usize::MAX` while one
    /// runs.
    measure_at: usize,
    deferred: Vec<(Position, Item)>,
}

impl Deferral {
    /// Creates the state. `verdict` is the kind of the device, or `None` if it has to be measured.
    pub(super) fn new(verdict: Option<(DeviceKind, KindSource)>, by_position: bool) -> Self {
        let state = State { verdict, measure_at: FILES_TO_MEASURE, deferred: Vec::new() };
        Self { state: Mutex::new(state), by_position }
    }

    /// Defers the item and returns `true`, unless it is cached or the device was found to be
    /// solid-state.
    pub(super) fn defer(
        &self,
        tree: &Tree,
        requests: &[ReadRequest],
        item: Item,
        fd: &OwnedFd,
    ) -> bool {
        let offset = item.of(requests).offset;
        if self.is_solid() || item.bytes == 0 || is_cached(&item, offset, fd) {
            return false;
        }
        let position = position(&item, offset, fd);
        let mut state = self.state.lock();
        state.deferred.push((position, item));
        if state.verdict.is_none() && state.deferred.len() >= state.measure_at {
            state.measure_at = usize::MAX;
            let places = places_to_measure(&state.deferred, requests);
            let count = state.deferred.len();
            drop(state);
            let verdict = measure(tree, &places);
            let mut state = self.state.lock();
            state.verdict = verdict;
            // If the deferred files were insufficient for a measurement, retry when there are twice
            // as many.
            state.measure_at = count * 2;
        }
        true
    }

    fn is_solid(&self) -> bool {
        !self.by_position && matches!(self.state.lock().verdict, Some((DeviceKind::SolidState, _)))
    }

    /// Returns the deferred items and the verdict. Measures if no verdict exists yet; assumes a
    /// rotational device if the measurement is impossible.
    pub(super) fn into_deferred(
        self,
        tree: &Tree,
        requests: &[ReadRequest],
    ) -> (Vec<(Position, Item)>, (DeviceKind, KindSource)) {
        let State { verdict, deferred, .. } = self.state.into_inner();
        let verdict = verdict.or_else(|| measure(tree, &places_to_measure(&deferred, requests)));
        let verdict = verdict.unwrap_or((DeviceKind::Rotational, KindSource::Unmeasured));
        (deferred, verdict)
    }
}

/// Selects places in the deferred files for a measurement.
fn places_to_measure(
    deferred: &[(Position, Item)],
    requests: &[ReadRequest],
) -> Vec<(FileId, u64)> {
    let lengths = deferred.iter().map(|(_, item)| item.bytes);
    let place = |(index, within): (usize, u64)| {
        let ReadRequest { file, offset, .. } = deferred[index].1.of(requests);
        (*file, align_down(offset.saturating_add(within), PAGE_BYTES as u64))
    };
    sample_places(lengths, KIND_SAMPLES).into_iter().map(place).collect()
}

/// `true` if all requested bytes are in the page cache. If the kernel does not answer, because the
/// process neither owns the file nor may write it, the bytes count as uncached. A read with
/// `RWF_NOWAIT` is no alternative: it would start readahead in the order in which the files are
/// opened now, instead of in physical order.
fn is_cached(item: &Item, offset: u64, fd: &OwnedFd) -> bool {
    let residency = resident(fd, offset, item.bytes);
    residency.is_ok_and(|residency| residency.resident_bytes >= item.bytes)
}

/// Returns the physical position of the first requested byte.
fn position(item: &Item, offset: u64, fd: &OwnedFd) -> Position {
    let extent = if offset == 0 {
        first_extent(fd).ok().flatten()
    } else {
        let map = extents(fd, offset, 1, DelayedAllocation::Report).unwrap_or_default();
        map.extents.first().copied()
    };
    let offset_on_device = extent.and_then(|extent| {
        let within = offset.saturating_sub(extent.logical);
        extent.device_offset().map(|place| place.saturating_add(within))
    });
    offset_on_device
        .map_or(Position::Unknown { inode: item.inode }, |offset| Position::Known { offset })
}
