//! How a reactor ends.

use crate::*;

#[test]
fn a_draining_reactor_tells_everybody_accepts_nobody_and_ends() {
    let mut running = Running::start(10);
    let mut streams = [running.connect(), running.connect()];
    for stream in &mut streams {
        echo(stream, 1);
    }
    running.handle.drain();
    running.join();
    assert_eq!(running.driven.iter().filter(|(_, event)| *event == Event::Drain).count(), 2);
    for stream in &mut streams {
        assert_eq!(rest(stream), b"");
    }
    assert!(TcpStream::connect(running.address).is_err());
    let stats = running.handle.stats();
    assert_eq!((stats.accepted, stats.closed, running.gate.open()), (2, 2, 0));
}

#[test]
fn a_stopped_reactor_closes_what_is_left() {
    let mut running = Running::start(10);
    let mut stream = running.connect();
    echo(&mut stream, 1);
    running.handle.stop();
    running.join();
    assert_eq!(rest(&mut stream), b"");
    assert_eq!(running.gate.open(), 0);
}

#[test]
fn an_idle_reactor_sleeps() {
    let running = Running::start(10);
    let mut stream = running.connect();
    settle(&mut stream);
    let before = running.handle.stats().turns;
    // Another reactor's ticks go by meanwhile.
    let other = Running::start(10);
    let mut late = other.connect();
    late.write_all(b"d1").unwrap();
    assert!(other.driven.iter().any(|(_, event)| event == Event::Deadline));
    assert_eq!(running.handle.stats().turns, before);
}
