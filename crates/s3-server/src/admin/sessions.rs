//! The console's sessions: two random tokens stand for the key that logged in, or for the temporary
//! key of a provider's user. One is in a cookie.
//! The other one is in the storage of the page, whose requests have it in a header: browsers send
//! cookies to all ports of a host, where servers of others may be, but separate the storage by
//! port.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64_simd::URL_SAFE_NO_PAD as BASE64;
use http::header::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use crate::access::keys::key_ring::{ActiveKey, AllKeys};
use crate::admin::cookie::Cookie;
use crate::admin::operation::CONSOLE;
use crate::config::Addresses;
use crate::times::now_s;

/// The time without requests after which a session ends. Open pages send requests.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60 * 60);

/// The time after the login at which a session ends in any case.
pub(super) const LIFETIME_MAX: Duration = Duration::from_secs(12 * 60 * 60);

/// The maximum number of sessions. A new session ends the least recently used one.
const SESSIONS_MAX: usize = 1024;

/// The maximum number of sessions per key, so that one key cannot end the sessions of many others.
const KEY_SESSIONS_MAX: usize = 16;

/// The number of random bytes in a token.
const TOKEN_BYTES: usize = 32;

/// SHA-256 of a token or of a secret key.
pub(super) type Hash = [u8; 32];

/// The sessions of one server. They are in memory only: a restart ends them.
pub(crate) struct Sessions {
    cookie: Cookie,
    /// The sessions by the hash of their token. The time of a lookup depends on the hash, which a
    /// client cannot choose byte by byte, and not on the token. A copy of this memory has no
    /// tokens.
    by_token: Mutex<HashMap<Hash, Session>>,
}

/// The tokens that a request must have to belong to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// The cookie, the only token in a link to an object.
    Cookie,
    /// The cookie, and the console's header with the page's token.
    Page,
}

#[derive(Debug)]
pub(super) struct NewSession {
    /// The `Set-Cookie` value.
    pub(super) cookie: String,
    pub(super) page_token: String,
}

#[derive(Debug, Clone)]
struct Session {
    page_token: Hash,
    access_key: Arc<str>,
    /// Whose sessions are limited together: the key, or the user of a provider.
    owner: Arc<str>,
    credential: Credential,
    began: Instant,
    used: Instant,
}

/// What a session has beside its access key.
#[derive(Debug, Clone)]
enum Credential {
    /// The hash of the secret key. It ends the session if the key gets another secret key.
    Secret(Hash),
    /// The token of a temporary key.
    Token(Arc<str>),
}

impl Session {
    /// Returns the key that logged in, if it is accepted and has the same secret key; or the
    /// temporary key, with the policies that its user has now.
    fn key(&self, keys: &AllKeys) -> Option<Arc<ActiveKey>> {
        match &self.credential {
            Credential::Secret(secret) => {
                let key = keys.find(&self.access_key)?;
                (hash(key.secret_key.as_bytes()) == *secret).then_some(key)
            }
            Credential::Token(token) => keys.signer(&self.access_key, Some(token), now_s()).ok(),
        }
    }

    fn has_ended(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.used) >= IDLE_TIME_MAX
            || now.saturating_duration_since(self.began) >= LIFETIME_MAX
    }
}

impl Sessions {
    /// Creates the sessions of a server with these addresses.
    pub(crate) fn new(addresses: &Addresses) -> Self {
        Self { cookie: Cookie::new("haul-session", "/", addresses), by_token: Mutex::default() }
    }

    /// Begins a session for a key that has logged in. Fails if the kernel has no random bytes.
    pub(super) fn begin(&self, key: &ActiveKey, now: Instant) -> Option<NewSession> {
        let (token, page_token) = (random_token()?, random_token()?);
        let (credential, owner) = match (&key.session, &key.user) {
            (Some(session), Some(user)) => (Credential::Token(Arc::clone(&session.token)), user),
            _ => (Credential::Secret(hash(key.secret_key.as_bytes())), &key.access_key),
        };
        let owner = Arc::clone(owner);
        let session = Session {
            page_token: hash(page_token.as_bytes()),
            access_key: Arc::clone(&key.access_key),
            owner: Arc::clone(&owner),
            credential,
            began: now,
            used: now,
        };
        let mut sessions = self.by_token.lock();
        sessions.retain(|_, session| !session.has_ended(now));
        make_room(&mut sessions, Some(&owner), KEY_SESSIONS_MAX);
        make_room(&mut sessions, None, SESSIONS_MAX);
        sessions.insert(hash(token.as_bytes()), session);
        Some(NewSession { cookie: self.cookie.set(&token), page_token })
    }

    /// Returns the key whose session the request belongs to. The session ends if it has expired, or
    /// if the key is disabled, revoked or expired, or has another secret key.
    pub(super) fn find(
        &self,
        keys: &AllKeys,
        headers: &HeaderMap,
        proof: Proof,
        now: Instant,
    ) -> Option<Arc<ActiveKey>> {
        let token = hash(self.cookie.token(headers)?.as_bytes());
        let mut sessions = self.by_token.lock();
        let session = sessions.get_mut(&token)?;
        let is_page = |value: &HeaderValue| hash(value.as_bytes()) == session.page_token;
        if proof == Proof::Page && !headers.get(CONSOLE).is_some_and(is_page) {
            return None;
        }
        match session.key(keys) {
            Some(key) if !session.has_ended(now) => {
                session.used = now;
                Some(key)
            }
            _ => {
                sessions.remove(&token);
                None
            }
        }
    }

    /// Ends the session of a request, if it has one. Returns the `Set-Cookie` value that removes
    /// the cookie.
    pub(super) fn end(&self, headers: &HeaderMap) -> String {
        if let Some(token) = self.cookie.token(headers) {
            self.by_token.lock().remove(&hash(token.as_bytes()));
        }
        self.cookie.remove()
    }

    /// Ends the sessions of keys that are disabled, revoked or expired. They do not return if the
    /// keys are enabled again.
    pub(super) fn end_revoked(&self, keys: &AllKeys) {
        self.by_token.lock().retain(|_, session| session.key(keys).is_some());
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

/// Ends the least recently used sessions, of one key or of all, until there are fewer than `max`.
fn make_room(sessions: &mut HashMap<Hash, Session>, owner: Option<&str>, max: usize) {
    let counts = |session: &Session| owner.is_none_or(|owner| *session.owner == *owner);
    while sessions.values().filter(|session| counts(session)).count() >= max {
        let candidates = sessions.iter().filter(|(_, session)| counts(session));
        let Some(oldest) = candidates.min_by_key(|(_, session)| session.used) else { return };
        let oldest = *oldest.0;
        sessions.remove(&oldest);
    }
}

pub(super) fn random_token() -> Option<String> {
    let mut token = [0; TOKEN_BYTES];
    SystemRandom::new().fill(&mut token).ok()?;
    Some(BASE64.encode_to_string(token))
}

pub(super) fn hash(text: &[u8]) -> Hash {
    let mut hash = Hash::default();
    hash.copy_from_slice(digest(&SHA256, text).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use http::header::COOKIE;

    use super::*;
    use crate::access::keys::credentials::Credentials;
    use crate::access::keys::key::KeyList;
    use crate::access::keys::key_ring::KeyRing;

    fn new_sessions(has_tls: bool) -> Sessions {
        let [listen, admin] =
            ["192.0.2.1:9000", "192.0.2.1:9001"].map(|text| text.parse().unwrap());
        Sessions::new(&Addresses { listen, admin, website: None, has_tls })
    }

    fn administrator() -> AllKeys {
        let credentials = Credentials { access_key: "root".into(), secret_key: "secret".into() };
        let administrator = Some(Arc::new(ActiveKey::administrator(credentials)));
        AllKeys { administrator, ring: None }
    }

    /// Returns the key of a request's session.
    fn find(sessions: &Sessions, keys: &AllKeys, headers: &HeaderMap) -> Option<Arc<ActiveKey>> {
        sessions.find(keys, headers, Proof::Cookie, Instant::now())
    }

    /// Returns the headers of a request that follows the response with this `Set-Cookie`.
    fn request(cookie: &str) -> HeaderMap {
        let pair = cookie.split(';').next().unwrap();
        [(COOKIE, format!("other=1; {pair}").parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn token_is_random_and_only_in_the_cookie() {
        let (sessions, keys) = (new_sessions(true), administrator());
        let (now, key) = (Instant::now(), keys.find("root").unwrap());
        let [first, second] = [(), ()].map(|()| sessions.begin(&key, now).unwrap());
        assert_ne!(first.page_token, second.page_token);
        let (first, second) = (first.cookie, second.cookie);
        assert_ne!(first, second);
        let attributes = "; Path=/; HttpOnly; SameSite=Strict; Secure";
        assert!(first.starts_with("haul-session-9001=") && first.ends_with(attributes), "{first}");
        let token = &first["haul-session-9001=".len()..first.len() - attributes.len()];
        assert_eq!(token.len(), 43, "256 bits in Base64");
        let found = find(&sessions, &keys, &request(&first)).unwrap();
        assert_eq!(&*found.access_key, "root");
        let plain = new_sessions(false).begin(&key, now).unwrap().cookie;
        assert!(!plain.contains("Secure"), "{plain}");
        for other in [
            String::new(),
            "haul-session-9001=".to_owned(),
            format!("haul-session-9002={token}"),
            format!("haul-session-9001={}", token.to_lowercase()),
            format!("haul-session-9001={token}A"),
        ] {
            assert!(find(&sessions, &keys, &request(&other)).is_none(), "{other}");
        }
    }

    #[test]
    fn cookie_alone_is_no_page() {
        let (sessions, keys) = (new_sessions(false), administrator());
        let (now, key) = (Instant::now(), keys.find("root").unwrap());
        let [first, second] = [(), ()].map(|()| sessions.begin(&key, now).unwrap());
        let is_page = |header: Option<&str>| {
            let mut headers = request(&first.cookie);
            headers.extend(header.map(|value| (CONSOLE, value.parse().unwrap())));
            sessions.find(&keys, &headers, Proof::Page, now).is_some()
        };
        assert!(is_page(Some(&first.page_token)));
        for other in [None, Some(""), Some("1"), Some(&*second.page_token)] {
            assert!(!is_page(other), "{other:?}");
        }
        assert!(is_page(Some(&first.page_token)), "the session has not ended");
    }

    #[test]
    fn session_ends_when_it_is_idle_too_old_or_logged_out() {
        let keys = administrator();
        let key = keys.find("root").unwrap();
        let (sessions, start) = (new_sessions(false), Instant::now());
        let is_found = |cookie: &str, after: Duration| {
            sessions.find(&keys, &request(cookie), Proof::Cookie, start + after).is_some()
        };
        let almost = IDLE_TIME_MAX.checked_sub(Duration::from_secs(1)).unwrap();
        let cookie = sessions.begin(&key, start).unwrap().cookie;
        assert!(is_found(&cookie, almost));
        assert!(is_found(&cookie, 2 * almost), "a request prolongs the session");
        assert!(!is_found(&cookie, 2 * almost + IDLE_TIME_MAX));
        assert!(!is_found(&cookie, 2 * almost), "it does not begin again");
        let cookie = sessions.begin(&key, start).unwrap().cookie;
        let mut at = Duration::ZERO;
        while at + almost < LIFETIME_MAX {
            at += almost;
            assert!(is_found(&cookie, at));
        }
        assert!(!is_found(&cookie, LIFETIME_MAX), "requests do not prolong it further");
        let cookie = sessions.begin(&key, start).unwrap().cookie;
        let removal = sessions.end(&request(&cookie));
        assert!(removal.starts_with("haul-session-9001=; ") && removal.ends_with("; Max-Age=0"));
        assert!(!is_found(&cookie, Duration::ZERO));
    }

    #[test]
    fn session_ends_with_its_key() {
        let mut list = KeyList::default();
        let access = list.create("alice", SystemTime::now()).unwrap().access_key.clone();
        let ring = Arc::new(KeyRing::new(list.clone()));
        let keys = AllKeys { administrator: None, ring: Some(Arc::clone(&ring)) };
        let (sessions, now) = (new_sessions(false), Instant::now());
        let begin = || request(&sessions.begin(&keys.find(&access).unwrap(), now).unwrap().cookie);
        let changes: [fn(&mut KeyList, &str); 4] = [
            |list, key| list.key_mut(key).unwrap().is_disabled = true,
            |list, key| list.key_mut(key).unwrap().expires = Some(SystemTime::now()),
            |list, key| list.key_mut(key).unwrap().secret_key = "another".to_owned(),
            |list, key| assert!(list.remove(key)),
        ];
        for change in changes {
            let headers = begin();
            assert!(find(&sessions, &keys, &headers).is_some());
            let mut changed = list.clone();
            change(&mut changed, &access);
            ring.replace(changed);
            assert!(find(&sessions, &keys, &headers).is_none());
            ring.replace(list.clone());
            assert!(find(&sessions, &keys, &headers).is_none(), "it does not begin again");
        }
        let headers = begin();
        sessions.end_revoked(&keys);
        assert!(find(&sessions, &keys, &headers).is_some());
        ring.replace(KeyList::default());
        sessions.end_revoked(&keys);
        ring.replace(list);
        assert!(find(&sessions, &keys, &headers).is_none(), "without a request in between");
    }

    #[test]
    fn number_of_sessions_is_limited() {
        let mut list = KeyList::default();
        for at in 0..SESSIONS_MAX / KEY_SESSIONS_MAX + 1 {
            list.create(&format!("user{at}"), SystemTime::now()).unwrap();
        }
        let names: Vec<_> = list.keys().iter().map(|key| key.access_key.clone()).collect();
        let keys = AllKeys { administrator: None, ring: Some(Arc::new(KeyRing::new(list))) };
        let (sessions, start) = (new_sessions(false), Instant::now());
        let begin = |name: &str, at: u64| {
            let now = start + Duration::from_millis(at);
            sessions.begin(&keys.find(name).unwrap(), now).unwrap().cookie
        };
        let is_found =
            |cookie: &str| sessions.find(&keys, &request(cookie), Proof::Cookie, start).is_some();
        let first = begin(&names[0], 0);
        let others: Vec<_> = (1..=KEY_SESSIONS_MAX).map(|at| begin(&names[1], at as u64)).collect();
        assert_eq!(sessions.by_token.lock().len(), 1 + KEY_SESSIONS_MAX);
        begin(&names[1], 100);
        assert!(!is_found(&others[0]), "the least recently used one of the key has ended");
        assert!(is_found(&first) && is_found(&others[1]), "others have not");
        for name in &names[2..] {
            (0..KEY_SESSIONS_MAX).for_each(|at| _ = begin(name, 200 + at as u64));
        }
        assert!(sessions.by_token.lock().len() <= SESSIONS_MAX);
    }
}
