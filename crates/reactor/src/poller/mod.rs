//! Provides the poller of an event loop and its waker: those of `mio` or, with the feature
//! `shuttle`, a model in which the test scheduler decides when a waiting thread continues.

#[cfg(feature = "shuttle")]
mod model;

use std::io;

#[cfg(not(feature = "shuttle"))]
pub(crate) use mio::{Poll, Waker};
#[cfg(feature = "shuttle")]
pub(crate) use model::{Poll, Waker};

/// Creates the waker of a poller, which has only one.
pub(crate) fn waker(poll: &Poll) -> io::Result<Waker> {
    let token = mio::Token(crate::key::waker_token());
    #[cfg(feature = "shuttle")]
    return Waker::new(poll, token);
    #[cfg(not(feature = "shuttle"))]
    Waker::new(poll.registry(), token)
}
