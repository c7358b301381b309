//! Defines when the progress of a search is shown.

use clap::ValueEnum;

/// The condition for showing progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowProgress {
    /// If stderr is a terminal
    Auto,
    /// Always
    True,
    /// Never
    False,
}
