//! Tests of targets that are slow, down, and up again.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::Duration;

use haul_tcp_relay::{
    Address, Balance, CheckOptions, Config, EndReason, HostAddress, Limits, Server,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::{Relay, config, listener, refusing_address};

/// An address that neither accepts nor refuses connections: its accept queue is full.
pub(crate) struct Unresponsive {
    _listener: TcpListener,
    _queued: TcpStream,
    pub(crate) address: Address,
}

impl Unresponsive {
    pub(crate) fn new() -> Self {
        let (listener, address) = listener();
        let at = listener.local_addr().unwrap();
        // The queue holds one connection more than its length; the kernel ignores further ones.
        rustix::net::listen(&listener, 0).unwrap();
        let queued = TcpStream::connect(at).unwrap();
        Self { _listener: listener, _queued: queued, address }
    }
}

#[test]
fn next_target_is_tried_after_a_refusal_or_timeout() {
    let unresponsive = Unresponsive::new();
    for (first, time) in [(refusing_address(), 5000), (unresponsive.address.clone(), 50)] {
        let (target, address) = listener();
        let connect_time_max = Duration::from_millis(time);
        let limits = Limits { connect_time_max, ..Limits::default() };
        let relay = Relay::start(Config { limits, ..config([first, address]) });
        let client = relay.connect();
        drop(target.accept().unwrap());
        drop(client);
        let stats = relay.drain();
        let counts: Vec<_> = stats.targets.iter().map(|t| (t.connected, t.failed)).collect();
        assert_eq!(counts, [(0, 1), (1, 0)]);
        assert_eq!(stats.ended(EndReason::Clean), 1);
    }
}

/// A connect to a unix socket with a full accept queue fails at once with EAGAIN, but the target is
/// up.
#[test]
fn clients_wait_for_a_full_unix_target() {
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
    for client in &mut clients {
        let mut greeting = [0];
        client.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting, b"!");
    }
    drop(clients);
    let stats = relay.drain();
    assert_eq!((stats.targets[0].connected, stats.targets[0].failed), (6, 0));
}

#[test]
fn client_is_reset_if_no_target_accepts() {
    let relay = Relay::start(config([refusing_address(), "unix:/missing/socket".parse().unwrap()]));
    let mut client = relay.connect();
    assert_eq!(client.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let stats = relay.drain();
    assert_eq!(stats.ended(EndReason::NoTarget), 1);
    assert!(stats.targets.iter().all(|target| (target.connected, target.failed) == (0, 1)));
}

#[test]
fn checks_mark_a_target_down_and_up() {
    let (closed, address) = listener();
    let at = closed.local_addr().unwrap();
    let checks =
        CheckOptions { interval: Some(Duration::from_millis(5)), ..CheckOptions::default() };
    let relay = Relay::start(Config { checks, ..config([address]) });
    assert!(relay.stats().targets[0].is_up);
    drop(closed);
    relay.until(|stats| !stats.targets[0].is_up);
    // If another process has bound the address, this fails, but then the target counts as up, too.
    let _reopened = TcpListener::bind(at);
    let stats = relay.until(|stats| stats.targets[0].is_up);
    assert!(stats.targets[0].checks_failed >= 3);
    assert_eq!((stats.targets[0].connected, stats.accepted), (0, 0));
}

#[test]
fn target_is_ejected_after_failed_connections() {
    let (target, address) = listener();
    let checks = CheckOptions {
        eject_after: 2,
        eject_time: Duration::from_hours(1),
        ..CheckOptions::default()
    };
    let relay = Relay::start(Config { checks, ..config([refusing_address(), address]) });
    for _ in 0..20 {
        let client = relay.connect();
        drop(target.accept().unwrap());
        drop(client);
    }
    let stats = relay.drain();
    let [down, up] = &stats.targets[..] else { panic!("two targets") };
    assert_eq!((down.failed, down.is_up, up.connected, up.is_up), (2, false, 20, true));
}

/// The variable in the environment of a child process.
const CHILD: &str = "HAUL_TEST_CHILD";

/// Runs the test of this name in a child process, because the test changes limits of its process;
/// returns `true` in the child.
pub(crate) fn is_child_process(name: &str) -> bool {
    if is_child() {
        return true;
    }
    let mut test = Command::new(std::env::current_exe().unwrap());
    let ran = test.args(["--exact", name, "--nocapture"]).env(CHILD, "1").status().unwrap();
    assert!(ran.success(), "{name}");
    false
}

/// Returns `true` in the process of such a test.
pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Lowers the limit of descriptors to 64, so that a test exhausts it quickly.
pub(crate) fn limit_descriptors() {
    let limit = Rlimit { current: Some(64), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// Opens descriptors until only this many can be opened; returns them.
pub(crate) fn exhaust_descriptors_except(descriptors: usize) -> Vec<OwnedFd> {
    let mut taken = Vec::new();
    while let Ok(descriptor) = std::io::stdin().as_fd().try_clone_to_owned() {
        taken.push(descriptor);
    }
    taken.truncate(taken.len() - descriptors);
    taken
}

#[test]
fn descriptor_exhaustion_ejects_no_target() {
    if !is_child_process("targets::descriptor_exhaustion_ejects_no_target") {
        return;
    }
    limit_descriptors();
    let (target, address) = listener();
    let checks = CheckOptions { eject_after: 1, ..CheckOptions::default() };
    let relay = Relay::start(Config { checks, ..config([address]) });
    // A first connection makes the relay open the descriptors that it then keeps.
    drop((relay.connect(), target.accept().unwrap()));
    relay.until(|stats| stats.ended(EndReason::Clean) == 1);
    for round in 1..=5 {
        // Two descriptors are free: one for the client's socket and one for the socket that the
        // relay accepts. None is left for the target.
        let taken = exhaust_descriptors_except(2);
        let mut client = relay.connect();
        assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        drop(taken);
        assert_eq!(relay.until(|stats| stats.active == 0).ended(EndReason::NoTarget), round);
    }
    let seen = &relay.stats().targets[0];
    assert_eq!((seen.is_up, seen.connected, seen.failed, seen.active), (true, 1, 0, 0));
    let mut client = relay.connect();
    target.accept().unwrap().0.write_all(b"!").unwrap();
    client.read_exact(&mut [0]).unwrap();
}

#[test]
fn balance_spreads_connections_evenly() {
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

#[test]
fn all_addresses_of_a_host_name_are_tried() {
    // `localhost` may resolve to ::1 first, where nothing listens.
    let (target, address) = listener();
    let Address::Tcp(address) = address else { unreachable!() };
    let name: HostAddress = format!("localhost:{}", address.port()).parse().unwrap();
    let relay = Relay::start(Config { targets: vec![name.clone()], ..config([]) });
    for _ in 0..2 {
        let mut client = relay.connect();
        client.write_all(b"hello").unwrap();
        target.accept().unwrap().0.read_exact(&mut [0; 5]).unwrap();
    }
    let stats = relay.stats();
    assert_eq!((stats.targets[0].address.clone(), stats.targets[0].failed), (name.to_string(), 0));
}

#[test]
fn unresolvable_host_name_is_refused_at_the_start() {
    let name = "haul-test.invalid:80".parse().unwrap();
    let error = Server::bind(Config { targets: vec![name], ..config([]) }).map(drop).unwrap_err();
    assert_eq!(error.to_string(), "cannot resolve haul-test.invalid:80");
}
