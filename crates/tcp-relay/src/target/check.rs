//! Runs health checks: a thread connects to all targets periodically.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use haul_reactor::{Address, is_self_connected};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{connect, socket_with, sockopt};

use super::is_local_exhaustion;
use super::table::Targets;

/// A running check thread, which stops when this handle is dropped.
#[derive(Debug)]
pub(crate) struct Checker {
    _stop: Sender<()>,
}

impl Checker {
    /// Starts a thread that checks all targets concurrently, and repeats this after each pause of
    /// [`CheckOptions::interval`]. A target that does not accept within `time_max` fails the check.
    /// Returns `None` if no interval is set.
    pub(crate) fn start(targets: Arc<Targets>, time_max: Duration) -> io::Result<Option<Self>> {
        let Some(interval) = targets.options.interval else { return Ok(None) };
        let (stop, stopped) = channel();
        thread::Builder::new().name("checks".into()).spawn(move || {
            loop {
                for (index, success) in probe_all(&targets, time_max).into_iter().enumerate() {
                    if let Some(success) = success {
                        targets.checked(index, success);
                    }
                }
                if stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        })?;
        Ok(Some(Self { _stop: stop }))
    }
}

/// A connection attempt to one target.
enum Probe {
    Pending(OwnedFd),
    Done(bool),
    /// The attempt failed because a local resource was exhausted, so it says nothing about the
    /// target.
    NotSent,
}

/// Connects to all targets concurrently. Returns `true` for each target that accepted, `false` for
/// each that did not, and `None` if a target's state could not be determined.
fn probe_all(targets: &Targets, time_max: Duration) -> Vec<Option<bool>> {
    let deadline = Instant::now() + time_max;
    let addresses = targets.addresses();
    let mut probes: Vec<_> =
        addresses.iter().flat_map(|addresses| &**addresses).map(start_probe).collect();
    let mut can_wait = true;
    while can_wait {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let is_pending = |probe: &&mut Probe| matches!(probe, Probe::Pending(_));
        let mut pending: Vec<_> = probes.iter_mut().filter(is_pending).collect();
        if pending.is_empty() || remaining.is_zero() {
            break;
        }
        can_wait = wait(&mut pending, remaining);
    }
    let result = |probe| match probe {
        Probe::Done(success) => Some(success),
        Probe::Pending(_too_late) => can_wait.then_some(false),
        Probe::NotSent => None,
    };
    let mut results = probes.into_iter().map(result);
    addresses.iter().map(|addresses| any_success(results.by_ref().take(addresses.len()))).collect()
}

/// Returns the result of a target from those of its addresses: `true` if one accepted, or else
/// `None` if the state of one could not be determined.
fn any_success(results: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let results: Vec<_> = results.collect();
    match results.contains(&Some(true)) {
        true => Some(true),
        false => results.iter().all(Option::is_some).then_some(false),
    }
}

/// Waits until a probe completes or the time is over; returns `false` if `poll(2)` fails.
fn wait(pending: &mut [&mut Probe], remaining: Duration) -> bool {
    let mut polls: Vec<_> = pending
        .iter()
        .filter_map(|probe| match probe {
            Probe::Pending(socket) => Some(PollFd::new(socket, PollFlags::OUT)),
            Probe::Done(_) | Probe::NotSent => None,
        })
        .collect();
    let timeout = Timespec::try_from(remaining).ok();
    if !matches!(poll(&mut polls, timeout.as_ref()), Ok(_) | Err(Errno::INTR)) {
        return false;
    }
    let ready: Vec<_> = polls.iter().map(|poll| !poll.revents().is_empty()).collect();
    for (probe, _) in pending.iter_mut().zip(ready).filter(|(_, is_ready)| *is_ready) {
        if let Probe::Pending(socket) = &**probe {
            let is_connected = matches!(sockopt::socket_error(socket), Ok(Ok(())));
            let success = is_connected && !is_self_connected(socket);
            **probe = Probe::Done(success);
        }
    }
    true
}

fn start_probe(address: &Address) -> Probe {
    let start = || -> rustix::io::Result<Probe> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = |family| socket_with(family, SocketType::STREAM, flags, None);
        let (socket, connected) = match address {
            Address::Tcp(address) => {
                let socket = socket(if address.is_ipv4() {
                    AddressFamily::INET
                } else {
                    AddressFamily::INET6
                })?;
                let connected = connect(&socket, address);
                (socket, connected)
            }
            Address::Unix(path) => {
                let socket = socket(AddressFamily::UNIX)?;
                let connected = connect(&socket, &SocketAddrUnix::new(path.as_path())?);
                (socket, connected)
            }
        };
        match connected {
            Err(Errno::INPROGRESS) => Ok(Probe::Pending(socket)),
            other => other.map(|()| Probe::Done(!is_self_connected(&socket))),
        }
    };
    start().unwrap_or_else(|errno| match is_local_exhaustion(errno) {
        true => Probe::NotSent,
        false => Probe::Done(false),
    })
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};
    use std::os::unix::net::{UnixListener, UnixStream};

    use rustix::net::{bind, getsockname};

    use super::super::{Balance, CheckOptions};
    use super::*;

    #[test]
    fn only_listening_targets_pass_the_check() {
        let listening = TcpListener::bind("127.0.0.1:0").unwrap();
        // The port is bound without listening, so that no other process can listen on the port.
        let bound =
            socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let bound = bound.unwrap();
        bind(&bound, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let closed = SocketAddr::try_from(getsockname(&bound).unwrap()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let _unix = UnixListener::bind(&path).unwrap();
        let addresses = vec![
            Address::Tcp(listening.local_addr().unwrap()),
            Address::Tcp(closed),
            Address::Unix(path),
            Address::Unix(dir.path().join("missing")),
        ];
        let targets = Targets::new(addresses, Balance::default(), CheckOptions::default());
        let expected = [true, false, true, false].map(Some);
        assert_eq!(probe_all(&targets, Duration::from_secs(5)), expected);
    }

    /// If no process listens on the target's port, the kernel may choose this port as the source
    /// port of a check, which then connects to itself.
    #[test]
    fn socket_connected_to_itself_fails_the_check() {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
        bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let own = SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap();
        // `wait` reads the result, even if the connection is still pending.
        connect(&socket, &own)
            .or_else(|errno| match errno {
                Errno::INPROGRESS => Ok(()),
                errno => Err(errno),
            })
            .unwrap();
        let mut probe = Probe::Pending(socket);
        assert!(wait(&mut [&mut probe], Duration::from_secs(5)));
        assert!(matches!(probe, Probe::Done(false)));
    }

    #[test]
    fn full_unix_queue_does_not_fail_the_check() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let unix = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&unix, 0).unwrap();
        let _first = UnixStream::connect(&path).unwrap();
        let full = Address::Unix(path);
        let targets = Targets::new(vec![full], Balance::default(), CheckOptions::default());
        assert_eq!(probe_all(&targets, Duration::from_secs(5)), [None]);
    }
}
