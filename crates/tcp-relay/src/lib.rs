//! Connections relayed.

mod admin;
mod choice;
mod config;
mod error;
mod metrics;
pub mod proxy;
mod stats;
