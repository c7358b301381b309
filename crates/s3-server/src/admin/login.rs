//! Authenticates requests to the admin address. Performs no I/O.

use std::sync::Arc;
use std::time::Instant;

use base64_simd::STANDARD as BASE64;
use haul_admin_endpoint::AllowedHosts;
use http::StatusCode;
use http::header::{AUTHORIZATION, HOST, HeaderMap};

use crate::access::authorize::Principal;
use crate::access::keys::key_ring::{ActiveKey, AllKeys};
use crate::admin::console;
use crate::admin::page::Rejection;
use crate::admin::sessions::{Proof, Sessions};
use crate::oidc::config::REDIRECT_PATH;

/// The login page, and the path to which key pairs are posted.
pub(super) const LOGIN: &str = "/login";

/// The names of the providers with which users log in.
pub(super) const LOGIN_PROVIDERS: &str = "/login/providers.json";

/// The page that a key with the right to metrics may read.
const METRICS: &str = "/metrics";

const NO_LOGIN: Rejection = (StatusCode::UNAUTHORIZED, "Log in with the keys of the server\n");
const FOREIGN_HOST: Rejection =
    (StatusCode::FORBIDDEN, "Use localhost or an IP address as the host\n");

/// A request of the login page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoginStep {
    /// Begins a session with a key pair.
    KeyPair,
    /// Starts a login with a provider.
    Start,
    /// Begins a session with the code of a provider.
    Finish,
}

impl LoginStep {
    /// Returns the step whose requests are posted to this path.
    pub(super) fn at(path: &str) -> Option<Self> {
        match path {
            LOGIN => Some(Self::KeyPair),
            "/login/start" => Some(Self::Start),
            "/login/finish" => Some(Self::Finish),
            _ => None,
        }
    }
}

/// The credentials of the admin address's clients: a key by HTTP Basic, or a session that began
/// with one.
#[derive(Clone, Copy)]
pub(super) struct Logins<'a> {
    pub(super) keys: &'a AllKeys,
    pub(super) sessions: &'a Sessions,
}

impl Logins<'_> {
    /// Returns the reason to reject a request for a page; `None` if it is allowed. On a loopback
    /// address, pages need no login, but the host must be a name of this machine, as for S3
    /// requests.
    pub(super) fn rejection(
        &self,
        is_loopback: bool,
        path: &str,
        headers: &HeaderMap,
    ) -> Option<Rejection> {
        if is_loopback {
            return (!has_local_host(headers)).then_some(FOREIGN_HOST);
        }
        if is_for_everyone(path) {
            return None;
        }
        let Some(key) = self.find(headers, Proof::Cookie) else {
            return Some(NO_LOGIN);
        };
        let is_administrator = key.user.is_none();
        let is_allowed =
            is_administrator || key.reads_metrics && path == METRICS || is_for_all_keys(path);
        let text = "This key has no right to this page: use the key pair of --credentials, or for \
                    /metrics a key with the right metrics\n";
        (!is_allowed).then_some((StatusCode::FORBIDDEN, text))
    }

    /// Returns the client that sends a request to the console; on a server without keys, any client
    /// on this machine.
    pub(super) fn login(&self, headers: &HeaderMap, proof: Proof) -> Result<Principal, Rejection> {
        if self.keys.is_empty() {
            return if has_local_host(headers) { Ok(Principal::Open) } else { Err(FOREIGN_HOST) };
        }
        self.find(headers, proof).map(Principal::Key).ok_or(NO_LOGIN)
    }

    /// Returns the key of a request. A request with HTTP Basic has no session, even if it has a
    /// cookie, so that a wrong secret key is never overlooked.
    fn find(&self, headers: &HeaderMap, proof: Proof) -> Option<Arc<ActiveKey>> {
        match headers.get(AUTHORIZATION) {
            Some(given) => basic(self.keys, given.as_bytes()),
            None => self.sessions.find(self.keys, headers, proof, Instant::now()),
        }
    }
}

/// Returns `true` unless the request's host can be an outside web page's host.
fn has_local_host(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).map(|host| host.to_str().unwrap_or("?"));
    AllowedHosts::local().allows(host)
}

/// Returns the key in an HTTP Basic `Authorization` header, if the secret key matches.
fn basic(keys: &AllKeys, given: &[u8]) -> Option<Arc<ActiveKey>> {
    let pair = BASE64.decode_to_vec(given.strip_prefix(b"Basic ")?).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    let (access_key, secret) = (&pair[..colon], &pair[colon + 1..]);
    keys.find(str::from_utf8(access_key).ok()?).filter(|key| key.has_secret(secret))
}

/// Returns `true` for the login pages and their files.
fn is_for_everyone(path: &str) -> bool {
    matches!(path, LOGIN | LOGIN_PROVIDERS | "/login.js" | "/console.css")
        || path.starts_with(REDIRECT_PATH)
}

/// Returns `true` for the console's own files, which contain no server data; for presigned links,
/// which have the key's rights; and for the keys and the recent requests, which have their own
/// rule.
fn is_for_all_keys(path: &str) -> bool {
    matches!(path, "/" | "/presign" | "/keys.json" | "/requests.json" | "/session.json")
        || console::file(path).is_some()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::access::keys::credentials::Credentials;
    use crate::access::keys::key::KeyList;
    use crate::access::keys::key_ring::KeyRing;
    use crate::config::Addresses;

    /// Returns the status for a request at a public address with keys, or at a loopback address.
    fn status(keys: Option<&AllKeys>, path: &str, name: &str, value: &str) -> u16 {
        let name = name.parse::<http::header::HeaderName>().unwrap();
        let headers = [(name, value.parse().unwrap())].into_iter().collect();
        let [listen, admin] = ["0.0.0.0:1", "0.0.0.0:2"].map(|address| address.parse().unwrap());
        let sessions = Sessions::new(&Addresses { listen, admin, website: None, has_tls: false });
        let (is_loopback, none) = (keys.is_none(), AllKeys::default());
        let logins = Logins { keys: keys.unwrap_or(&none), sessions: &sessions };
        let refusal = logins.rejection(is_loopback, path, &headers);
        refusal.map_or(200, |(status, _)| status.as_u16())
    }

    #[test]
    fn each_key_has_its_pages() {
        let mut list = KeyList::default();
        let user = list.create("alice", SystemTime::now()).unwrap().clone();
        let metrics = list.create("prometheus", SystemTime::now()).unwrap();
        metrics.reads_metrics = true;
        let metrics = metrics.clone();
        let credentials = Credentials { access_key: "key".into(), secret_key: "se:cret".into() };
        let administrator = Some(Arc::new(ActiveKey::administrator(credentials)));
        let keys = AllKeys { administrator, ring: Some(Arc::new(KeyRing::new(list))) };
        let basic = |access_key: &str, secret: &str| {
            format!("Basic {}", BASE64.encode_to_string(format!("{access_key}:{secret}")))
        };
        let statuses = |value: &str| {
            ["/", "/stats.json", "/metrics"]
                .map(|path| status(Some(&keys), path, "authorization", value))
        };
        let wrong = [401; 3];
        assert_eq!(statuses(&basic("key", "se:cret")), [200; 3]);
        assert_eq!(statuses(&basic(&metrics.access_key, &metrics.secret_key)), [200, 403, 200]);
        assert_eq!(statuses(&basic(&user.access_key, &user.secret_key)), [200, 403, 403]);
        assert_eq!(statuses(&basic(&metrics.access_key, &user.secret_key)), wrong);
        for value in [
            &basic("key", "se:creT"),
            &basic("key", ""),
            &basic("", ""),
            "Basic ",
            "Basic a2V5",
            &basic("key", "se:cret").replace("Basic ", ""),
            &basic("key", "se:cret").replace("Basic ", "Bearer "),
        ] {
            assert_eq!(statuses(value), wrong, "{value}");
        }
        assert_eq!(status(Some(&keys), "/", "host", "localhost"), 401);
        assert_eq!(status(Some(&keys), "/console.js", "host", "localhost"), 401);
        assert_eq!(status(Some(&keys), "/login", "host", "localhost"), 200);
    }

    #[test]
    fn loopback_address_needs_a_host_of_this_machine() {
        assert_eq!(status(None, "/", "host", "127.0.0.1:9001"), 200);
        assert_eq!(status(None, "/", "host", "evil.example"), 403);
    }
}
