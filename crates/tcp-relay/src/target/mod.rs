//! Where connections go: the targets, what is known of them, and which is next.

mod balance;
mod check;
mod health;
mod table;

pub use balance::Balance;
pub(crate) use check::Checker;
pub use health::CheckOptions;
pub(crate) use table::{Attempts, Using};
pub use table::{Seen, Targets};
