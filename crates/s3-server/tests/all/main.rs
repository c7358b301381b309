//! The server as clients see it: over TCP, on a real store in a directory of its own.

mod admin;
mod auth;
mod bad_input;
mod client;
mod conditions;
mod ending;
mod faults;
mod integrity;
mod listing;
mod objects;
mod signing;
mod uploads;
