//! Copies buckets from one S3 server to another while both serve.
//!
//! # What it is
//! [`run`] copies the buckets of the server [`Options::from`] to [`Options::to`]: their settings,
//! and their objects with metadata, tags, locks and all versions. It compares the listings of both
//! servers, and copies what differs, so that each further run copies only what has changed, and a
//! run that was interrupted is continued by the next one. [`Events`] receives what happens.
//!
//! # Example
//! ```no_run
//! use haul_s3_copy::{Endpoint, Event, Events, Options, Summary, run};
//!
//! struct Quiet;
//!
//! impl Events for Quiet {
//!     fn is_stopped(&self) -> bool {
//!         false
//!     }
//!     fn happened(&self, _event: &Event<'_>, _summary: &Summary) {}
//! }
//!
//! # fn main() -> Result<(), haul_s3_copy::Error> {
//! let from = Endpoint::new("http://minio:9000");
//! let to = Endpoint::new("http://127.0.0.1:9000");
//! let summary = run(&Options::new(from, to), &Quiet)?;
//! println!("{} objects, {} failed", summary.objects, summary.failed);
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - An object counts as copied only when the target has stored it, with the ETag of the source, or
//!   with its length if the target cannot compute the same ETag (encryption with keys of clients or
//!   of a key service, unknown parts).
//! - The versions of a key arrive in their order. Versions at the target that are not the first ones
//!   of the source are reported and left alone.
//! - An object is deleted at the target only with [`Options::delete`], and after the source was
//!   asked again.
//! - An object that is replaced during its copy is stored as one or the other, never as a mixture.
//!
//! # Cost
//! Two listings of each bucket, and for each object that is copied a GET and a PUT; a request more
//! for its tags, and for an upload in parts some more. Memory holds for each key in progress up to
//! 4 MiB, and the versions of one key; larger objects are passed on as they arrive.
//!
//! # What it is not
//! It copies nothing back, and does not keep the servers equal: it does not lock the source. The
//! copies have the time of the copy, and other version IDs. The target must list keys in ascending
//! order of their bytes, as S3 does; the source need not.
//!
//! # Sources
//! The S3 API reference, and "Signature Calculations for the Authorization Header" in it.

mod client;
mod copy;
mod error;
mod listing;
mod model;
mod options;
mod plan;
mod planner;
mod report;
mod xml;

pub use copy::run;
pub use error::Error;
pub use options::{Credentials, Endpoint, Options};
pub use report::{Event, Events, NotCarried, Summary};
