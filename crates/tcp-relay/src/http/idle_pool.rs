//! Stores the idle upstream connections of a thread, which requests of any client may reuse.
//!
//! The reactor does not watch idle connections. Therefore the pool checks a connection for received
//! bytes and EOF before a request uses it, and checks all connections every second.

use std::time::{Duration, Instant};

use haul_reactor::{IoStatus, Socket};

use crate::http_options::HttpOptions;

/// The time between two checks of all idle connections.
const SWEEP_TIME: Duration = Duration::from_secs(1);

/// The idle upstream connections of one thread.
#[derive(Debug)]
pub(crate) struct IdlePool {
    /// The connections by the index of their target, the oldest of each target first.
    by_target: Vec<Vec<IdleConnection>>,
    each_max: usize,
    time_max: Duration,
    /// The time of the next check of all connections; `None` implies that the pool is empty.
    due: Option<Instant>,
}

#[derive(Debug)]
struct IdleConnection {
    socket: Socket,
    since: Instant,
}

impl IdleConnection {
    fn is_usable(&mut self, now: Instant, time_max: Duration) -> bool {
        now < self.since + time_max && is_silent(&mut self.socket)
    }
}

impl IdlePool {
    /// Creates an empty pool with the limits in `options`; without options it stores no
    /// connections.
    pub(crate) fn new(options: Option<&HttpOptions>) -> Self {
        Self {
            by_target: Vec::new(),
            each_max: options.map_or(0, |options| options.idle_connections_max),
            time_max: options.map_or(Duration::ZERO, |options| options.idle_connection_time_max),
            due: None,
        }
    }

    /// Adds a connection that has been idle since `since`; closes the target's oldest idle
    /// connection if the target already has the maximum number.
    pub(crate) fn put(&mut self, target: usize, socket: Socket, since: Instant) {
        if self.each_max == 0 {
            return;
        }
        if self.by_target.len() <= target {
            self.by_target.resize_with(target + 1, Vec::new);
        }
        let idle = &mut self.by_target[target];
        if idle.len() >= self.each_max {
            idle.remove(0);
        }
        idle.push(IdleConnection { socket, since });
        self.due.get_or_insert(since + SWEEP_TIME);
    }

    /// Removes and returns the most recently added usable connection to a target.
    pub(crate) fn take(&mut self, target: usize, now: Instant) -> Option<Socket> {
        let idle = self.by_target.get_mut(target)?;
        while let Some(mut connection) = idle.pop() {
            if connection.is_usable(now, self.time_max) {
                return Some(connection.socket);
            }
        }
        None
    }

    /// Closes all connections; returns `true` if there were any.
    pub(crate) fn clear(&mut self) -> bool {
        let had_any = self.by_target.iter().any(|idle| !idle.is_empty());
        self.by_target.clear();
        self.due = None;
        had_any
    }

    /// Returns the time at which [`Self::sweep`] must run.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Closes each connection that was idle for too long, has reached EOF, or has received bytes.
    pub(crate) fn sweep(&mut self, now: Instant) {
        let time_max = self.time_max;
        for idle in &mut self.by_target {
            idle.retain_mut(|connection| connection.is_usable(now, time_max));
        }
        let has_any = self.by_target.iter().any(|idle| !idle.is_empty());
        self.due = has_any.then(|| now + SWEEP_TIME);
    }
}

/// Returns `true` if the socket has received neither bytes nor EOF.
pub(super) fn is_silent(socket: &mut Socket) -> bool {
    matches!(socket.peek(), Ok(IoStatus::WouldBlock))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn connection() -> (Socket, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (Socket::new(ours.into()), theirs)
    }

    fn is_closed(mut theirs: UnixStream) -> bool {
        theirs.set_nonblocking(true).unwrap();
        theirs.write(b"x").is_err()
    }

    #[test]
    fn youngest_usable_connection_is_reused_and_the_oldest_closed() {
        let options = HttpOptions { idle_connections_max: 3, ..HttpOptions::default() };
        let (mut idle, now) = (IdlePool::new(Some(&options)), Instant::now());
        let mut theirs = Vec::new();
        for _ in 0..4 {
            let (socket, peer) = connection();
            idle.put(5, socket, now);
            theirs.push(peer);
        }
        let youngest = theirs.pop().unwrap();
        assert!(is_closed(theirs.remove(0)), "the pool holds three");
        drop(theirs.pop());
        theirs[0].write_all(b"unsolicited").unwrap();
        assert!(idle.take(4, now).is_none() && idle.take(6, now).is_none());
        let taken = idle.take(5, now).unwrap();
        assert!(idle.take(5, now).is_none(), "one is at EOF, the other received bytes");
        drop(taken);
        assert!(is_closed(youngest));
    }

    #[test]
    fn old_and_closed_connections_are_dropped() {
        let options = HttpOptions::default();
        let (mut idle, now) = (IdlePool::new(Some(&options)), Instant::now());
        assert_eq!(idle.due(), None);
        let [(old, old_peer), (quiet, quiet_peer), (ended, ended_peer)] =
            [connection(), connection(), connection()];
        idle.put(0, old, now);
        let later = now + options.idle_connection_time_max;
        idle.put(1, quiet, later);
        idle.put(1, ended, later);
        drop(ended_peer);
        assert!(idle.due().is_some_and(|due| due > now));
        let (another, another_peer) = connection();
        idle.put(2, another, now);
        assert!(
            idle.take(2, later).is_none() && is_closed(another_peer),
            "too old without a sweep"
        );
        idle.sweep(later);
        assert!(is_closed(old_peer));
        assert_eq!(idle.by_target.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 0]);
        idle.sweep(later + options.idle_connection_time_max);
        assert!(is_closed(quiet_peer));
        assert_eq!(idle.due(), None);
    }

    #[test]
    fn limit_of_zero_closes_connections_at_once() {
        let options = HttpOptions { idle_connections_max: 0, ..HttpOptions::default() };
        let mut idle = IdlePool::new(Some(&options));
        let (socket, peer) = connection();
        idle.put(0, socket, Instant::now());
        assert!(is_closed(peer) && idle.due().is_none());
    }
}
