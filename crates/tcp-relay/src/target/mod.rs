//! Selects targets for connections, checks their health, and counts their connections.

mod balance;
mod check;
mod health;
mod local_errors;
pub(crate) mod resolver;
mod table;

pub use balance::Balance;
pub(crate) use check::Checker;
pub use health::CheckOptions;
pub(crate) use local_errors::is_local_exhaustion;
pub use table::TargetStats;
pub(crate) use table::{ActiveTarget, Attempts, Targets};
