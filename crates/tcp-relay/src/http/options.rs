//! The choices of a relay that reads HTTP.

use std::time::Duration;

use haul_http1::{ChunkLimits, HeadLimits};

/// How HTTP is relayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// How much of a head is taken.
    pub head_limits: HeadLimits,
    /// How much of a chunked body is taken that is not data.
    pub chunk_limits: ChunkLimits,
    /// The longest body of a request; longer ones are refused with 413. None: any.
    pub request_body_bytes_max: Option<u64>,
    /// The name in `Via`: a token. `haul`.
    pub via: String,
    /// Whether what clients say in `Forwarded` and `X-Forwarded-*` is passed on, with the client's
    /// address added to it. If not, it is dropped: anybody can write it. Say so only where all
    /// clients are proxies of one's own.
    pub trust_forwarded: bool,
    /// Whether a client and a target may agree to leave HTTP for websockets.
    pub upgrade: bool,
    /// How long the head of a request may take from its first byte on; then it is 408. 15 s.
    pub head_time_max: Duration,
    /// How long a connection may wait for its first byte, or for the next request. 1 min.
    pub keep_alive_time_max: Duration,
    /// How long a target may take for the head of a response; then it is 504. 1 min.
    pub response_time_max: Duration,
    /// How many connections to each target a thread keeps that no client uses. 32.
    pub spares_max: usize,
    /// How long. 15 s.
    pub spare_time_max: Duration,
    /// How long the bodies of an exchange may stand still. 1 min.
    pub body_time_max: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            head_limits: HeadLimits::default(),
            chunk_limits: ChunkLimits::default(),
            request_body_bytes_max: None,
            via: "haul".to_owned(),
            trust_forwarded: false,
            upgrade: true,
            head_time_max: Duration::from_secs(15),
            keep_alive_time_max: Duration::from_mins(1),
            response_time_max: Duration::from_mins(1),
            body_time_max: Duration::from_mins(1),
            spares_max: 32,
            spare_time_max: Duration::from_secs(15),
        }
    }
}

impl HttpOptions {
    /// What cannot work.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let times = [
            self.head_time_max,
            self.keep_alive_time_max,
            self.response_time_max,
            self.body_time_max,
        ];
        if self.via.is_empty() || !self.via.bytes().all(is_token) {
            return Err("the name in Via is letters, digits, and -._~");
        }
        if times.iter().any(Duration::is_zero) {
            return Err("a time of HTTP must be longer than nothing");
        }
        Ok(())
    }
}
