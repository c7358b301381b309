//! Why a message is not taken.

/// A message that is not taken: the status to answer with, and the reason in plain words.
///
/// Where the message ends is not known, so nothing more of its connection may be read as a
/// message: answer, and close.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {reason}")]
pub struct Refused {
    /// What a server answers with. A gateway that refuses a *response* answers 502 instead.
    pub status: u16,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl Refused {
    /// A reason with its status.
    pub const fn new(status: u16, reason: &'static str) -> Self {
        Self { status, reason }
    }

    /// What breaks the grammar, or may mean different things to different readers.
    pub(crate) const fn bad(reason: &'static str) -> Self {
        Self::new(400, reason)
    }
}
