//! x
mod digest;
mod error;
mod escape;
mod pattern;
pub mod report;
pub mod shell;

pub use digest::{Digest, HashFn};
pub use error::{Error, Result};
pub use pattern::{Pattern, Syntax};
