//! When connections are driven.

use std::net::Shutdown;

use crate::*;

#[test]
fn a_peer_that_says_something_and_ends_at_once_is_heard_to_its_end() {
    let running = Running::start(10);
    for _ in 0..200 {
        let mut stream = running.connect();
        stream.write_all(b"e!").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(rest(&mut stream), b"!");
    }
    assert_eq!(running.handle.stats().accepted, 200);
}

/// Each message is one turn of the thread, and no read is made to find that nothing is left: of 100
/// messages there are not much more than 100 turns.
#[test]
fn a_message_costs_one_turn() {
    let running = Running::start(10);
    let mut stream = running.connect();
    settle(&mut stream);
    let before = running.handle.stats().turns;
    for byte in 0..100 {
        echo(&mut stream, byte);
    }
    assert_eq!(running.handle.stats().turns - before, 100);
}

#[test]
fn a_deadline_is_noticed_and_counts_once() {
    let running = Running::start(10);
    let mut stream = running.connect();
    stream.write_all(b"d7").unwrap();
    let until_late = running.driven.iter().take_while(|(_, event)| *event != Event::Deadline);
    assert!(until_late.count() >= 1);
    // Without a deadline the thread sleeps: what comes next is the message.
    echo(&mut stream, 8);
    assert_eq!(running.driven.recv().unwrap(), (b'7', Event::Ready));
}

#[test]
fn those_who_use_up_their_share_take_turns() {
    let running = Running::start(10);
    let mut streams = [running.connect(), running.connect()];
    echo(&mut streams[0], 1);
    echo(&mut streams[1], 2);
    streams[0].write_all(b"aA").unwrap();
    streams[1].write_all(b"aB").unwrap();
    let again = running.driven.iter().filter(|(_, event)| *event == Event::Again);
    let names: Vec<u8> = again.map(|(name, _)| name).take(100).collect();
    assert_eq!(names.iter().filter(|name| **name == b'A').count(), 50);
    // From when both are busy to when one has ended no one has two turns in a row.
    let first_b = names.iter().position(|name| *name == b'B').unwrap();
    let first_a = names.iter().position(|name| *name == b'A').unwrap();
    let begin = first_a.max(first_b);
    let end = 100 - names.iter().rev().take_while(|name| *name == names.last().unwrap()).count();
    let both = &names[begin.min(end)..end];
    assert!(both.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

#[test]
fn who_is_told_something_again_and_again_keeps_nobody_waiting() {
    let running = Running::start(10);
    let mut told = running.connect();
    echo(&mut told, 1);
    running.remotes.recv().unwrap().tell(FOR_EVER);
    echo(&mut running.connect(), 2);
}

#[test]
fn of_more_messages_than_one_turn_takes_none_is_forgotten() {
    let running = Running::start(10);
    let mut stream = running.connect();
    echo(&mut stream, 1);
    let remote = running.remotes.recv().unwrap();
    let told: Vec<u8> = (0..5000_u32).map(|number| (number % 250) as u8).collect();
    told.iter().for_each(|message| remote.tell(*message));
    let came = running.driven.iter().filter_map(|(_, event)| match event {
        Event::Told(message) => Some(message),
        _ => None,
    });
    assert_eq!(came.take(5000).collect::<Vec<_>>(), told);
}

#[test]
fn a_message_of_another_thread_reaches_its_connection_and_no_later_one() {
    let running = Running::start(10);
    let mut first = running.connect();
    echo(&mut first, 1);
    let to_first = running.remotes.recv().unwrap();
    to_first.tell(42);
    assert!(running.driven.iter().any(|told| told == (1, Event::Told(42))));

    first.write_all(b"r_").unwrap();
    assert_eq!(rest(&mut first), b"");
    let mut second = running.connect();
    echo(&mut second, 2);
    // It has the place of the first one, which is gone.
    to_first.tell(43);
    running.remotes.recv().unwrap().tell(44);
    let told = running.driven.iter().find(|(_, event)| matches!(event, Event::Told(_)));
    assert_eq!(told.unwrap(), (2, Event::Told(44)));
}

/// Wants to be driven without any connection.
struct Clock {
    due: Option<Instant>,
    driven: Sender<Instant>,
}

impl Service for Clock {
    type Connection = Peer;
    type Message = ();

    fn accepted(&mut self, _: Socket, _: Accepted, _: &mut Hub<'_, ()>) -> Option<Peer> {
        None
    }

    fn drive(&mut self, _: &mut Peer, _: Event<()>, _: &mut Hub<'_, ()>) -> Next {
        Next::Close
    }

    fn due(&self) -> Option<Instant> {
        self.due
    }

    fn overdue(&mut self, now: Instant) {
        self.due = None;
        self.driven.send(now).unwrap();
    }
}

#[test]
fn a_service_is_driven_when_it_is_due_and_once() {
    let (driven, when) = channel();
    let due = Instant::now() + Duration::from_millis(1);
    let reactor = Reactor::new(Clock { due: Some(due), driven }, vec![], Gate::new(1)).unwrap();
    let handle = reactor.handle();
    let thread = std::thread::spawn(|| reactor.run().map(drop));
    assert!(when.recv().unwrap() >= due);
    handle.stop();
    thread.join().unwrap().unwrap();
    assert!(when.recv().is_err(), "once");
}
