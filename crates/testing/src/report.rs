//! Prints why a test is skipped, and in which situation it failed.

use std::io::Write;

/// Prints to stderr that the test is skipped, and why. The test must return after the call.
///
/// # Panics
/// Panics if the environment has `CI=true`, because continuous integration must run every test.
#[expect(clippy::panic, reason = "it fails the test")]
pub fn skip(reason: &str) {
    if std::env::var("CI").is_ok_and(|ci| ci == "true") {
        panic!("the test cannot run, and CI=true forbids skipping: {reason}");
    }
    // The test harness would capture `eprintln!`. The leading newline ends the line on which the
    // harness printed the name of the test.
    let line = format!("\nskipped: {reason}\n");
    drop(std::io::stderr().write_all(line.as_bytes()));
}

/// A text, such as the seed of one iteration, that is printed if the thread panics before this
/// value is dropped.
#[derive(Debug)]
pub struct PrintOnPanic(pub String);

impl Drop for PrintOnPanic {
    #[expect(clippy::print_stderr, reason = "part of the panic message")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in {}", self.0);
        }
    }
}
