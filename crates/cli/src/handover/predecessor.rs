//! Waits for the process that this one replaces.

use std::cell::Cell;
use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use crate::report::{chain, print_message};

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Another process that may still use what this process needs. By default it is not waited for.
#[derive(Default)]
pub(crate) struct Predecessor {
    /// The time at which waiting ends.
    until: Option<Instant>,
    is_announced: Cell<bool>,
}

impl Predecessor {
    /// Waits for at most `time` in total.
    pub(crate) fn new(time: Duration) -> Self {
        Self { until: Instant::now().checked_add(time), is_announced: Cell::new(false) }
    }

    /// Repeats `attempt` while it fails with an error for which `is_in_use` returns `true`.
    pub(crate) fn retry<T, E: Error + 'static>(
        &self,
        is_in_use: impl Fn(&E) -> bool,
        mut attempt: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        loop {
            let error = match attempt() {
                Err(error) if is_in_use(&error) => error,
                outcome => return outcome,
            };
            if self.until.is_none_or(|until| until <= Instant::now()) {
                return Err(error);
            }
            if !self.is_announced.replace(true) {
                print_message(&chain("waiting for another process to end", Some(&error)));
            }
            thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn only_the_error_that_ends_is_repeated() {
        let is_in_use = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
        let fails = |kind: io::ErrorKind, times: u32| {
            let mut left = times;
            move || {
                left = left.wrapping_sub(1);
                if left == u32::MAX { Ok(()) } else { Err(io::Error::from(kind)) }
            }
        };
        let predecessor = Predecessor::new(Duration::from_secs(60));
        assert!(predecessor.retry(is_in_use, fails(io::ErrorKind::AddrInUse, 2)).is_ok());
        assert!(predecessor.retry(is_in_use, fails(io::ErrorKind::NotFound, 2)).is_err());
        let none = Predecessor::default();
        assert!(none.retry(is_in_use, fails(io::ErrorKind::AddrInUse, 2)).is_err());
    }
}
