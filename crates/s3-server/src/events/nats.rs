//! Sends events to a stream of JetStream, in a NATS server.
//!
//! A message is published as a request. JetStream replies once the stream has stored the message; a
//! NATS server replies that nobody responds if no stream has the subject.

use async_nats::client::RequestErrorKind;
use async_nats::{ConnectOptions, HeaderMap, Request, ServerAddr};
use ring::digest::{SHA256, digest};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;

use crate::auth::canonical::push_hex;
use crate::errors::chain;
use crate::events::options::{EventTarget, NatsLogin};
use crate::events::send_error::SendError;

/// The header by which JetStream recognizes a message that it has stored before.
const MESSAGE_ID: &str = "Nats-Msg-Id";

/// The error code of JetStream for a message above the maximum length of a stream.
const STREAM_MESSAGE_EXCEEDS_MAXIMUM: u64 = 10_054;

/// A client of a NATS server.
pub(super) struct Client {
    address: ServerAddr,
    subject: String,
    options: Box<ConnectOptions>,
    /// `None` before the first message, and after one that failed.
    connection: Option<async_nats::Client>,
}

impl Client {
    /// Creates a client, without a connection.
    pub(super) fn new(
        target: &EventTarget,
        subject: &str,
        login: Option<&NatsLogin>,
    ) -> Result<Self, String> {
        let address: ServerAddr =
            target.url.parse().map_err(|error| format!("its URL: {}", chain(&error)))?;
        if address.host().is_empty() {
            return Err("its URL has no host".to_owned());
        }
        if address.has_user_pass() {
            return Err("its URL has no user: use the options user and password".to_owned());
        }
        if subject.is_empty()
            || subject.contains(['*', '>'])
            || subject.contains(char::is_whitespace)
        {
            return Err("its subject is a name without *, > and blanks".to_owned());
        }
        let options = ConnectOptions::new()
            .name("haul")
            // A connection that was dropped must not come back and publish what it still holds.
            .max_reconnects(1)
            .connection_timeout(target.timeout)
            .request_timeout(Some(target.timeout));
        let options = match login.cloned() {
            None => options,
            Some(NatsLogin::Token(token)) => options.token(token),
            Some(NatsLogin::Password(user, password)) => options.user_and_password(user, password),
        };
        let options = match tls(target)? {
            None => options,
            Some(config) => options.tls_client_config(config).require_tls(true),
        };
        let (subject, options) = (subject.to_owned(), Box::new(options));
        Ok(Self { address, subject, options, connection: None })
    }

    /// Publishes a message, and waits until the stream has stored it.
    pub(super) async fn send(&mut self, message: Vec<u8>) -> Result<(), SendError> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let connected =
                    ConnectOptions::clone(&self.options).connect(self.address.clone()).await;
                connected.map_err(|error| SendError::Failed(chain(&error)))?
            }
        };
        let published = self.publish(&connection, message).await;
        // A connection that has failed is not used again.
        if !matches!(published, Err(SendError::Failed(_))) {
            self.connection = Some(connection);
        }
        published
    }

    async fn publish(
        &self,
        connection: &async_nats::Client,
        message: Vec<u8>,
    ) -> Result<(), SendError> {
        let mut headers = HeaderMap::new();
        headers.insert(MESSAGE_ID, message_id(&message));
        let request = Request::new().payload(message.into()).headers(headers);
        let reply = connection.send_request(self.subject.clone(), request).await;
        let reply = reply.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => SendError::Failed(format!(
                "no stream of JetStream has the subject {}",
                self.subject
            )),
            RequestErrorKind::MaxPayloadExceeded => SendError::TooLong(chain(&error)),
            _ => SendError::Failed(chain(&error)),
        })?;
        check(&reply.payload)
    }
}

/// Returns the name of a message. One that is sent again has the same name.
fn message_id(message: &[u8]) -> String {
    let mut id = String::with_capacity(64);
    push_hex(&mut id, digest(&SHA256, message).as_ref());
    id
}

/// Fails unless a reply says that a stream has stored the message.
fn check(reply: &[u8]) -> Result<(), SendError> {
    let reply: Value = serde_json::from_slice(reply).unwrap_or_default();
    let error = &reply["error"];
    match reply["stream"].as_str() {
        Some(_stream) if error.is_null() => Ok(()),
        None if error.is_null() => Err(SendError::Failed(
            "no stream has replied: another client listens to the subject".to_owned(),
        )),
        _ => {
            let text = error["description"].as_str().unwrap_or("?");
            let why = format!("the stream refuses the message: {}", text.escape_debug());
            Err(match error["err_code"].as_u64() {
                Some(STREAM_MESSAGE_EXCEEDS_MAXIMUM) => SendError::TooLong(why),
                _ => SendError::Failed(why),
            })
        }
    }
}

/// Returns the configuration of TLS with the target's own certificates; `None` if it has none.
fn tls(target: &EventTarget) -> Result<Option<ClientConfig>, String> {
    let (authorities, identity) = (&target.authorities, &target.client_identity);
    let Some(authorities) = authorities else {
        return match identity {
            None => Ok(None),
            Some(_) => Err("a client certificate for NATS needs a ca".to_owned()),
        };
    };
    // Another provider that the process selected stays.
    drop(rustls::crypto::ring::default_provider().install_default());
    let fail = |what: &str, why: String| format!("its {what}: {why}");
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities) {
        let certificate = certificate.map_err(|error| fail("CA", error.to_string()))?;
        roots.add(certificate).map_err(|error| fail("CA", error.to_string()))?;
    }
    let config = ClientConfig::builder().with_root_certificates(roots);
    let Some(identity) = identity else { return Ok(Some(config.with_no_client_auth())) };
    let fail = |why: String| fail("client certificate", why);
    let chain = CertificateDer::pem_slice_iter(identity).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| fail(error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(identity).map_err(|error| fail(error.to_string()))?;
    let config = config.with_client_auth_cert(chain, key);
    config.map(Some).map_err(|error| fail(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::options::EventService;

    fn target(url: &str, subject: &str) -> EventTarget {
        let service = EventService::Nats { subject: subject.to_owned(), login: None };
        EventTarget::new("a", url, service)
    }

    #[test]
    fn invalid_settings_are_refused() {
        let new = |url: &str, subject: &str| Client::new(&target(url, subject), subject, None);
        assert!(new("nats://localhost", "a.b").is_ok() && new("tls://h:1", "a").is_ok());
        for (url, subject) in [
            ("http://h", "a"),
            ("nats://", "a"),
            ("nats://user:password@h", "a"),
            ("nats://h", ""),
            ("nats://h", "a.*"),
            ("nats://h", "a.>"),
            ("nats://h", "a b"),
        ] {
            assert!(new(url, subject).is_err(), "{url} {subject}");
        }
        for (authorities, identity) in [(Some("x"), Some("y")), (None, Some("y"))] {
            let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
            let mut target = target("tls://h", "a");
            (target.authorities, target.client_identity) = (bytes(authorities), bytes(identity));
            assert!(Client::new(&target, "a", None).is_err(), "{authorities:?}");
        }
    }

    #[test]
    fn only_a_stream_acknowledges() {
        assert_eq!(check(br#"{"stream":"events","seq":7}"#), Ok(()));
        for reply in [
            &b""[..],
            b"+OK",
            b"{}",
            br#"{"error":{"code":503,"description":"full"},"stream":"events"}"#,
        ] {
            let checked = check(reply);
            assert!(
                matches!(checked, Err(SendError::Failed(_))),
                "{}",
                String::from_utf8_lossy(reply)
            );
        }
        let too_long = br#"{"error":{"code":400,"err_code":10054,"description":"d"}}"#;
        assert!(matches!(check(too_long), Err(SendError::TooLong(_))));
    }
}
