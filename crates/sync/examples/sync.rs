//! Waits for another thread with a lock and a condition variable.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::sync::Arc;

use haul_sync::{Condvar, Mutex, thread};

fn main() {
    let shared = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
    let other = Arc::clone(&shared);
    let sending = thread::spawn(move || {
        other.0.lock().push("a message");
        other.1.notify_one();
    });
    let (messages, sent) = &*shared;
    let mut messages = messages.lock();
    while messages.is_empty() {
        sent.wait(&mut messages);
    }
    println!("{}", messages[0]);
    drop(messages);
    assert!(sending.join().is_ok());
}
