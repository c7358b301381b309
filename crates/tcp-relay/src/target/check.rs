//! Whether targets answer: one thread connects to all of them every now and then.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use haul_reactor::{Address, is_to_itself};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{connect, socket_with, sockopt};

use super::is_ours;
use super::table::Targets;

/// The thread; dropped, it makes no more checks.
#[derive(Debug)]
pub(crate) struct Checker {
    _stop: Sender<()>,
}

impl Checker {
    /// Checks at once, and then as often as the options say; each connection may take
    /// `time_max`.
    pub(crate) fn start(targets: Arc<Targets>, time_max: Duration) -> io::Result<Option<Self>> {
        let Some(every) = targets.options.every else { return Ok(None) };
        let (stop, stopped) = channel();
        thread::Builder::new().name("checks".into()).spawn(move || {
            loop {
                for (index, success) in round(&targets, time_max).into_iter().enumerate() {
                    if let Some(success) = success {
                        targets.checked(index, success);
                    }
                }
                if stopped.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        })?;
        Ok(Some(Self { _stop: stop }))
    }
}

/// A connection to one target.
enum Check {
    Pending(OwnedFd),
    Over(bool),
    /// This machine could not ask.
    NotMade,
}

/// Connects to all targets at once. Which of them answered in time, if that can be told.
fn round(targets: &Targets, time_max: Duration) -> Vec<Option<bool>> {
    let deadline = Instant::now() + time_max;
    let mut checks: Vec<_> = targets.addresses().map(begin).collect();
    let mut can_wait = true;
    while can_wait {
        let left = deadline.saturating_duration_since(Instant::now());
        let is_pending = |check: &&mut Check| matches!(check, Check::Pending(_));
        let mut pending: Vec<_> = checks.iter_mut().filter(is_pending).collect();
        if pending.is_empty() || left.is_zero() {
            break;
        }
        can_wait = wait(&mut pending, left);
    }
    let outcome = |check| match check {
        Check::Over(success) => Some(success),
        Check::Pending(_too_late) => can_wait.then_some(false),
        Check::NotMade => None,
    };
    checks.into_iter().map(outcome).collect()
}

/// Waits until one of them is over. Whether that can be told.
fn wait(pending: &mut [&mut Check], left: Duration) -> bool {
    let mut polls: Vec<_> = pending
        .iter()
        .filter_map(|check| match check {
            Check::Pending(socket) => Some(PollFd::new(socket, PollFlags::OUT)),
            Check::Over(_) | Check::NotMade => None,
        })
        .collect();
    let timeout = Timespec::try_from(left).ok();
    if !matches!(poll(&mut polls, timeout.as_ref()), Ok(_) | Err(Errno::INTR)) {
        return false;
    }
    let ready: Vec<_> = polls.iter().map(|poll| !poll.revents().is_empty()).collect();
    for (check, _) in pending.iter_mut().zip(ready).filter(|(_, is_ready)| *is_ready) {
        if let Check::Pending(socket) = &**check {
            let is_connected = matches!(sockopt::socket_error(socket), Ok(Ok(())));
            let success = is_connected && !is_to_itself(socket);
            **check = Check::Over(success);
        }
    }
    true
}

fn begin(address: &Address) -> Check {
    let begun = || -> rustix::io::Result<Check> {
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
            Err(Errno::INPROGRESS) => Ok(Check::Pending(socket)),
            other => other.map(|()| Check::Over(!is_to_itself(&socket))),
        }
    };
    begun().unwrap_or_else(|errno| if is_ours(errno) { Check::NotMade } else { Check::Over(false) })
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};
    use std::os::unix::net::{UnixListener, UnixStream};

    use rustix::net::{bind, getsockname};

    use super::super::{Balance, CheckOptions};
    use super::*;

    #[test]
    fn who_listens_answers_and_who_does_not_is_noticed() {
        let listening = TcpListener::bind("127.0.0.1:0").unwrap();
        // Taken, so that nobody else can listen there.
        let silent =
            socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let silent = silent.unwrap();
        bind(&silent, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let gone = SocketAddr::try_from(getsockname(&silent).unwrap()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let _unix = UnixListener::bind(&path).unwrap();
        let addresses = vec![
            Address::Tcp(listening.local_addr().unwrap()),
            Address::Tcp(gone),
            Address::Unix(path),
            Address::Unix(dir.path().join("nobody")),
        ];
        let targets = Targets::new(addresses, Balance::default(), CheckOptions::default());
        let answers = [true, false, true, false].map(Some);
        assert_eq!(round(&targets, Duration::from_secs(5)), answers);
    }

    /// As it happens by chance where nobody listens at a port of this machine.
    #[test]
    fn a_check_that_is_answered_by_itself_has_failed() {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
        bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let own = SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap();
        // Under way or over: what it came to is told by the wait.
        connect(&socket, &own)
            .or_else(|errno| match errno {
                Errno::INPROGRESS => Ok(()),
                errno => Err(errno),
            })
            .unwrap();
        let mut check = Check::Pending(socket);
        assert!(wait(&mut [&mut check], Duration::from_secs(5)));
        assert!(matches!(check, Check::Over(false)));
    }

    /// Nothing was asked, so nothing is known.
    #[test]
    fn a_check_that_cannot_be_made_says_nothing_of_its_target() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let unix = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&unix, 0).unwrap();
        let _first = UnixStream::connect(&path).unwrap();
        let full = Address::Unix(path);
        let targets = Targets::new(vec![full], Balance::default(), CheckOptions::default());
        assert_eq!(round(&targets, Duration::from_secs(5)), [None]);
    }
}
