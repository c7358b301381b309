//! Tests over TCP, most of them with a store in a temporary directory.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "test helpers fail by panics, like tests"
)]

mod access;
mod admin;
mod auth;
mod bad_input;
mod bucket_logs;
mod client;
mod conditions;
mod cors;
mod documents;
mod encryption;
mod event_targets;
mod events;
mod faults;
mod forms;
mod framing;
mod hostile;
mod hostile_heads;
mod hosts;
mod inline;
mod integrity;
mod lifecycle;
mod listing;
mod locked;
mod logs;
mod mutations;
#[cfg(feature = "nats")]
mod nats;
mod object_lock;
mod objects;
mod pinned;
mod quotas;
mod releases;
mod reply;
mod same_answers;
mod shutdown;
mod signing;
mod small_puts;
mod standby;
mod uploads;
mod versions;
mod websites;
