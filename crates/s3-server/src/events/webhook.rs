//! Sends events to a target.

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Certificate, Identity, Response, StatusCode, Url, redirect};
use ring::hmac;

use crate::auth::canonical::push_hex;
use crate::errors::chain;
use crate::events::options::EventTarget;
use crate::events::send_error::SendError;

/// The header with the HMAC-SHA256 of the body.
const SIGNATURE: &str = "x-haul-signature-256";

/// The maximum length of a response's body, in bytes. A longer one is not read to its end, which
/// closes the connection.
const RESPONSE_BYTES_MAX: usize = 4 << 10;

/// The maximum length of a response that is repeated in messages, in characters.
const MESSAGE_CHARS_MAX: usize = 200;

/// A client of a webhook, whose connection stays open.
pub(super) struct Client {
    http: reqwest::Client,
    url: Url,
    authorization: Option<HeaderValue>,
    secret: Option<hmac::Key>,
}

impl Client {
    /// Creates a client, without a connection. Each message has this `Authorization`, and is signed
    /// with this secret.
    pub(super) fn new(
        target: &EventTarget,
        authorization: Option<&str>,
        secret: Option<&str>,
    ) -> Result<Self, String> {
        // Another provider that the process selected stays.
        drop(rustls::crypto::ring::default_provider().install_default());
        let url = Url::parse(&target.url).map_err(|error| format!("its URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err("its URL begins with http:// or https://".into());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("its URL has no user: use the option authorization".into());
        }
        let builder = reqwest::Client::builder()
            .http1_only()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .timeout(target.timeout)
            .connect_timeout(target.timeout)
            .pool_max_idle_per_host(1)
            .user_agent("haul");
        let builder = match &target.authorities {
            Some(pem) => {
                let certificates = Certificate::from_pem_bundle(pem).map_err(|error| chain(&error));
                builder.tls_certs_only(certificates.map_err(|why| format!("its CA: {why}"))?)
            }
            None => builder,
        };
        let builder = match &target.client_identity {
            Some(pem) => {
                let identity = Identity::from_pem(pem).map_err(|error| chain(&error));
                builder.identity(identity.map_err(|why| format!("its client certificate: {why}"))?)
            }
            None => builder,
        };
        let http = builder.build().map_err(|error| chain(&error))?;
        let value = |text: &str| {
            let mut value = HeaderValue::from_str(text)
                .map_err(|_not_a_value| "its authorization can be no header".to_owned())?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        };
        let authorization = authorization.map(value).transpose()?;
        let secret = secret.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()));
        Ok(Self { http, url, authorization, secret })
    }

    /// Posts a message. Only a response with a status of 2xx is a success.
    pub(super) async fn send(&self, message: Vec<u8>) -> Result<(), SendError> {
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
        let response = response.map_err(|error| SendError::Failed(chain(&error.without_url())))?;
        let status = response.status();
        // The connection can be used again once the body was read.
        let body = beginning(response).await;
        if status.is_success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&body);
        let text: String = text.chars().take(MESSAGE_CHARS_MAX).collect();
        let why = format!("the response is {status}: {}", text.trim().escape_debug());
        Err(match status {
            StatusCode::PAYLOAD_TOO_LARGE => SendError::TooLong(why),
            _ => SendError::Failed(why),
        })
    }
}

/// Returns the beginning of a response's body, or all of it.
async fn beginning(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < RESPONSE_BYTES_MAX
        && let Ok(Some(chunk)) = response.chunk().await
    {
        body.extend_from_slice(&chunk);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The URL is shown on a page that every client of the machine can read.
    #[test]
    fn url_is_http_and_has_no_secrets() {
        let new = |url: &str| Client::new(&EventTarget::webhook("a", url), None, None).map(drop);
        assert_eq!(new("https://example.com:1/hook"), Ok(()));
        for url in ["nats://h", "/hook", "http://user@h", "http://:password@h", "http://a:b@h"] {
            assert!(new(url).is_err(), "{url}");
        }
    }
}
