//! Where connections go: the targets, what is known of them, and which is next.

mod balance;
mod check;
mod health;
mod lacking;
mod table;

pub use balance::Balance;
pub(crate) use check::Checker;
pub use health::CheckOptions;
pub(crate) use lacking::is_ours;
pub use table::Seen;
pub(crate) use table::{Attempts, Targets, Using};
