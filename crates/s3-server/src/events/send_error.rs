//! Errors of sending events. Pure.

/// Why events were not sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SendError {
    /// The service accepts no message of this length.
    TooLong(String),
    Failed(String),
}

impl SendError {
    pub(super) fn into_reason(self) -> String {
        match self {
            Self::TooLong(why) | Self::Failed(why) => why,
        }
    }
}
