//! The server as clients see it: over TCP, on a real store in a directory of its own.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests, which may fail like them"
)]

mod admin;
mod auth;
mod bad_input;
mod client;
mod conditions;
mod ending;
mod faults;
mod hostile;
mod inline;
mod integrity;
mod lifecycle;
mod listing;
mod logs;
mod objects;
mod pinned;
mod plain_puts;
mod signing;
mod small_puts;
mod uploads;
