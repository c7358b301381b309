//! Defines and checks the options of a relay that parses HTTP.

use std::time::Duration;

use haul_http1::{ChunkLimits, HeadLimits};
use haul_reactor::Rate;

/// Options of a relay that parses HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// Limits of request and response heads.
    pub head_limits: HeadLimits,
    /// Limits of the framing of chunked bodies.
    pub chunk_limits: ChunkLimits,
    /// The length in bytes of the longest accepted request body; the relay responds with 413 to
    /// longer ones. `None` (the default): unlimited.
    pub request_body_bytes_max: Option<u64>,
    /// The name of the relay in `Via` fields: letters, digits and `-._~`. Default: `haul`.
    pub via: String,
    /// `true` to forward the client's `Forwarded` and `X-Forwarded-*` fields with the client's
    /// address appended. By default the relay drops these fields, because any client can forge
    /// them. Set this option only if all clients are proxies under your control.
    pub trust_forwarded: bool,
    /// `true` (the default) to allow upgrades to websockets.
    pub upgrade: bool,
    /// The rate of requests of one client, above which the relay responds with 429. `None` (the
    /// default): unlimited.
    pub peer_rate: Option<Rate>,
    /// The time for which a client's connection may stay open without a request; then the relay
    /// closes it. `None`: unlimited. Default: 1 min.
    pub idle_time_max: Option<Duration>,
    /// The time in which a target must begin its final response, counted from the last byte moved;
    /// otherwise the relay responds with 504. Default: 1 min.
    pub response_time_max: Duration,
    /// The maximum number of idle connections that each thread keeps to each target; 0: none.
    /// Default: 32.
    pub idle_connections_max: usize,
    /// The time after which an idle upstream connection is closed. Default: 15 s.
    pub idle_connection_time_max: Duration,
    /// The time without progress of a request or response body after which the relay ends the
    /// exchange of this request and its response. Default: 1 min.
    pub body_time_max: Duration,
    /// The time until the beginning of the response from which on a request is slow, for the list of
    /// slow requests at the admin address; `None` for no list. Default: 1 s.
    pub slow_request_time: Option<Duration>,
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
            peer_rate: None,
            idle_time_max: Some(Duration::from_mins(1)),
            response_time_max: Duration::from_mins(1),
            body_time_max: Duration::from_mins(1),
            idle_connections_max: 32,
            idle_connection_time_max: Duration::from_secs(15),
            slow_request_time: Some(Duration::from_secs(1)),
        }
    }
}

impl HttpOptions {
    /// Returns an error if an option is invalid.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let times = [
            self.idle_time_max.unwrap_or(Duration::MAX),
            self.response_time_max,
            self.body_time_max,
        ];
        if self.via.is_empty() || !self.via.bytes().all(is_token) {
            return Err("the name in Via must consist of letters, digits, and -._~");
        }
        if times.iter().any(Duration::is_zero) {
            return Err("the HTTP timeouts must be longer than 0");
        }
        Ok(())
    }
}
