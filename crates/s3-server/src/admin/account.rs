//! Logs browsers in and out: a key pair begins a session, or the login of an OpenID Connect provider.

use std::net::Ipv6Addr;
use std::num::NonZero;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haul_http_engine::RequestBody;
use haul_reactor::{Rate, RateLimit};
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};

use crate::access::authorize::Principal;
use crate::access::keys::key_ring::ActiveKey;
use crate::admin::cookie::with_cookie;
use crate::admin::keys::KeyLog;
use crate::admin::login::LoginStep;
use crate::admin::page::{Rejection, error_response, json_page, plain};
use crate::admin::sessions::{NewSession, Proof, Sessions};
use crate::admin::{Admin, operation};

/// The maximum length of a login's body, in bytes.
const BODY_BYTES_MAX: usize = 4 << 10;

/// The longest access key of an attempt to log in that is logged, in bytes.
const LOGGED_NAME_BYTES_MAX: usize = 128;

pub(super) const NO_RANDOM_BYTES: Rejection =
    (StatusCode::INTERNAL_SERVER_ERROR, "The kernel has no random bytes\n");

/// The maximum login rate of each client. It slows down guessing of secret keys that people chose.
const LOGINS_PER_MINUTE: u32 = 30;
const LOGINS_AT_ONCE: u32 = 10;

pub(crate) fn login_limit() -> RateLimit {
    let [requests, burst] = [LOGINS_PER_MINUTE, LOGINS_AT_ONCE]
        .map(|number| NonZero::<u32>::MIN.saturating_add(number - 1));
    RateLimit::new(Rate { requests, period: Duration::from_secs(60), burst })
}

impl Admin {
    /// Executes a step of a login, whose body is JSON.
    pub(crate) async fn log_in(
        &self,
        step: LoginStep,
        request: Request<RequestBody>,
        log: KeyLog,
    ) -> Response<Bytes> {
        if let Some(reason) = operation::foreign(request.method(), request.headers()) {
            return plain(StatusCode::FORBIDDEN, reason);
        }
        if self.keys.is_empty() {
            let text = "The server has no keys: every client of this machine has all rights\n";
            return plain(StatusCode::NOT_FOUND, text);
        }
        let pending = match step {
            LoginStep::Finish => self.pending_logins.take(request.headers(), Instant::now()),
            LoginStep::KeyPair | LoginStep::Start => None,
        };
        // The start of a pending login was limited.
        if pending.is_none()
            && let Some(response) = self.login_rate_rejection(&log)
        {
            return response;
        }
        let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await;
        let body = body.ok().and_then(|it| serde_json::from_slice::<Value>(&it.to_bytes()).ok());
        let Some(body) = body else {
            return plain(StatusCode::BAD_REQUEST, "The body is not JSON, or is too long\n");
        };
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        match step {
            LoginStep::KeyPair => {
                self.log_in_with_keys(text("access_key"), text("secret_key"), log).await
            }
            LoginStep::Start => self.start_login(text("provider")).await,
            LoginStep::Finish => {
                let pending = pending.filter(|pending| pending.provider == text("provider"));
                self.finish_login(pending, text("code"), text("state"), log).await
            }
        }
    }

    /// Begins a session with a key pair.
    async fn log_in_with_keys(
        &self,
        access_key: String,
        secret_key: String,
        log: KeyLog,
    ) -> Response<Bytes> {
        let key = self.keys.find(&access_key).filter(|key| key.has_secret(secret_key.as_bytes()));
        let wrong = "The access key or the secret key is wrong\n";
        let (response, error) = match key {
            Some(key) => (begin(&self.sessions, &key, Instant::now()), None),
            None => (plain(StatusCode::UNAUTHORIZED, wrong), Some(wrong)),
        };
        let name = Some(&*access_key).filter(|name| name.len() <= LOGGED_NAME_BYTES_MAX);
        log.logged_in(name, response.status(), error).await;
        response
    }

    /// Returns the response to a client with too many logins.
    fn login_rate_rejection(&self, log: &KeyLog) -> Option<Response<Bytes>> {
        let peer = log.client.unwrap_or(Ipv6Addr::LOCALHOST.into());
        let wait = self.login_limit.try_take(peer, Instant::now()).err()?;
        let text = "Too many logins of this client: try again later\n";
        let mut response = plain(StatusCode::TOO_MANY_REQUESTS, text);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
        Some(response)
    }

    /// Ends the session of a request.
    pub(super) fn log_out(&self, request: &Request<RequestBody>) -> Response<Bytes> {
        if let Some(reason) = operation::foreign(request.method(), request.headers()) {
            return plain(StatusCode::FORBIDDEN, reason);
        }
        with_cookie(json_page(&json!({})), &self.sessions.end(request.headers()))
    }

    /// Returns the client that sent a request, which may not have logged in.
    pub(super) fn session_json(&self, headers: &HeaderMap) -> Value {
        let key = match self.logins().login(headers, Proof::Page) {
            Ok(Principal::Key(key)) => Some(key),
            _ => None,
        };
        json!({
            "has_keys": !self.keys.is_empty(),
            "has_session": key.is_some() && !headers.contains_key(AUTHORIZATION),
            "name": key.as_deref().map(shown_name),
        })
    }
}

/// Returns the response that begins a session of `key`.
pub(super) fn begin(sessions: &Sessions, key: &ActiveKey, now: Instant) -> Response<Bytes> {
    let Some(NewSession { cookie, page_token }) = sessions.begin(key, now) else {
        return error_response(NO_RANDOM_BYTES);
    };
    let json = json!({ "name": shown_name(key), "page_token": page_token });
    with_cookie(json_page(&json), &cookie)
}

/// Returns the name that the console shows: the access key, or the user of a temporary key.
fn shown_name(key: &ActiveKey) -> &str {
    match (&key.session, &key.user) {
        (Some(_), Some(user)) => user,
        _ => &key.access_key,
    }
}
