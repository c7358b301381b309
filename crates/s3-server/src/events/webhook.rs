//! Sends events to a webhook.

use std::fmt;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Certificate, Identity, Url, redirect};
use ring::hmac;

use crate::auth::canonical::push_hex;
use crate::errors::chain;

/// The default length of a full queue.
const QUEUE_EVENTS_MAX: u64 = 10_000_000;

/// A webhook: an HTTP server that receives events.
#[derive(Clone)]
pub struct Webhook {
    /// The name in ARNs: `arn:haul:sqs:::NAME`.
    pub name: String,
    /// The URL to which events are posted.
    pub url: String,
    /// The value of the header `Authorization`, such as `Bearer TOKEN`.
    pub authorization: Option<String>,
    /// The key of the HMAC-SHA256 of each message in the header `X-Haul-Signature-256`.
    pub secret: Option<String>,
    /// A certificate chain and its private key in PEM, with which the server authenticates itself.
    pub client_identity: Option<Vec<u8>>,
    /// The certificates of the authorities that may have issued the target's certificate, in PEM.
    /// `None` means those of the system.
    pub authorities: Option<Vec<u8>>,
    /// The maximum number of records in a message. Default: 32.
    pub batch_max: usize,
    /// The time after which a request without a response has failed. Default: 10 s.
    pub timeout: Duration,
    /// The number of queued events above which the oldest are dropped. Default: 10 million.
    pub queue_events_max: u64,
    /// The age at which queued events are dropped. `None`: never. Default: `None`.
    pub queue_age_max: Option<Duration>,
}

impl Webhook {
    /// Returns a webhook with the default settings.
    #[must_use]
    pub fn new(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            url: url.into(),
            authorization: None,
            secret: None,
            client_identity: None,
            authorities: None,
            batch_max: 32,
            timeout: Duration::from_secs(10),
            queue_events_max: QUEUE_EVENTS_MAX,
            queue_age_max: None,
        }
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The header with the HMAC-SHA256 of the body.
const SIGNATURE: &str = "x-haul-signature-256";

/// The maximum length of a response that is repeated in messages, in bytes.
const RESPONSE_BYTES_MAX: usize = 200;

/// A client of a webhook, whose connection stays open.
pub(super) struct Client {
    http: reqwest::Client,
    url: Url,
    authorization: Option<HeaderValue>,
    secret: Option<hmac::Key>,
}

/// Returns the reason why a webhook's settings are invalid.
pub(super) fn check(webhook: &Webhook) -> Result<(), String> {
    let is_name_byte =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    let name = &webhook.name;
    if name.is_empty() || name.len() > 63 || !name.bytes().all(is_name_byte) {
        return Err("its name has 1 to 63 lowercase letters, digits or characters of - _ .".into());
    }
    if webhook.batch_max == 0 || webhook.batch_max > 1000 {
        return Err("a message has 1 to 1000 records".into());
    }
    if webhook.queue_events_max == 0 {
        return Err("its queue has at least one event".into());
    }
    if webhook.timeout.is_zero() {
        return Err("its timeout is zero".into());
    }
    Client::new(webhook).map(drop)
}

impl Client {
    /// Creates a client, without a connection.
    pub(super) fn new(webhook: &Webhook) -> Result<Self, String> {
        // Another provider that the process selected stays.
        drop(rustls::crypto::ring::default_provider().install_default());
        let url = Url::parse(&webhook.url).map_err(|error| format!("its URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err("its URL begins with http:// or https://".into());
        }
        let builder = reqwest::Client::builder()
            .http1_only()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .timeout(webhook.timeout)
            .connect_timeout(webhook.timeout)
            .pool_max_idle_per_host(1)
            .user_agent("haul");
        let builder = match &webhook.authorities {
            Some(pem) => {
                let certificates = Certificate::from_pem_bundle(pem).map_err(|error| chain(&error));
                builder.tls_certs_only(certificates.map_err(|why| format!("its CA: {why}"))?)
            }
            None => builder,
        };
        let builder = match &webhook.client_identity {
            Some(pem) => {
                let identity = Identity::from_pem(pem).map_err(|error| chain(&error));
                builder.identity(identity.map_err(|why| format!("its client certificate: {why}"))?)
            }
            None => builder,
        };
        let http = builder.build().map_err(|error| chain(&error))?;
        let value = |text: &String| {
            let mut value = HeaderValue::from_str(text)
                .map_err(|_not_a_value| "its authorization can be no header".to_owned())?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        };
        let authorization = webhook.authorization.as_ref().map(value).transpose()?;
        let secret = webhook.secret.as_ref();
        let secret = secret.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()));
        Ok(Self { http, url, authorization, secret })
    }

    /// Posts a message. Only a response with a status of 2xx is a success.
    pub(super) async fn send(&self, message: Vec<u8>) -> Result<(), String> {
        let mut request = self.http.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if let Some(secret) = &self.secret {
            let mut signature = "sha256=".to_owned();
            push_hex(&mut signature, hmac::sign(secret, &message).as_ref());
            request = request.header(SIGNATURE, signature);
        }
        let response = request.body(message).send().await;
        let response = response.map_err(|error| chain(&error.without_url()))?;
        let status = response.status();
        if status.is_success() {
            // The connection can be used again once the body was read.
            drop(response.bytes().await);
            return Ok(());
        }
        let text = response.text().await.unwrap_or_default();
        let text: String = text.chars().take(RESPONSE_BYTES_MAX).collect();
        Err(format!("the response is {status}: {}", text.trim().escape_debug()))
    }
}
