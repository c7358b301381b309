//! Tests of the limit of connections, and of the addresses of listeners.

use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};

use crate::*;

#[test]
fn connection_beyond_limit_is_accepted_after_another_closes() {
    let server = TestServer::start(2);
    let mut streams = [server.connect(), server.connect()];
    echo(&mut streams[0], 1);
    echo(&mut streams[1], 2);
    let mut third = server.connect();
    third.write_all(b"e3").unwrap();
    // The thread continues to serve the first two connections.
    while server.handle.stats().accepts_deferred == 0 {
        echo(&mut streams[0], 1);
    }
    assert_eq!((server.limit.open(), server.handle.stats().accepted), (2, 2));
    let [first, _second] = streams;
    drop(first);
    let mut answer = [0];
    third.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [b'3']);
    assert_eq!(server.limit.open(), 2);
}

/// Four clients compete for one permitted connection: the next client is accepted as soon as the
/// connection closes, not at the next tick, which never comes.
#[test]
fn deferred_accept_is_retried_when_a_connection_closes() {
    let server = TestServer::start_at(AdmissionLimit::new(1), (&ManualClock::new()).into());
    let address = server.address;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || (0..100).for_each(|_| echo(&mut connect(address), 1)));
        }
    });
    assert_eq!(server.handle.stats().accepted, 400);
}

#[test]
fn bind_fails_on_address_in_use_and_another_shares_it() {
    let any = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(&any, TcpOptions::default(), 128).unwrap();
    let error = Listener::bind(listener.address(), TcpOptions::default(), 128).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert_eq!(listener.another().unwrap().address(), listener.address());
}

#[test]
fn bind_replaces_stale_unix_socket_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let address = Address::Unix(path.clone());
    let bind = || Listener::bind(&address, TcpOptions::default(), 128);
    drop(UnixListener::bind(&path).unwrap());
    let listener = bind().unwrap();
    assert_eq!(bind().unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    let another = listener.another().unwrap();
    drop(listener);
    // `another` listens at the path although `listener` is closed.
    UnixStream::connect(&path).unwrap();
    drop(another);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "precious").unwrap();
    assert_eq!(bind().unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

#[test]
fn unix_connections_are_served() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let listener =
        Listener::bind(&Address::Unix(path.clone()), TcpOptions::default(), 128).unwrap();
    let (senders, _senders) = channel();
    let (driven, _driven) = channel();
    let limit = AdmissionLimit::new(9);
    let reactor = Reactor::new(CommandService { senders, driven }, vec![listener], limit).unwrap();
    let handle = reactor.handle();
    thread::scope(|scope| {
        scope.spawn(|| reactor.run().map(drop).unwrap());
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"e!").unwrap();
        let mut answer = [0];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"!");
        handle.stop();
    });
}

#[test]
fn connections_of_an_inherited_socket_are_served_by_its_next_owner() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let serve = || {
        let fd = socket.try_clone().unwrap().into();
        let listener = Listener::inherit(fd, TcpOptions::default()).unwrap();
        assert_eq!(*listener.address(), Address::Tcp(address));
        let listeners = vec![listener.another().unwrap()];
        let (senders, _senders) = channel();
        let (driven, _driven) = channel();
        let limit = AdmissionLimit::new(9);
        let service = CommandService { senders, driven };
        Reactor::new(service, listeners, limit).map(|reactor| (reactor, _senders, _driven)).unwrap()
    };
    for _ in 0..3 {
        // The client connects while no process accepts.
        let mut client = TcpStream::connect(address).unwrap();
        let (reactor, _senders, _driven) = serve();
        let handle = reactor.handle();
        thread::scope(|scope| {
            scope.spawn(|| reactor.run().map(drop).unwrap());
            echo(&mut client, 1);
            handle.drain();
        });
    }
    let connected = OwnedFd::from(TcpStream::connect(address).unwrap());
    assert!(Listener::inherit(connected, TcpOptions::default()).is_err(), "it does not listen");
}
