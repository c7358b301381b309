//! Provides helpers that the tests of several crates share.
//!
//! # What it is
//! - [`LoopImage`]: a file system on a loop device, for tests that count requests or fill a disk
//! - [`Random`], [`noise`], [`seed`] and [`replay_command`]: reproducible random numbers
//! - [`depth`]: how deep a random exploration goes
//! - [`eventually`], [`until_full`] and [`within_a_minute`]: waiting for a condition or a result;
//!   [`PATIENCE`]: the timeout of everything else that a test waits for
//! - [`disk_dir`], [`write_deep_file`], [`skip`], [`PrintOnPanic`]: temporary directories, skipped
//!   tests, messages of failed tests
//! - [`child_test`], [`program`], [`Finished`]: other processes and their output
//! - [`http`]: one end of an HTTP/1.1 connection
//! - [`tls`]: a certificate authority, and one end of a TLS connection
//! - [`oidc`]: an OpenID Connect provider
//! - [`WebhookReceiver`]: an HTTP server that records messages
//! - [`ReservedAddress`]: an address for a process that the test starts later
//! - [`Transport`], [`Endpoint`], [`over!`]: the same tests over TCP, inherited sockets and TLS
//! - [`raise_descriptor_limit`], [`memory_lock`]: limits of the process
//! - [`docs`]: the examples in documentation; [`assert_well_formed`]: documents of HTML and SVG
//! - [`fixtures`]: directories that released versions wrote
//!
//! # Example
//! ```
//! use haul_testing::{Random, eventually};
//!
//! let (mut random, mut sum) = (Random(7), 0);
//! eventually("the sum is large", || {
//!     sum += random.below(10);
//!     sum > 100
//! });
//! ```
//!
//! # What it is not
//! The crate is not linked into the program `haul`. Outside of tests, the bench and the simulated
//! disk use only [`Random`] and helpers that return errors, such as [`DetachedImage`] and
//! [`run()`]. The other helpers panic on failure, as a test does. The crate uses no other crate of
//! the workspace, so that every crate can use it in its tests.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

mod child;
mod dir;
pub mod docs;
pub mod fixtures;
#[cfg(feature = "net")]
pub mod http;
mod image;
mod limits;
mod markup;
#[cfg(feature = "net")]
pub mod oidc;
mod program;
mod random;
mod report;
mod reserved;
mod run;
#[cfg(feature = "net")]
pub mod tls;
#[cfg(feature = "net")]
mod transport;
mod wait;
#[cfg(feature = "net")]
mod webhook;

pub use child::{child_test, line_with};
pub use dir::{disk_dir, write_deep_file};
pub use image::{DetachedImage, LoopDevice, LoopImage, mount_detached};
pub use limits::{memory_lock, raise_descriptor_limit};
pub use markup::assert_well_formed;
pub use program::{files_below, program, root};
pub use random::{Random, depth, noise, replay_command, seed};
pub use report::{PrintOnPanic, skip};
pub use reserved::ReservedAddress;
pub use run::{Finished, run};
#[cfg(feature = "net")]
pub use transport::{ClientStream, Endpoint, Transport, server_certificate};
pub use wait::{PATIENCE, eventually, until_full, within_a_minute};
#[cfg(feature = "net")]
pub use webhook::WebhookReceiver;
