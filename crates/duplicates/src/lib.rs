//! x
mod error;
mod escape;
mod pattern;
pub mod report;
pub mod shell;

pub use error::{Error, Result};
pub use pattern::{Pattern, Syntax};
