//! The settings of event targets. Pure.

use std::fmt;
use std::time::Duration;

/// The default length of a full queue.
const QUEUE_EVENTS_MAX: u64 = 10_000_000;

/// A target of bucket notifications: the service that receives the events, and their queue.
#[derive(Clone)]
pub struct EventTarget {
    /// The name in ARNs: `arn:haul:sqs:::NAME`.
    pub name: String,
    /// The URL of the service.
    pub url: String,
    /// The kind of the service.
    pub service: EventService,
    /// A certificate chain and its private key in PEM, with which the server authenticates itself.
    pub client_identity: Option<Vec<u8>>,
    /// The certificates of the authorities that may have issued the target's certificate, in PEM.
    /// `None` means the system's authorities.
    pub authorities: Option<Vec<u8>>,
    /// The maximum number of records in a message. Default: 32.
    pub batch_max: usize,
    /// The time after which a message without a response has failed. Default: 10 s.
    pub timeout: Duration,
    /// The number of queued events above which the oldest are dropped. Default: 10 million.
    pub queue_events_max: u64,
    /// The age at which queued events are dropped. `None`: never. Default: `None`.
    pub queue_age_max: Option<Duration>,
}

/// A kind of service that receives events.
#[derive(Clone)]
pub enum EventService {
    /// An HTTP server to which messages are posted.
    Webhook {
        /// The value of the header `Authorization`, such as `Bearer TOKEN`.
        authorization: Option<String>,
        /// The key of the HMAC-SHA256 of each message in the header `X-Haul-Signature-256`.
        secret: Option<String>,
    },
    /// A stream of JetStream, in a NATS server.
    #[cfg(feature = "nats")]
    Nats {
        /// The subject of the messages, which a stream has.
        subject: String,
        /// How the server authenticates itself.
        login: Option<NatsLogin>,
    },
}

/// How a client authenticates itself in a NATS server.
#[cfg(feature = "nats")]
#[derive(Clone)]
pub enum NatsLogin {
    /// A token.
    Token(String),
    /// A user's name and password.
    Password(String, String),
}

impl EventTarget {
    /// Returns a webhook with the default settings.
    #[must_use]
    pub fn webhook(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(name, url, EventService::Webhook { authorization: None, secret: None })
    }

    /// Returns a target with the default settings.
    #[must_use]
    pub fn new(name: impl Into<String>, url: impl Into<String>, service: EventService) -> Self {
        Self {
            name: name.into(),
            url: url.into(),
            service,
            client_identity: None,
            authorities: None,
            batch_max: 32,
            timeout: Duration::from_secs(10),
            queue_events_max: QUEUE_EVENTS_MAX,
            queue_age_max: None,
        }
    }

    /// Returns the reason why the settings are invalid for every kind of service.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_name_byte =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
        let name = &self.name;
        if name.is_empty() || name.len() > 63 || !name.bytes().all(is_name_byte) {
            let why = "its name has 1 to 63 lowercase letters, digits or characters of - _ .";
            return Err(why.into());
        }
        if self.batch_max == 0 || self.batch_max > 1000 {
            return Err("a message has 1 to 1000 records".into());
        }
        if self.queue_events_max == 0 {
            return Err("its queue has at least one event".into());
        }
        if self.timeout.is_zero() {
            return Err("its timeout is zero".into());
        }
        Ok(())
    }
}

impl fmt::Debug for EventTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventTarget").field("name", &self.name).finish_non_exhaustive()
    }
}
