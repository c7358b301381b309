//! Tests of the events, fairness, messages and deadlines of connections.

use std::net::Shutdown;
use std::panic::AssertUnwindSafe;

use crate::*;

#[test]
fn bytes_sent_before_immediate_shutdown_are_read() {
    let server = TestServer::start(10);
    for _ in 0..200 {
        let mut stream = server.connect();
        stream.write_all(b"e!").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(rest(&mut stream), b"!");
    }
    assert_eq!(server.handle.stats().accepted, 200);
}

/// A request causes one event, and the service's read and write cause no further event, so 100
/// requests take 100 iterations.
#[test]
fn request_takes_one_iteration() {
    let server = TestServer::start(10);
    let mut stream = server.connect();
    settle(&mut stream);
    let before = server.handle.stats().iterations;
    for byte in 0..100 {
        echo(&mut stream, byte);
    }
    assert_eq!(server.handle.stats().iterations - before, 100);
}

#[test]
fn deadline_fires_once() {
    let server = TestServer::start(10);
    let mut stream = server.connect();
    stream.write_all(b"d7").unwrap();
    let until_deadline = server.driven.iter().take_while(|(_, event)| *event != Event::Deadline);
    assert!(until_deadline.count() >= 1);
    // After the deadline no tick wakes the thread: the next event is the request.
    echo(&mut stream, 8);
    assert_eq!(server.driven.recv().unwrap(), (b'7', Event::Ready));
}

#[test]
fn yielding_connections_are_driven_round_robin() {
    let server = TestServer::start(10);
    let mut streams = [server.connect(), server.connect()];
    echo(&mut streams[0], 1);
    echo(&mut streams[1], 2);
    streams[0].write_all(b"aA").unwrap();
    streams[1].write_all(b"aB").unwrap();
    let resumed = server.driven.iter().filter(|(_, event)| *event == Event::Resume);
    let names: Vec<u8> = resumed.map(|(name, _)| name).take(100).collect();
    assert_eq!(names.iter().filter(|name| **name == b'A').count(), 50);
    // While both yield, neither is driven twice in a row.
    let first_b = names.iter().position(|name| *name == b'B').unwrap();
    let first_a = names.iter().position(|name| *name == b'A').unwrap();
    let begin = first_a.max(first_b);
    let end = 100 - names.iter().rev().take_while(|name| *name == names.last().unwrap()).count();
    let both = &names[begin.min(end)..end];
    assert!(both.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

#[test]
fn endless_messages_to_one_connection_do_not_starve_others() {
    let server = TestServer::start(10);
    let mut busy = server.connect();
    echo(&mut busy, 1);
    server.senders.recv().unwrap().send(ENDLESS);
    echo(&mut server.connect(), 2);
}

#[test]
fn messages_beyond_one_iteration_arrive_in_order() {
    let server = TestServer::start(10);
    let mut stream = server.connect();
    echo(&mut stream, 1);
    let sender = server.senders.recv().unwrap();
    let sent: Vec<u8> = (0..5000_u32).map(|number| (number % 250) as u8).collect();
    sent.iter().for_each(|message| sender.send(*message));
    let received = server.driven.iter().filter_map(|(_, event)| match event {
        Event::Message(message) => Some(message),
        _ => None,
    });
    assert_eq!(received.take(5000).collect::<Vec<_>>(), sent);
}

/// If each message woke the thread, it would iterate more than once.
#[test]
fn messages_sent_together_wake_the_thread_once() {
    let server = TestServer::start(10);
    let mut stream = server.connect();
    settle(&mut stream);
    let sender = server.senders.recv().unwrap();
    server.until_asleep();
    let before = server.handle.stats().iterations;
    wake_once(&mut || {
        wake_once(&mut || sender.send(0));
        (1..100).for_each(|message| sender.send(message));
    });
    let is_message = |(_, event): &(u8, Event<u8>)| matches!(event, Event::Message(_));
    assert_eq!(server.driven.iter().filter(is_message).take(100).count(), 100);
    assert_eq!(server.handle.stats().iterations - before, 1);
}

#[test]
fn message_arrives_if_the_sender_panics_later() {
    let server = TestServer::start(10);
    let mut stream = server.connect();
    settle(&mut stream);
    let sender = server.senders.recv().unwrap();
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| {
        wake_once(&mut || {
            sender.send(7);
            std::panic::resume_unwind(Box::new("a sender panics"));
        });
    }));
    assert!(panicked.is_err());
    assert!(server.driven.iter().any(|(_, event)| event == Event::Message(7)));
    sender.send(8);
    assert!(server.driven.iter().any(|(_, event)| event == Event::Message(8)));
}

#[test]
fn message_to_closed_connection_does_not_reach_its_successor() {
    let server = TestServer::start(10);
    let mut first = server.connect();
    echo(&mut first, 1);
    let to_first = server.senders.recv().unwrap();
    to_first.send(42);
    assert!(server.driven.iter().any(|driven| driven == (1, Event::Message(42))));

    first.write_all(b"r_").unwrap();
    assert_eq!(rest(&mut first), b"");
    let mut second = server.connect();
    echo(&mut second, 2);
    // The second connection reuses the slot of the first.
    to_first.send(43);
    server.senders.recv().unwrap().send(44);
    let driven = server.driven.iter().find(|(_, event)| matches!(event, Event::Message(_)));
    assert_eq!(driven.unwrap(), (2, Event::Message(44)));
}

/// A service that has a deadline and no connections.
struct Alarm {
    deadline: Option<Instant>,
    fired: Sender<Instant>,
}

impl Service for Alarm {
    type Connection = Peer;
    type Message = ();

    fn on_accept(&mut self, _: Socket, _: AcceptInfo, _: &mut Context<'_, ()>) -> Option<Peer> {
        None
    }

    fn drive(&mut self, _: &mut Peer, _: Event<()>, _: &mut Context<'_, ()>) -> Next {
        Next::Close
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn on_deadline(&mut self, now: Instant) {
        self.deadline = None;
        self.fired.send(now).unwrap();
    }
}

#[test]
fn service_deadline_fires_once() {
    let (fired, times) = channel();
    let deadline = Instant::now() + Duration::from_millis(1);
    let alarm = Alarm { deadline: Some(deadline), fired };
    let reactor = Reactor::new(alarm, vec![], AdmissionLimit::new(1)).unwrap();
    let handle = reactor.handle();
    let thread = thread::spawn(|| reactor.run().map(drop));
    assert!(times.recv().unwrap() >= deadline);
    handle.stop();
    thread.join().unwrap().unwrap();
    assert!(times.recv().is_err(), "it fired twice");
}
