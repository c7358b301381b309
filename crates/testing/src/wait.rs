//! Waits for a condition or a result, with a deadline.

use std::os::fd::AsFd;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The timeout of a step of a test. Even on a busy machine, only a test that hangs exceeds it.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The number of times that [`eventually`] evaluates its condition without a pause, for conditions
/// that are met at once.
const POLLS_WITHOUT_PAUSE: u32 = 100;
/// The pause between later evaluations: a test that waits leaves the processors to what it waits for.
const PAUSE: Duration = Duration::from_millis(1);

/// Waits until `condition` returns `true`. `what` names the condition in the message of a failure.
///
/// # Panics
/// Panics if the condition is not true within a minute.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let (started, mut polls) = (Instant::now(), 0);
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "not within a minute: {what}");
        polls += 1;
        match polls < POLLS_WITHOUT_PAUSE {
            true => thread::yield_now(),
            false => thread::sleep(PAUSE),
        }
    }
}

/// Waits until no more bytes arrive at a socket, and some have: the sender waits until they are read.
///
/// # Panics
/// Panics if bytes still arrive after a minute.
pub fn until_full(socket: impl AsFd) {
    let (mut received, mut polls) = (0, 0);
    eventually("the sender has stopped", || {
        let now = rustix::io::ioctl_fionread(&socket).unwrap();
        polls = if now == received && now > 0 { polls + 1 } else { 0 };
        received = now;
        polls > 2 * POLLS_WITHOUT_PAUSE
    });
}

/// Runs `body` in another thread and returns its result. `what` names the work in the message of a
/// failure.
///
/// # Panics
/// Panics if `body` panics or does not return within a minute.
#[track_caller]
#[expect(clippy::panic, reason = "it fails the test")]
pub fn within_a_minute<T: Send + 'static>(
    what: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (done, wait) = channel();
    let worker = thread::spawn(move || done.send(body()));
    match wait.recv_timeout(PATIENCE) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("not within a minute: {what}"),
        Err(RecvTimeoutError::Disconnected) => match worker.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(_) => unreachable!("the thread sends before it ends"),
        },
    }
}
