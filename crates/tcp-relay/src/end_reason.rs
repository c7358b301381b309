//! Names the reasons why connections end.

/// The reason why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// Both sides closed cleanly, and every byte was delivered. With HTTP: the session ended after
    /// a complete response or an error response of the relay, or the client closed between
    /// requests.
    Clean,
    /// One side was reset or failed, so the relay reset the other side.
    Reset,
    /// No byte moved within the idle timeout. With HTTP: the client sent no request within the
    /// keep-alive time, or a response body made no progress.
    Idle,
    /// One side had sent EOF or had failed, and no byte moved within the half-closed timeout.
    HalfClosed,
    /// No target accepted a connection.
    NoTarget,
    /// The PROXY header was missing, malformed or late, or its sender is not trusted.
    BadProxy,
    /// The TLS handshake failed or was late.
    BadTls,
    /// The relay was stopped, or the drain time was over, before the connection ended.
    Drained,
    /// The connection waited for a request or a PROXY header, and gave way to a new connection of
    /// the same client, which was at its limit.
    Evicted,
}

pub(crate) const END_REASONS: usize = 9;

impl EndReason {
    /// All reasons, in the order in which [`Stats`](crate::Stats) counts them.
    pub const ALL: [Self; END_REASONS] = [
        Self::Clean,
        Self::Reset,
        Self::Idle,
        Self::HalfClosed,
        Self::NoTarget,
        Self::BadProxy,
        Self::BadTls,
        Self::Drained,
        Self::Evicted,
    ];

    /// Returns the value of the reason's label in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Reset => "reset",
            Self::Idle => "idle",
            Self::HalfClosed => "half_closed",
            Self::NoTarget => "no_target",
            Self::BadProxy => "bad_proxy",
            Self::BadTls => "bad_tls",
            Self::Drained => "drained",
            Self::Evicted => "evicted",
        }
    }
}
