//! Who is ready, of many sockets.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// How many are told of at a time.
const EVENTS_MAX: usize = 256;

/// What is waited for on a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    Read,
    Write,
    /// It is over; only failures would be told.
    Nothing,
}

/// Watches sockets for as long as they are open.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
}

impl Poller {
    pub(crate) fn new() -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(Error::other("watch sockets"))?;
        Ok(Self { epoll, events: Vec::with_capacity(EVENTS_MAX) })
    }

    /// From now on `token` is told when the socket is as wanted.
    pub(crate) fn add(&self, socket: impl AsFd, token: u64, want: Want) -> Result<()> {
        epoll::add(&self.epoll, socket, EventData::new_u64(token), flags(want))
            .map_err(Error::other("watch a socket"))
    }

    pub(crate) fn change(&self, socket: impl AsFd, token: u64, want: Want) -> Result<()> {
        epoll::modify(&self.epoll, socket, EventData::new_u64(token), flags(want))
            .map_err(Error::other("watch a socket"))
    }

    /// Waits until somebody is ready, at most so long, and adds their tokens to `ready`.
    pub(crate) fn wait(&mut self, time_max: Duration, ready: &mut Vec<u64>) -> Result<()> {
        let time_max = Timespec::try_from(time_max)
            .map_err(|why| Error::other("wait for a socket")(io::Error::other(why)))?;
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&time_max)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::other("wait for a socket")(errno)),
        }
        ready.extend(self.events.iter().map(|event| event.data.u64()));
        Ok(())
    }
}

fn flags(want: Want) -> EventFlags {
    match want {
        Want::Read => EventFlags::IN,
        Want::Write => EventFlags::OUT,
        // Once, for what cannot be switched off.
        Want::Nothing => EventFlags::ONESHOT,
    }
}
