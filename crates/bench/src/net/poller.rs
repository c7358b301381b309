//! Waits with epoll until any of many sockets is ready; 30 seconds without an event are an error.

use std::io::{Error as IoError, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use haul_measure::{Error, Result, Watcher};

/// The maximum number of events that one wait returns.
const EVENTS_MAX: usize = 256;
/// The time without events after which the server is considered failed.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(30);
/// The time after which a wait without events returns, so that the watcher can cancel.
pub(crate) const WAIT_MAX: Duration = Duration::from_millis(100);

/// The kinds of readiness to wait for: readable, and writable. The kernel also reports the
/// failure of a socket, whichever of the two is selected.
pub(crate) const READ: EventFlags = EventFlags::IN;
pub(crate) const WRITE: EventFlags = EventFlags::OUT;
/// No readiness to wait for: the socket reports at most one more event, its failure or close.
pub(crate) const NOTHING: EventFlags = EventFlags::ONESHOT;

/// An epoll instance. Closing a socket removes it from the instance.
pub(crate) struct Poller<'a> {
    epoll: OwnedFd,
    events: Vec<Event>,
    watcher: &'a dyn Watcher,
    last_event: Instant,
}

impl<'a> Poller<'a> {
    pub(crate) fn new(watcher: &'a dyn Watcher) -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(Error::other("watch sockets"))?;
        let events = Vec::with_capacity(EVENTS_MAX);
        Ok(Self { epoll, events, watcher, last_event: Instant::now() })
    }

    /// Adds a socket; [`Self::wait`] reports its readiness as `token`.
    pub(crate) fn add(&self, socket: impl AsFd, token: u64, ready: EventFlags) -> Result<()> {
        epoll::add(&self.epoll, socket, EventData::new_u64(token), ready)
            .map_err(Error::other("watch a socket"))
    }

    /// Changes the readiness to wait for on a socket that was added.
    pub(crate) fn modify(&self, socket: impl AsFd, token: u64, ready: EventFlags) -> Result<()> {
        epoll::modify(&self.epoll, socket, EventData::new_u64(token), ready)
            .map_err(Error::other("watch a socket"))
    }

    /// Waits until a socket is ready or `time_max` is over, and returns the tokens of all ready
    /// sockets.
    ///
    /// # Errors
    /// Returns [`Error::Cancelled`] once the watcher cancels, and an error if no socket was ready
    /// for 30 seconds.
    pub(crate) fn wait(&mut self, time_max: Duration) -> Result<Vec<u64>> {
        let time_max = Timespec::try_from(time_max)
            .map_err(|why| Error::other("wait for a socket")(IoError::other(why)))?;
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&time_max)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::other("wait for a socket")(errno)),
        }
        self.watcher.check()?;
        if !self.events.is_empty() {
            self.last_event = Instant::now();
        } else if self.last_event.elapsed() > SILENCE_MAX {
            return Err(silence());
        }
        Ok(self.events.iter().map(|event| event.data.u64()).collect())
    }
}

/// Returns the error for a server that sent nothing for [`SILENCE_MAX`].
pub(crate) fn silence() -> Error {
    let why = format!("the server sent nothing for {SILENCE_MAX:?}");
    Error::other("receive a response")(IoError::new(ErrorKind::TimedOut, why))
}
