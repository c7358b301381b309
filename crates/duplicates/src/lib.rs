//! x
pub mod act;
mod error;
mod escape;
pub mod keep;
mod pattern;
mod replicas;
pub mod report;
mod search;
pub mod shell;
mod transform;

pub use error::{Error, Result};
pub use pattern::{Pattern, Syntax};
pub use search::{Events, Found, Options, Phase, Replication, find};
pub use transform::{Transform, TransformOptions};
