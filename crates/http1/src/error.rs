//! Defines the error for an invalid message.

/// The reason why a message was rejected, with the status of the response.
///
/// The end of a rejected message is unknown, so the connection must be closed after the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {reason}")]
pub struct HttpError {
    /// The status that a server responds with. A gateway that rejects a *response* sends 502
    /// instead.
    pub status: u16,
    /// The reason, for the response and the log.
    pub reason: &'static str,
}

impl HttpError {
    /// Creates an error.
    pub const fn new(status: u16, reason: &'static str) -> Self {
        Self { status, reason }
    }

    /// Creates an error of status 400: the message violates the grammar, or is ambiguous.
    pub(crate) const fn bad_request(reason: &'static str) -> Self {
        Self::new(400, reason)
    }
}
