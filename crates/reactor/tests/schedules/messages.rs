//! Tests messages from other threads to a connection whose event loop waits or works.

use haul_reactor::{MessageSender, wake_once};
use haul_sync::thread;

use crate::explore::explore_part;
use crate::{Fixture, Message, SENDERS};

/// Sends two messages, and then two more that share a wake-up.
fn send(messages: &MessageSender<Message>, name: u8) {
    messages.send((name, 0));
    messages.send((name, 1));
    wake_once(&mut || (2..4).for_each(|number| messages.send((name, number))));
}

#[test]
fn every_message_is_delivered_in_order() {
    explore_part("messages", 1, || {
        let reactor = Fixture::new();
        let start = |name| {
            let messages = reactor.senders.recv().unwrap();
            thread::spawn(move || send(&messages, name))
        };
        let senders: Vec<_> = (0..SENDERS).map(start).collect();
        let mut next = [0; SENDERS as usize];
        for _ in 0..8 {
            let (name, number) = reactor.delivered.recv().unwrap();
            let next = &mut next[usize::from(name)];
            assert_eq!(number, *next, "the messages of a thread are in order");
            *next += 1;
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        reactor.handle.stop();
        reactor.join();
    });
}

#[test]
fn messages_between_two_reactors_are_answered() {
    explore_part("messages between reactors", 1, || {
        let (one, two) = (Fixture::on(0), Fixture::on(1));
        let (to_one, to_two) = (one.senders.recv().unwrap(), two.senders.recv().unwrap());
        to_one.send((0, 0));
        let answering = thread::spawn(move || {
            for number in 1..4 {
                assert_eq!(two.delivered.recv().unwrap(), (0, number));
                to_one.send((1, number));
            }
            two
        });
        assert_eq!(one.delivered.recv().unwrap(), (0, 0));
        for number in 1..4 {
            to_two.send((0, number));
            assert_eq!(one.delivered.recv().unwrap(), (1, number));
        }
        let two = answering.join().unwrap();
        for reactor in [one, two] {
            reactor.handle.stop();
            reactor.join();
        }
    });
}
