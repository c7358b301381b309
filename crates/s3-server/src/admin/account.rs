//! Logs browsers in and out: a key pair begins a session.

use std::net::Ipv6Addr;
use std::num::NonZero;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haul_http_engine::RequestBody;
use haul_reactor::{Rate, RateLimit};
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER, SET_COOKIE};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};

use crate::access::authorize::Principal;
use crate::access::keys::key_ring::AllKeys;
use crate::admin::keys::KeyLog;
use crate::admin::page::{json_page, plain};
use crate::admin::sessions::{NewSession, Proof, Sessions};
use crate::admin::{Admin, operation};

/// The maximum length of a login's body, in bytes.
const BODY_BYTES_MAX: usize = 4 << 10;

/// The maximum login rate of each client. It slows down guessing of secret keys that people chose.
const LOGINS_PER_MINUTE: u32 = 30;
const LOGINS_AT_ONCE: u32 = 10;

pub(crate) fn login_limit() -> RateLimit {
    let [requests, burst] = [LOGINS_PER_MINUTE, LOGINS_AT_ONCE]
        .map(|number| NonZero::<u32>::MIN.saturating_add(number - 1));
    RateLimit::new(Rate { requests, period: Duration::from_secs(60), burst })
}

impl Admin {
    /// Begins a session with the key pair in the body.
    pub(crate) async fn log_in(
        &self,
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
        let (now, peer) = (Instant::now(), log.client.unwrap_or(Ipv6Addr::LOCALHOST.into()));
        if let Err(wait) = self.login_limit.try_take(peer, now) {
            let text = "Too many logins of this client: try again later\n";
            let mut response = plain(StatusCode::TOO_MANY_REQUESTS, text);
            let wait = HeaderValue::from(wait.as_secs() + 1);
            response.headers_mut().insert(RETRY_AFTER, wait);
            return response;
        }
        let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await;
        let pair = body.ok().and_then(|body| serde_json::from_slice(&body.to_bytes()).ok());
        let Some(pair) = pair else {
            return plain(StatusCode::BAD_REQUEST, "The body is not JSON, or is too long\n");
        };
        let response = begin(&self.keys, &self.sessions, &pair, now);
        log.logged_in(pair["access_key"].as_str().unwrap_or_default(), response.status()).await;
        response
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
        let access_key = match self.logins().login(headers, Proof::Page) {
            Ok(Principal::Key(key)) => Some(key.access_key.to_string()),
            _ => None,
        };
        json!({
            "has_keys": !self.keys.is_empty(),
            "has_session": access_key.is_some() && !headers.contains_key(AUTHORIZATION),
            "access_key": access_key,
        })
    }
}

/// Begins a session with a key pair: `access_key` and `secret_key`.
fn begin(keys: &AllKeys, sessions: &Sessions, pair: &Value, now: Instant) -> Response<Bytes> {
    let text = |name: &str| pair[name].as_str().unwrap_or_default();
    let key = keys.find(text("access_key"));
    let Some(key) = key.filter(|key| key.has_secret(text("secret_key").as_bytes())) else {
        return plain(StatusCode::UNAUTHORIZED, "The access key or the secret key is wrong\n");
    };
    let Some(NewSession { cookie, page_token }) = sessions.begin(&key, now) else {
        let text = "The kernel has no random bytes\n";
        return plain(StatusCode::INTERNAL_SERVER_ERROR, text);
    };
    let json = json!({ "access_key": &*key.access_key, "page_token": page_token });
    with_cookie(json_page(&json), &cookie)
}

fn with_cookie(mut response: Response<Bytes>, cookie: &str) -> Response<Bytes> {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}
