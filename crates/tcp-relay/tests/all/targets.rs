//! Targets that are slow, gone, and back.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::Duration;

use haul_tcp_relay::{Address, Balance, CheckOptions, Config, Ended, Limits};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::world::{Relay, config, listener, nowhere};

/// An address that neither accepts nor refuses: its queue is full.
pub(crate) struct Deaf {
    _listener: TcpListener,
    _queue: Vec<TcpStream>,
    pub(crate) address: Address,
}

impl Deaf {
    pub(crate) fn new() -> Self {
        let (listener, address) = listener();
        let at = listener.local_addr().unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let mut queue = Vec::new();
        while let Ok(socket) = TcpStream::connect_timeout(&at, Duration::from_millis(200)) {
            queue.push(socket);
        }
        Self { _listener: listener, _queue: queue, address }
    }
}

#[test]
fn a_target_that_refuses_or_is_silent_is_passed_over() {
    let deaf = Deaf::new();
    for (first, time) in [(nowhere(), 5000), (deaf.address.clone(), 50)] {
        let (target, address) = listener();
        let connect_time_max = Duration::from_millis(time);
        let limits = Limits { connect_time_max, ..Limits::default() };
        let relay = Relay::start(Config { limits, ..config([first, address]) });
        let near = relay.connect();
        drop(target.accept().unwrap());
        drop(near);
        let stats = relay.drain();
        let counts: Vec<_> = stats.targets.iter().map(|t| (t.connected, t.failed)).collect();
        assert_eq!(counts, [(0, 1), (1, 0)]);
        assert_eq!(stats.ended(Ended::Clean), 1);
    }
}

/// A full queue of a unix socket is told at once, and is no refusal.
#[test]
fn clients_wait_for_a_unix_target_whose_queue_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("target");
    let target = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&target, 0).unwrap();
    let relay = Relay::start(config([Address::Unix(path)]));
    let mut clients: Vec<_> = (0..6).map(|_| relay.connect()).collect();
    relay.until(|stats| stats.accepted == 6);
    for _ in 0..6 {
        target.accept().unwrap().0.write_all(b"!").unwrap();
    }
    for near in &mut clients {
        let mut greeting = [0];
        near.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting, b"!");
    }
    drop(clients);
    let stats = relay.drain();
    assert_eq!((stats.targets[0].connected, stats.targets[0].failed), (6, 0));
}

#[test]
fn without_any_target_the_client_is_reset() {
    let relay = Relay::start(config([nowhere(), "unix:/nowhere/at/all".parse().unwrap()]));
    let mut near = relay.connect();
    assert_eq!(near.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let stats = relay.drain();
    assert_eq!(stats.ended(Ended::NoTarget), 1);
    assert!(stats.targets.iter().all(|target| (target.connected, target.failed) == (0, 1)));
}

#[test]
fn checks_find_a_target_gone_and_back_without_any_client() {
    let (gone, address) = listener();
    let at = gone.local_addr().unwrap();
    let checks = CheckOptions { every: Some(Duration::from_millis(5)), ..CheckOptions::default() };
    let relay = Relay::start(Config { checks, ..config([address]) });
    assert!(relay.stats().targets[0].is_up);
    drop(gone);
    relay.until(|stats| !stats.targets[0].is_up);
    // Somebody else may have taken the address meanwhile; then it is up, too.
    let _back = TcpListener::bind(at);
    let stats = relay.until(|stats| stats.targets[0].is_up);
    assert!(stats.targets[0].checks_failed >= 3);
    assert_eq!((stats.targets[0].connected, stats.accepted), (0, 0));
}

#[test]
fn a_target_that_fails_clients_is_left_out_for_a_while() {
    let (target, address) = listener();
    let checks = CheckOptions {
        eject_after: 2,
        eject_time: Duration::from_hours(1),
        ..CheckOptions::default()
    };
    let relay = Relay::start(Config { checks, ..config([nowhere(), address]) });
    for _ in 0..20 {
        let near = relay.connect();
        drop(target.accept().unwrap());
        drop(near);
    }
    let stats = relay.drain();
    let [gone, there] = &stats.targets[..] else { panic!("two targets") };
    assert_eq!((gone.failed, gone.is_up, there.connected, there.is_up), (2, false, 20, true));
}

/// Runs the test of this name in a process of its own, in which it finds this variable. Whether this
/// is that process.
pub(crate) fn is_alone(name: &str) -> bool {
    const ALONE: &str = "HAUL_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut test = Command::new(std::env::current_exe().unwrap());
    let ran = test.args(["--exact", name, "--nocapture"]).env(ALONE, "1").status().unwrap();
    assert!(ran.success(), "{name}");
    false
}

/// So that few have to be taken until none is left.
pub(crate) fn have_few_descriptors() {
    let limit = Rlimit { current: Some(64), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// Takes descriptors until so many are left.
pub(crate) fn leave(descriptors: usize) -> Vec<OwnedFd> {
    let mut taken = Vec::new();
    while let Ok(descriptor) = std::io::stdin().as_fd().try_clone_to_owned() {
        taken.push(descriptor);
    }
    taken.truncate(taken.len() - descriptors);
    taken
}

#[test]
fn running_out_of_descriptors_leaves_no_target_out() {
    if !is_alone("targets::running_out_of_descriptors_leaves_no_target_out") {
        return;
    }
    have_few_descriptors();
    let (target, address) = listener();
    let checks = CheckOptions { eject_after: 1, ..CheckOptions::default() };
    let relay = Relay::start(Config { checks, ..config([address]) });
    // What it needs once and keeps.
    drop((relay.connect(), target.accept().unwrap()));
    relay.until(|stats| stats.ended(Ended::Clean) == 1);
    for round in 1..=5 {
        // The client's own, and what accepts it: none for the target.
        let taken = leave(2);
        let mut near = relay.connect();
        assert_eq!(near.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        drop(taken);
        assert_eq!(relay.until(|stats| stats.active == 0).ended(Ended::NoTarget), round);
    }
    let seen = &relay.stats().targets[0];
    assert_eq!((seen.is_up, seen.connected, seen.failed, seen.active), (true, 1, 0, 0));
    let mut near = relay.connect();
    target.accept().unwrap().0.write_all(b"!").unwrap();
    near.read_exact(&mut [0]).unwrap();
}

#[test]
fn connections_are_spread_as_was_asked() {
    for balance in [Balance::RoundRobin, Balance::LeastConnections] {
        let targets: Vec<_> = (0..3).map(|_| listener()).collect();
        let addresses = targets.iter().map(|(_, address)| address.clone());
        let relay = Relay::start(Config { balance, ..config(addresses) });
        let connect = |count: usize| -> Vec<TcpStream> {
            let before = relay.stats().accepted;
            let sockets = (0..count).map(|_| relay.connect()).collect();
            relay.until(|stats| stats.accepted == before + count as u64);
            relay.until(|stats| {
                let made: u64 = stats.targets.iter().map(|target| target.connected).sum();
                made == before + count as u64
            });
            sockets
        };
        let first = connect(9);
        assert!(relay.stats().targets.iter().all(|target| target.active == 3), "{balance:?}");
        drop(first);
        for (target, _) in &targets {
            (0..3).for_each(|_| drop(target.accept().unwrap()));
        }
        let stats = relay.until(|stats| stats.active == 0);
        assert!(stats.targets.iter().all(|target| target.active == 0), "{balance:?}");
    }
}
