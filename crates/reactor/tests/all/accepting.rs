//! Who gets in, and where it listens.

use std::os::unix::net::{UnixListener, UnixStream};

use crate::*;

#[test]
fn one_too_many_waits_until_somebody_has_left() {
    let running = Running::start(2);
    let mut streams = [running.connect(), running.connect()];
    echo(&mut streams[0], 1);
    echo(&mut streams[1], 2);
    let mut third = running.connect();
    third.write_all(b"e3").unwrap();
    // The thread goes on, without the third.
    while running.handle.stats().held_back == 0 {
        echo(&mut streams[0], 1);
    }
    assert_eq!((running.gate.open(), running.handle.stats().accepted), (2, 2));
    let [first, _second] = streams;
    drop(first);
    let mut answer = [0];
    third.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [b'3']);
    assert_eq!(running.gate.open(), 2);
}

/// Four clients share one place: each gets it as soon as it is free, not at the next tick.
#[test]
fn a_place_is_taken_as_soon_as_it_is_free() {
    let running = Running::start(1);
    let since = Instant::now();
    let address = running.address;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for _ in 0..100 {
                    echo(&mut TcpStream::connect(address).unwrap(), 1);
                }
            });
        }
    });
    assert_eq!(running.handle.stats().accepted, 400);
    // By ticks it would be 40 s.
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
}

#[test]
fn an_address_somebody_listens_at_is_refused_and_shared_only_on_purpose() {
    let any = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(&any, TcpOptions::default(), 128).unwrap();
    let error = Listener::bind(listener.address(), TcpOptions::default(), 128).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert_eq!(listener.another().unwrap().address(), listener.address());
}

#[test]
fn a_socket_left_behind_is_taken_over_and_nothing_else_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let address = Address::Unix(path.clone());
    let bind = || Listener::bind(&address, TcpOptions::default(), 128);
    drop(UnixListener::bind(&path).unwrap());
    let listener = bind().unwrap();
    assert_eq!(bind().unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    let another = listener.another().unwrap();
    drop(listener);
    // The name still leads to the other one.
    UnixStream::connect(&path).unwrap();
    drop(another);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "precious").unwrap();
    assert_eq!(bind().unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

#[test]
fn peers_of_a_unix_socket_are_served() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let listener =
        Listener::bind(&Address::Unix(path.clone()), TcpOptions::default(), 128).unwrap();
    let (remotes, _remotes) = channel();
    let (driven, _driven) = channel();
    let gate = Gate::new(9);
    let reactor = Reactor::new(Obedient { remotes, driven }, vec![listener], gate).unwrap();
    let handle = reactor.handle();
    std::thread::scope(|scope| {
        scope.spawn(|| reactor.run().map(drop).unwrap());
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"e!").unwrap();
        let mut answer = [0];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"!");
        handle.stop();
    });
}
