//! Tests of the limit of connections per peer.

use std::os::fd::OwnedFd;

use haul_reactor::AdmissionStats;
use socket2::{Domain, Type};

use crate::*;

/// Connects from a loopback address such as 127.0.0.2.
fn connect_from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, last], 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    OwnedFd::from(socket).into()
}

#[test]
fn new_connection_replaces_the_oldest_waiting_one_of_its_peer() {
    let clock = ManualClock::new();
    let limit = AdmissionLimit::with_peer_limit(100, 3);
    let server = TestServer::start_at(limit, (&clock).into());
    let mut streams: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for (stream, name) in streams.iter_mut().zip([b'b', WAITING, WAITING]) {
        echo(stream, name);
        clock.advance(Duration::from_millis(1));
    }
    let mut other = connect_from(2, server.address);
    echo(&mut other, WAITING);
    // A connection gives way only after it has waited for a while.
    assert_eq!(rest(&mut server.connect()), b"refused");
    // The iteration that refused the connection, and has the earlier time, is over.
    (0..2).for_each(|_| echo(&mut streams[0], b'b'));
    clock.advance(Duration::from_millis(400));
    echo(&mut server.connect(), WAITING);
    assert_eq!(rest(&mut streams[1]), b"evicted");
    echo(&mut streams[0], 1);
    echo(&mut streams[2], 1);
    echo(&mut other, 1);
    assert_eq!(server.limit.stats(), AdmissionStats { refused: 1, evicted: 1 });
}

#[test]
fn connection_of_a_peer_without_waiting_connections_is_refused() {
    let server = TestServer::start_with(AdmissionLimit::with_peer_limit(100, 2));
    let mut streams = [server.connect(), server.connect()];
    streams.iter_mut().for_each(|stream| echo(stream, b'b'));
    assert_eq!(rest(&mut server.connect()), b"refused");
    echo(&mut connect_from(2, server.address), 1);
    let [first, mut second] = streams;
    drop(first);
    while server.limit.open() > 1 {
        echo(&mut second, b'b');
    }
    echo(&mut server.connect(), 1);
    assert_eq!(server.limit.stats(), AdmissionStats { refused: 1, evicted: 0 });
}

#[test]
fn new_peer_replaces_a_waiting_connection_of_the_largest_one() {
    let server = TestServer::start_with(AdmissionLimit::with_peer_limit(3, 10));
    let mut streams: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for (stream, name) in streams.iter_mut().zip([b'b', WAITING, b'b']) {
        echo(stream, name);
    }
    // The new connection waits in the kernel's queue until another one has waited for 250 ms.
    let mut other = connect_from(2, server.address);
    echo(&mut other, b'b');
    assert_eq!(rest(&mut streams[1]), b"evicted");
    let mut third = connect_from(3, server.address);
    third.write_all(b"eb").unwrap();
    echo(&mut streams[0], WAITING);
    let mut answer = [0];
    third.read_exact(&mut answer).unwrap();
    assert_eq!(rest(&mut streams[0]), b"evicted");
    for stream in [&mut streams[2], &mut other, &mut third] {
        echo(stream, 1);
    }
    assert_eq!(server.limit.stats(), AdmissionStats { refused: 0, evicted: 2 });
}

#[test]
fn connections_of_other_threads_are_evicted() {
    let limit = AdmissionLimit::with_peer_limit(100, 2);
    let any = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(&any, TcpOptions::default(), 128).unwrap();
    let Address::Tcp(address) = *listener.address() else { unreachable!() };
    let listeners = [listener.another().unwrap(), listener];
    let ((senders, _senders), (driven, _driven)) = (channel(), channel());
    let reactors = listeners.map(|listener| {
        let service = CommandService { senders: senders.clone(), driven: driven.clone() };
        Reactor::new(service, vec![listener], limit.clone()).unwrap()
    });
    let handles = reactors.each_ref().map(Reactor::handle);
    thread::scope(|scope| {
        for reactor in reactors {
            scope.spawn(|| reactor.run().map(drop).unwrap());
        }
        let mut streams = Vec::new();
        while streams.len() < 14 {
            let mut stream = TcpStream::connect(address).unwrap();
            let mut answer = [0];
            stream.write_all(&[b'e', WAITING]).ok();
            // Refused until one of the two previous connections has waited for 250 ms.
            if stream.read(&mut answer).is_ok_and(|_| answer == [WAITING]) {
                streams.push(stream);
            }
        }
        for stream in &mut streams[..12] {
            assert_eq!(rest(stream), b"evicted");
        }
        streams[12..].iter_mut().for_each(|stream| echo(stream, 1));
        assert!(handles.iter().all(|handle| handle.stats().accepted > 0));
        handles.iter().for_each(Handle::stop);
    });
    assert_eq!(limit.stats().evicted, 12);
}
