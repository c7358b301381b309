//! Tests of draining and stopping a reactor.

use crate::*;

#[test]
fn drain_notifies_connections_and_stops_accepting() {
    let mut server = TestServer::start(10);
    let mut streams = [server.connect(), server.connect()];
    for stream in &mut streams {
        echo(stream, 1);
    }
    server.handle.drain();
    server.join();
    assert_eq!(server.driven.iter().filter(|(_, event)| *event == Event::Drain).count(), 2);
    for stream in &mut streams {
        assert_eq!(rest(stream), b"");
    }
    assert!(TcpStream::connect(server.address).is_err());
    let stats = server.handle.stats();
    assert_eq!((stats.accepted, stats.closed, server.limit.open()), (2, 2, 0));
}

#[test]
fn stop_closes_open_connections() {
    let mut server = TestServer::start(10);
    let mut stream = server.connect();
    echo(&mut stream, 1);
    server.handle.stop();
    server.join();
    assert_eq!(rest(&mut stream), b"");
    assert_eq!(server.limit.open(), 0);
}

#[test]
fn idle_reactor_does_not_iterate() {
    let server = TestServer::start(10);
    let mut stream = server.connect();
    settle(&mut stream);
    let before = server.handle.stats().iterations;
    // A deadline of another reactor shows that a tick has passed.
    let other = TestServer::start(10);
    let mut late = other.connect();
    late.write_all(b"d1").unwrap();
    assert!(other.driven.iter().any(|(_, event)| event == Event::Deadline));
    assert_eq!(server.handle.stats().iterations, before);
}
