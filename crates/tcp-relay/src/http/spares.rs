//! Connections to targets that no client uses: the next client's request may go over one of them.
//!
//! Nobody is told when something comes over them, so each is looked at before it is used, and all
//! of them every second.

use std::time::{Duration, Instant};

use haul_reactor::{Moved, Socket};

use super::options::HttpOptions;

/// How often all are looked at.
const SWEEP_TIME: Duration = Duration::from_secs(1);

/// Those of a thread.
#[derive(Debug)]
pub(crate) struct Spares {
    /// By the number of the target, the oldest first.
    of: Vec<Vec<Spare>>,
    each_max: usize,
    time_max: Duration,
    /// When all are looked at again; never, if there are none.
    due: Option<Instant>,
}

#[derive(Debug)]
struct Spare {
    socket: Socket,
    since: Instant,
}

impl Spare {
    fn is_good(&mut self, now: Instant, time_max: Duration) -> bool {
        now < self.since + time_max && is_quiet(&mut self.socket)
    }
}

impl Spares {
    /// None so far, and never more than the options say.
    pub(crate) fn new(options: Option<&HttpOptions>) -> Self {
        Self {
            of: Vec::new(),
            each_max: options.map_or(0, |options| options.spares_max),
            time_max: options.map_or(Duration::ZERO, |options| options.spare_time_max),
            due: None,
        }
    }

    /// Keeps a connection over which everything was said that was to be said, since then; the oldest
    /// goes if there are too many.
    pub(crate) fn put(&mut self, target: usize, socket: Socket, since: Instant) {
        if self.each_max == 0 {
            return;
        }
        if self.of.len() <= target {
            self.of.resize_with(target + 1, Vec::new);
        }
        let spares = &mut self.of[target];
        if spares.len() >= self.each_max {
            spares.remove(0);
        }
        spares.push(Spare { socket, since });
        self.due.get_or_insert(since + SWEEP_TIME);
    }

    /// The youngest connection to a target over which nothing has come, unless it is too old.
    pub(crate) fn take(&mut self, target: usize, now: Instant) -> Option<Socket> {
        let spares = self.of.get_mut(target)?;
        while let Some(mut spare) = spares.pop() {
            if spare.is_good(now, self.time_max) {
                return Some(spare.socket);
            }
        }
        None
    }

    /// Lets go of all. Whether there were any.
    pub(crate) fn clear(&mut self) -> bool {
        let had_any = self.of.iter().any(|spares| !spares.is_empty());
        self.of.clear();
        self.due = None;
        had_any
    }

    /// When [`Self::sweep`] has something to do.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Lets go of those that are old, that the target has ended, or over which something came.
    pub(crate) fn sweep(&mut self, now: Instant) {
        let time_max = self.time_max;
        for spares in &mut self.of {
            spares.retain_mut(|spare| spare.is_good(now, time_max));
        }
        let has_any = self.of.iter().any(|spares| !spares.is_empty());
        self.due = has_any.then(|| now + SWEEP_TIME);
    }
}

/// Whether nothing has come: neither bytes nor an end.
pub(super) fn is_quiet(socket: &mut Socket) -> bool {
    matches!(socket.peek(), Ok(Moved::WouldBlock))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn spare() -> (Socket, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (Socket::new(ours.into()), theirs)
    }

    fn is_ended(mut theirs: UnixStream) -> bool {
        theirs.set_nonblocking(true).unwrap();
        theirs.write(b"x").is_err()
    }

    #[test]
    fn the_youngest_that_is_quiet_is_used_again_and_the_oldest_goes() {
        let options = HttpOptions { spares_max: 3, ..HttpOptions::default() };
        let (mut spares, now) = (Spares::new(Some(&options)), Instant::now());
        let mut theirs = Vec::new();
        for _ in 0..4 {
            let (socket, peer) = spare();
            spares.put(5, socket, now);
            theirs.push(peer);
        }
        let youngest = theirs.pop().unwrap();
        assert!(is_ended(theirs.remove(0)), "three are enough");
        drop(theirs.pop());
        theirs[0].write_all(b"nobody asked").unwrap();
        assert!(spares.take(4, now).is_none() && spares.take(6, now).is_none());
        let taken = spares.take(5, now).unwrap();
        assert!(spares.take(5, now).is_none(), "one has ended, the other one says something");
        drop(taken);
        assert!(is_ended(youngest));
    }

    #[test]
    fn those_that_are_old_or_ended_are_let_go() {
        let options = HttpOptions::default();
        let (mut spares, now) = (Spares::new(Some(&options)), Instant::now());
        assert_eq!(spares.due(), None);
        let [(old, old_peer), (quiet, quiet_peer), (ended, ended_peer)] =
            [spare(), spare(), spare()];
        spares.put(0, old, now);
        let later = now + options.spare_time_max;
        spares.put(1, quiet, later);
        spares.put(1, ended, later);
        drop(ended_peer);
        assert!(spares.due().is_some_and(|due| due > now));
        let (another, another_peer) = spare();
        spares.put(2, another, now);
        assert!(spares.take(2, later).is_none() && is_ended(another_peer), "no sweep came first");
        spares.sweep(later);
        assert!(is_ended(old_peer));
        assert_eq!(spares.of.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 0]);
        spares.sweep(later + options.spare_time_max);
        assert!(is_ended(quiet_peer));
        assert_eq!(spares.due(), None);
    }

    #[test]
    fn none_are_kept_where_none_may_be() {
        let options = HttpOptions { spares_max: 0, ..HttpOptions::default() };
        let mut spares = Spares::new(Some(&options));
        let (socket, peer) = spare();
        spares.put(0, socket, Instant::now());
        assert!(is_ended(peer) && spares.due().is_none());
    }
}
