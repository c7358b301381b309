//! Logs users in with OpenID Connect providers: starts a login, and begins a session with its code.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::task::{JoinError, spawn_blocking};

use crate::access::keys::key_ring::ActiveKey;
use crate::access::keys::session::{Claims, TemporaryKey};
use crate::admin::Admin;
use crate::admin::account::{NO_RANDOM_BYTES, begin};
use crate::admin::cookie::with_cookie;
use crate::admin::keys::KeyLog;
use crate::admin::page::{error_response, json_page, plain, text};
use crate::admin::pending_logins::PendingLogin;
use crate::admin::sessions::LIFETIME_MAX;
use crate::oidc::login::LoginSecrets;
use crate::oidc::provider::Refusal;
use crate::times::now_s;

const NO_PROVIDERS: &str = "The server has no OpenID Connect providers\n";

impl Admin {
    /// Returns the names of the providers with which users log in.
    pub(super) fn login_providers_json(&self) -> Value {
        let names = self.providers.iter().flat_map(|providers| providers.login_names());
        json!({ "providers": names.collect::<Vec<_>>() })
    }

    /// Starts a login with a provider, and returns the URL at which it logs the user in.
    pub(super) async fn start_login(&self, provider: String) -> Response<Bytes> {
        let Some(providers) = self.providers.clone() else {
            return plain(StatusCode::NOT_FOUND, NO_PROVIDERS);
        };
        let Some(secrets) = LoginSecrets::generate() else {
            return error_response(NO_RANDOM_BYTES);
        };
        let (name, known) = (provider.clone(), secrets.clone());
        let url = spawn_blocking(move || providers.login_url(&name, &known)).await;
        let url = match outcome(url) {
            Ok(url) => url,
            Err((status, why)) => return text(status, why),
        };
        match self.pending_logins.start(provider, secrets, Instant::now()) {
            Some(cookie) => with_cookie(json_page(&json!({ "url": url })), &cookie),
            None => error_response(NO_RANDOM_BYTES),
        }
    }

    /// Begins a session of the user that a provider has logged in, with the code and the state that
    /// it sent back to the browser that started the login.
    pub(super) async fn finish_login(
        &self,
        pending: Option<PendingLogin>,
        code: String,
        state: String,
        log: KeyLog,
    ) -> Response<Bytes> {
        let key = match pending.filter(|pending| pending.secrets.has_state(&state)) {
            Some(pending) => self.provider_key(pending, code).await,
            None => {
                let text = "This browser has not started this login, or too long ago: try again\n";
                Err((StatusCode::FORBIDDEN, text.to_owned()))
            }
        };
        let (response, error) = match &key {
            Ok(key) => (begin(&self.sessions, key, Instant::now()), None),
            Err((status, why)) => (text(*status, why.clone()), Some(&**why)),
        };
        let name = key.as_ref().ok().map(|key| key.log_name());
        log.logged_in(name.as_deref(), response.status(), error).await;
        with_cookie(response, &self.pending_logins.remove_cookie())
    }

    /// Returns a temporary key of the user that a provider has logged in.
    async fn provider_key(
        &self,
        pending: PendingLogin,
        code: String,
    ) -> Result<Arc<ActiveKey>, (StatusCode, String)> {
        let Some(providers) = self.providers.clone() else {
            return Err((StatusCode::NOT_FOUND, NO_PROVIDERS.to_owned()));
        };
        let PendingLogin { provider, secrets, .. } = pending;
        let name = provider.clone();
        let exchange = move || providers.finish_login(&name, &code, &secrets, now_s());
        let user = outcome(spawn_blocking(exchange).await)?;
        let lifetime_s = i64::try_from(LIFETIME_MAX.as_secs()).unwrap_or(i64::MAX);
        let claims = Claims::new(now_s().saturating_add(lifetime_s), None, Some(user));
        let key = claims.and_then(|claims| {
            let TemporaryKey { access_key, token, .. } =
                self.keys.start_provider_session(&provider, &claims)?;
            self.keys.signer(&access_key, Some(&token), now_s()).ok()
        });
        key.ok_or_else(|| {
            let text = "The login failed: the token of the user names too many policies, or the \
                        server has no secret for temporary keys\n";
            (StatusCode::INTERNAL_SERVER_ERROR, text.to_owned())
        })
    }
}

/// Returns the outcome of a request to a provider.
fn outcome<T>(outcome: Result<Result<T, Refusal>, JoinError>) -> Result<T, (StatusCode, String)> {
    match outcome {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(Refusal::Invalid(why))) => {
            Err((StatusCode::FORBIDDEN, format!("The login is refused: {why}\n")))
        }
        Ok(Err(Refusal::Expired)) => {
            Err((StatusCode::FORBIDDEN, "The login is refused: the token has expired\n".to_owned()))
        }
        Ok(Err(Refusal::Unreachable(why))) => {
            Err((StatusCode::BAD_GATEWAY, format!("The provider cannot be used: {why}\n")))
        }
        Err(error) => Err((StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"))),
    }
}
