//! Sends messages to the service of a target.

use haul_file_store::QueuedEvent;

#[cfg(feature = "nats")]
use crate::events::nats;
use crate::events::options::{EventService, EventTarget};
use crate::events::record::message;
use crate::events::send_error::SendError;
use crate::events::webhook;

/// A client of a target's service, whose connection stays open.
pub(super) enum Sender {
    Webhook(webhook::Client),
    #[cfg(feature = "nats")]
    Nats(nats::Client),
}

impl Sender {
    /// Creates a client, without a connection.
    ///
    /// # Errors
    /// The reason why the target's settings are invalid.
    pub(super) fn new(target: &EventTarget) -> Result<Self, String> {
        target.check()?;
        match &target.service {
            EventService::Webhook { authorization, secret } => {
                let (authorization, secret) = (authorization.as_deref(), secret.as_deref());
                webhook::Client::new(target, authorization, secret).map(Self::Webhook)
            }
            #[cfg(feature = "nats")]
            EventService::Nats { subject, login } => {
                nats::Client::new(target, subject, login.as_ref()).map(Self::Nats)
            }
        }
    }

    /// Sends events in one message, and waits until the service has accepted it.
    pub(super) async fn send(&mut self, events: &[QueuedEvent]) -> Result<(), SendError> {
        match self {
            Self::Webhook(client) => client.send(message(events)).await,
            #[cfg(feature = "nats")]
            Self::Nats(client) => client.send(message(events)).await,
        }
    }
}
