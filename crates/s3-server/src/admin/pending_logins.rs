//! The logins that browsers have started with OpenID Connect providers. A cookie binds each to its
//! browser, so that no page can finish the login of another one there.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use http::header::HeaderMap;
use parking_lot::Mutex;

use crate::admin::cookie::Cookie;
use crate::admin::sessions::{Hash, hash, random_token};
use crate::config::Addresses;
use crate::oidc::login::LoginSecrets;

/// The time that a user has to log in with the provider.
const TIME_MAX: Duration = Duration::from_mins(10);

/// The maximum number of logins that are pending. A new one ends the oldest.
const LOGINS_MAX: usize = 1024;

/// The pending logins of one server. They are in memory only: a restart ends them.
pub(crate) struct PendingLogins {
    cookie: Cookie,
    /// The logins by the hash of the token in the cookie.
    by_token: Mutex<HashMap<Hash, PendingLogin>>,
}

/// A login that a browser has started.
pub(super) struct PendingLogin {
    pub(super) provider: String,
    pub(super) secrets: LoginSecrets,
    began: Instant,
}

impl PendingLogins {
    /// Creates the pending logins of a server with these addresses.
    pub(crate) fn new(addresses: &Addresses) -> Self {
        let cookie = Cookie::new("haul-login", "/login", addresses);
        Self { cookie, by_token: Mutex::default() }
    }

    /// Starts a login, and returns the `Set-Cookie` value for its browser; `None` if the kernel has
    /// no random bytes.
    pub(super) fn start(
        &self,
        provider: String,
        secrets: LoginSecrets,
        now: Instant,
    ) -> Option<String> {
        let token = random_token()?;
        let mut logins = self.by_token.lock();
        logins.retain(|_, login| !login.has_ended(now));
        while logins.len() >= LOGINS_MAX {
            let oldest = logins.iter().min_by_key(|(_, login)| login.began).map(|(key, _)| *key);
            oldest.and_then(|oldest| logins.remove(&oldest));
        }
        logins.insert(hash(token.as_bytes()), PendingLogin { provider, secrets, began: now });
        Some(self.cookie.set(&token))
    }

    /// Takes the login that the browser of a request has started, if it has not ended. It can be
    /// taken once.
    pub(super) fn take(&self, headers: &HeaderMap, now: Instant) -> Option<PendingLogin> {
        let token = hash(self.cookie.token(headers)?.as_bytes());
        self.by_token.lock().remove(&token).filter(|login| !login.has_ended(now))
    }

    /// Returns the `Set-Cookie` value that ends a login in its browser.
    pub(super) fn remove_cookie(&self) -> String {
        self.cookie.remove()
    }
}

impl PendingLogin {
    fn has_ended(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.began) >= TIME_MAX
    }
}

impl fmt::Debug for PendingLogins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingLogins").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http::header::COOKIE;

    use super::*;

    fn pending() -> PendingLogins {
        let [listen, admin] = ["127.0.0.1:9000", "127.0.0.1:9001"].map(|it| it.parse().unwrap());
        PendingLogins::new(&Addresses { listen, admin, website: None, has_tls: false })
    }

    fn headers(cookie: &str) -> HeaderMap {
        let pair = cookie.split(';').next().unwrap();
        [(COOKIE, pair.parse().unwrap())].into_iter().collect()
    }

    fn start(pending: &PendingLogins, now: Instant) -> String {
        pending.start("corp".to_owned(), LoginSecrets::generate().unwrap(), now).unwrap()
    }

    #[test]
    fn login_is_finished_once_by_its_browser_and_in_time() {
        let (pending, now) = (pending(), Instant::now());
        let cookie = start(&pending, now);
        assert!(cookie.starts_with("haul-login-9001="), "{cookie}");
        assert!(cookie.ends_with("; Path=/login; HttpOnly; SameSite=Strict"), "{cookie}");
        assert!(pending.take(&HeaderMap::new(), now).is_none());
        assert!(pending.take(&headers("haul-login-9001=x"), now).is_none());
        assert_eq!(pending.take(&headers(&cookie), now).unwrap().provider, "corp");
        assert!(pending.take(&headers(&cookie), now).is_none());
        let cookie = start(&pending, now);
        assert!(pending.take(&headers(&cookie), now + TIME_MAX).is_none());
    }

    #[test]
    fn oldest_login_ends_when_there_are_many() {
        let (pending, now) = (pending(), Instant::now());
        let cookies: Vec<_> = (0..=LOGINS_MAX as u64)
            .map(|number| start(&pending, now + Duration::from_millis(number)))
            .collect();
        assert!(pending.take(&headers(&cookies[0]), now).is_none());
        assert!(pending.take(&headers(&cookies[1]), now).is_some());
        assert!(pending.take(&headers(&cookies[LOGINS_MAX]), now).is_some());
    }
}
