//! Tests that a reactor ends, at any step of its loop at which it is stopped or drained.

use haul_sync::thread;

use crate::Fixture;
use crate::explore::explore_part;

#[test]
fn stopped_reactor_ends() {
    explore_part("stops", 1, || {
        let reactor = Fixture::new();
        let handle = reactor.handle.clone();
        let stopping = thread::spawn(move || handle.stop());
        // The connection may not have been accepted when the reactor ends.
        if let Ok(messages) = reactor.senders.recv() {
            messages.send((0, 0));
        }
        stopping.join().unwrap();
        reactor.join();
    });
}

#[test]
fn drained_reactor_ends_with_its_last_connection() {
    explore_part("drains", 1, || {
        let reactor = Fixture::new();
        let handle = reactor.handle.clone();
        let draining = thread::spawn(move || handle.drain());
        if let Ok(messages) = reactor.senders.recv() {
            messages.send((0, 0));
            messages.send((0, 1));
        }
        draining.join().unwrap();
        reactor.join();
    });
}
