//! Starts the threads, which accept connections, and stops them.

mod admin;
mod handle;
mod server;
mod shutdown;

pub use handle::Handle;
pub use server::{Addresses, Server};
