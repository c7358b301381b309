//! What the threads of a log know together, under one lock.

use std::sync::Arc;
use std::task::Waker;

use haul_disk::AlignedBuf;

use crate::append::batch::{Batch, Tail};
use crate::append::gather::Gather;
use crate::error::{Error, Result};
use crate::lsn::Lsn;

/// How far the next segment has come.
#[derive(Debug)]
pub(crate) enum Next {
    /// It is not there yet.
    Missing,
    /// It can be written to.
    Ready(Tail),
    /// It could not be made, and somebody waits to hear why.
    Failed(Error),
}

/// The state of a log that is open.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) filling: Batch,
    /// The number of the filling batch.
    pub(crate) generation: u64,
    /// How many batches are on the medium.
    pub(super) committed: u64,
    /// Everything before this is on the medium.
    pub(crate) synced: Lsn,
    /// The other buffer, when it is not being committed.
    pub(super) spare: Option<AlignedBuf>,
    pub(crate) is_committing: bool,
    /// The filling batch is to be carried out by the commit thread.
    pub(super) is_wanted: bool,
    /// How many threads wait for a batch of even and odd number.
    pub(super) waiting: [usize; 2],
    pub(super) gather: Gather,
    pub(crate) next: Next,
    /// How many threads wait for the next segment, and how many of them could use the reserve.
    pub(crate) waiting_for_next: usize,
    pub(crate) waiting_with_reserve: usize,
    /// A future waits for it, and perhaps could use the reserve.
    pub(crate) asked: Option<bool>,
    /// The offset in the filling segment at which the preparing thread wants to be woken.
    pub(crate) prepare_at: u32,
    /// A truncation is under way: nothing may be appended.
    pub(crate) is_paused: bool,
    pub(crate) is_closing: bool,
    /// The failed write or sync that stopped the log for good.
    pub(crate) latched: Option<Arc<haul_disk::Error>>,
    /// Futures to wake when a batch of this number is on the medium.
    pub(super) wakers: Vec<(u64, Waker)>,
    /// Futures to wake when there is room again.
    pub(super) room_wakers: Vec<Waker>,
    /// Futures to wake when there is more to read.
    pub(super) more_wakers: Vec<Waker>,
}

impl State {
    /// That of a log that goes on with `filling`, all of which is on the medium so far.
    pub(super) fn new(filling: Batch, next: Option<Tail>, spare: AlignedBuf) -> Self {
        Self {
            synced: filling.end(),
            filling,
            generation: 0,
            committed: 0,
            spare: Some(spare),
            is_committing: false,
            is_wanted: false,
            waiting: [0; 2],
            gather: Gather::default(),
            next: next.map_or(Next::Missing, Next::Ready),
            waiting_for_next: 0,
            waiting_with_reserve: 0,
            asked: None,
            prepare_at: u32::MAX,
            is_paused: false,
            is_closing: false,
            latched: None,
            wakers: Vec::new(),
            room_wakers: Vec::new(),
            more_wakers: Vec::new(),
        }
    }

    pub(crate) fn check_latch(&self) -> Result<()> {
        match &self.latched {
            Some(source) => Err(Error::Latched { source: Arc::clone(source) }),
            None => Ok(()),
        }
    }

    /// The request of somebody who does not stay to wait for the next segment.
    pub(crate) fn ask_for_next(&mut self, with_reserve: bool) {
        self.asked = Some(with_reserve || self.asked == Some(true));
    }

    pub(crate) fn wake_for_room(&mut self, waker: &Waker) {
        wake_once(&mut self.room_wakers, waker);
    }

    pub(crate) fn wake_for_more(&mut self, waker: &Waker) {
        wake_once(&mut self.more_wakers, waker);
    }

    pub(crate) fn is_committed(&self, generation: u64) -> bool {
        self.committed > generation
    }

    pub(crate) fn wake_at(&mut self, generation: u64, waker: &Waker) {
        if !self.wakers.iter().any(|(at, other)| *at == generation && other.will_wake(waker)) {
            self.wakers.push((generation, waker.clone()));
        }
    }
}

/// A future may be polled often before anything happens.
fn wake_once(wakers: &mut Vec<Waker>, waker: &Waker) {
    if !wakers.iter().any(|other| other.will_wake(waker)) {
        wakers.push(waker.clone());
    }
}
