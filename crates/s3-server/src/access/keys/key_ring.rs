//! A running server's keys, which change without a restart.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::{ArcSwap, ArcSwapOption};
use haul_file_store::Quota;
use ring::hmac;

use crate::access::keys::credentials::Credentials;
use crate::access::keys::key::{Key, KeyList};
use crate::access::keys::policies::PolicyList;
use crate::access::keys::seal::SealingKey;
use crate::access::keys::session::{
    Claims, Issuer, NamedIssuer, OpenedTokens, SessionSecret, TemporaryKey, UnopenedToken,
    session_secret,
};
use crate::access::rights::Grant;
use crate::acl::owner::ADMINISTRATOR;
use crate::policy::statement::Policy;

/// The key file's keys in a running server. The caller that reads the file replaces them; no
/// request waits for this.
pub struct KeyRing {
    keys: ArcSwap<Keys>,
    failure: ArcSwapOption<String>,
    /// `None` if the file has no sealing key.
    session_secret: Option<SessionSecret>,
    /// The names of the OpenID Connect providers whose sessions are accepted.
    providers: OnceLock<Box<[String]>>,
}

impl KeyRing {
    /// Creates a ring with these keys.
    #[must_use]
    pub fn new(list: KeyList) -> Self {
        let keys = ArcSwap::from_pointee(Keys::of(list));
        Self {
            keys,
            failure: ArcSwapOption::empty(),
            session_secret: None,
            providers: OnceLock::new(),
        }
    }

    /// Returns this ring with temporary keys that all servers with the same sealing key accept.
    /// Otherwise the administrator's secret key determines them.
    #[must_use]
    pub fn with_sealing_key(self, seal: &SealingKey) -> Self {
        Self { session_secret: Some(seal.session_secret()), ..self }
    }

    /// Accepts the sessions of these providers. Those of earlier calls remain.
    pub(crate) fn accept_providers(&self, names: impl Iterator<Item = String>) {
        self.providers.get_or_init(|| names.collect());
    }

    /// Replaces all keys. Requests that begin after this returns see the new keys only.
    pub fn replace(&self, list: KeyList) {
        self.keys.store(Arc::new(Keys::of(list)));
        self.failure.store(None);
    }

    /// Records that the key file could not be read, for the health check and the metrics. The
    /// present keys remain in force.
    pub fn report_failure(&self, why: String) {
        self.failure.store(Some(Arc::new(why)));
    }

    /// Returns the reason why the last attempt to read the key file failed; `None` if it succeeded.
    pub(crate) fn failure(&self) -> Option<Arc<String>> {
        self.failure.load_full()
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").finish_non_exhaustive()
    }
}

/// The keys at one moment.
#[derive(Debug)]
pub(crate) struct Keys {
    by_access_key: HashMap<Arc<str>, Arc<ActiveKey>>,
    /// The users, including users whose keys are all disabled.
    users: HashSet<String>,
    /// The disabled keys, which are only listed.
    pub(crate) disabled: Box<[ActiveKey]>,
    pub(crate) anonymous: Box<[Grant]>,
    pub(crate) quotas: BTreeMap<String, Quota>,
    pub(crate) policies: PolicyList,
    /// The temporary keys of providers' users that were used before.
    sessions: OpenedTokens<ActiveKey>,
}

impl Keys {
    /// Returns a list's keys; disabled ones are not found.
    pub(crate) fn of(list: KeyList) -> Self {
        let KeyList { keys, anonymous, quotas, policies } = list;
        let users = keys.iter().map(|key| key.user.clone()).collect();
        let (disabled, enabled): (Vec<_>, Vec<_>) =
            keys.into_iter().partition(|key| key.is_disabled);
        let active = |key: Key| {
            let policies = policies.named(policies.names_for_user(&key.user));
            ActiveKey::new(key, policies)
        };
        let disabled = disabled.into_iter().map(active).collect();
        let enabled = enabled.into_iter().map(active);
        let by_access_key = enabled.map(|key| (Arc::clone(&key.access_key), Arc::new(key)));
        let by_access_key = by_access_key.collect();
        Self {
            by_access_key,
            users,
            disabled,
            anonymous: anonymous.into(),
            quotas,
            policies,
            sessions: OpenedTokens::default(),
        }
    }

    /// Returns the keys that are not disabled, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ActiveKey> {
        self.by_access_key.values().map(|key| &**key)
    }
}

/// A key pair in use by a running server.
pub(crate) struct ActiveKey {
    pub(crate) access_key: Arc<str>,
    pub(crate) secret_key: String,
    /// `None` for the administrator.
    pub(crate) user: Option<Arc<str>>,
    pub(crate) creates_buckets: bool,
    pub(crate) reads_metrics: bool,
    pub(crate) grants: Arc<[Grant]>,
    /// The policies of the user and its groups.
    pub(crate) policies: Arc<[Arc<Policy>]>,
    /// `None` for a key that does not expire with a session.
    pub(crate) session: Option<SessionLimits>,
    expires_s: Option<i64>,
    /// The temporary keys of this key that were used before.
    sessions: OpenedTokens<Self>,
    /// The signing key for the last scope (date and region): deriving it takes four hashes.
    last: ArcSwapOption<ScopeKey>,
}

/// The properties of a temporary key that its parent does not have.
#[derive(Debug)]
pub(crate) struct SessionLimits {
    /// The policy that must allow each request, if the session has one.
    pub(crate) policy: Option<Arc<Policy>>,
    /// What requests of the session have beside its access key.
    pub(crate) token: Arc<str>,
}

/// The reason why no key has signed a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSigner {
    /// The access key, or the parent of a temporary key, is unknown, disabled or expired.
    Unknown,
    /// The session token is malformed, or belongs to another access key.
    InvalidToken,
    /// The session has ended.
    ExpiredToken,
}

/// The key that verifies signatures for one date and region.
struct ScopeKey {
    scope: String,
    key: Arc<hmac::Key>,
}

impl ActiveKey {
    fn new(key: Key, policies: Arc<[Arc<Policy>]>) -> Self {
        Self {
            access_key: key.access_key.into(),
            secret_key: key.secret_key,
            user: Some(key.user.into()),
            creates_buckets: key.creates_buckets,
            reads_metrics: key.reads_metrics,
            grants: key.grants.into(),
            policies,
            session: None,
            expires_s: key.expires.map(unix_s),
            sessions: OpenedTokens::default(),
            last: ArcSwapOption::empty(),
        }
    }

    /// Returns the administrator's key pair, which has all rights.
    pub(crate) fn administrator(credentials: Credentials) -> Self {
        Self {
            access_key: credentials.access_key.into(),
            secret_key: credentials.secret_key,
            user: None,
            creates_buckets: true,
            reads_metrics: true,
            grants: Arc::default(),
            policies: Arc::default(),
            session: None,
            expires_s: None,
            sessions: OpenedTokens::default(),
            last: ArcSwapOption::empty(),
        }
    }

    /// Returns a temporary key with this key's rights and the limits of a session.
    pub(crate) fn limited(&self, pair: Credentials, limits: SessionLimits, expires_s: i64) -> Self {
        Self {
            access_key: pair.access_key.into(),
            secret_key: pair.secret_key,
            user: self.user.clone(),
            creates_buckets: self.creates_buckets,
            reads_metrics: false,
            grants: Arc::clone(&self.grants),
            policies: Arc::clone(&self.policies),
            session: Some(limits),
            expires_s: Some(self.expires_s.map_or(expires_s, |end| end.min(expires_s))),
            sessions: OpenedTokens::default(),
            last: ArcSwapOption::empty(),
        }
    }

    /// Returns the key's name in the logs: the access key, and for a temporary key its user.
    pub(crate) fn log_name(&self) -> Arc<str> {
        match &self.session {
            None => Arc::clone(&self.access_key),
            Some(_) => {
                let user = self.user.as_deref().unwrap_or(ADMINISTRATOR);
                format!("{}/{user}", self.access_key).into()
            }
        }
    }

    fn issuer(&self) -> Issuer<'_> {
        Issuer::Key { access_key: &self.access_key, secret_key: &self.secret_key }
    }

    /// Returns the time at which the key expires, in seconds since 1970.
    pub(crate) fn expires_s(&self) -> Option<i64> {
        self.expires_s
    }

    /// Compares a secret key in constant time.
    pub(crate) fn has_secret(&self, given: &[u8]) -> bool {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"comparison");
        let given = hmac::sign(&key, given);
        hmac::verify(&key, self.secret_key.as_bytes(), given.as_ref()).is_ok()
    }

    /// Returns the key for signatures with a scope: date, region, service and a fixed word,
    /// separated by slashes. `None` for a malformed scope.
    pub(crate) fn signing_key(&self, scope: &str) -> Option<Arc<hmac::Key>> {
        let last = self.last.load();
        if let Some(last) = last.as_ref().filter(|last| last.scope == scope) {
            return Some(Arc::clone(&last.key));
        }
        let mut parts = scope.split('/');
        let (date, region) = (parts.next()?, parts.next()?);
        let is_region = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let service = parts.next().filter(|service| matches!(*service, "s3" | "sts"))?;
        let is_scope =
            parts.eq(["aws4_request"]) && !region.is_empty() && region.bytes().all(is_region);
        if !is_scope {
            return None;
        }
        let secret = format!("AWS4{}", self.secret_key).into_bytes();
        let derived =
            [date, region, service, "aws4_request"].into_iter().fold(secret, |key, part| {
                let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
                hmac::sign(&key, part.as_bytes()).as_ref().to_vec()
            });
        let key = Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &derived));
        let derived = ScopeKey { scope: scope.to_owned(), key: Arc::clone(&key) };
        self.last.store(Some(Arc::new(derived)));
        Some(key)
    }
}

impl fmt::Debug for ActiveKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveKey").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

/// All keys of a server: the administrator's pair, and the key file's keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct AllKeys {
    pub(crate) administrator: Option<Arc<ActiveKey>>,
    pub(crate) ring: Option<Arc<KeyRing>>,
}

impl AllKeys {
    /// Returns `true` if there are no keys, so that every client has all rights.
    pub(crate) fn is_empty(&self) -> bool {
        self.administrator.is_none() && self.ring.is_none()
    }

    /// Returns the key with this access key, unless it has expired. The administrator has
    /// precedence.
    pub(crate) fn find(&self, access_key: &str) -> Option<Arc<ActiveKey>> {
        let key = self.find_any(access_key)?;
        let is_valid = |expires_s: i64| unix_s(SystemTime::now()) < expires_s;
        key.expires_s.is_none_or(is_valid).then_some(key)
    }

    /// Returns the key that signs requests with this access key and session token.
    ///
    /// # Errors
    /// The reason why there is no such key, or no such session.
    pub(crate) fn signer(
        &self,
        access_key: &str,
        token: Option<&str>,
        now_s: i64,
    ) -> Result<Arc<ActiveKey>, NoSigner> {
        let Some(token) = token else { return self.find(access_key).ok_or(NoSigner::Unknown) };
        let unopened = UnopenedToken::decode(token).ok_or(NoSigner::InvalidToken)?;
        let key = match unopened.issuer().ok_or(NoSigner::InvalidToken)? {
            NamedIssuer::Key(parent) => {
                let parent = self.find(parent).ok_or(NoSigner::Unknown)?;
                parent.sessions.get_or_open(token, || self.open(&unopened, &parent))
            }
            NamedIssuer::Provider(name) => {
                let keys = self.provider_keys(name).ok_or(NoSigner::Unknown)?;
                let open = || self.open_for_provider(&unopened, name, &keys);
                keys.sessions.get_or_open(token, open)
            }
        };
        let key = key.ok_or(NoSigner::InvalidToken)?;
        match key.expires_s.is_some_and(|end| now_s >= end) {
            _ if *key.access_key != *access_key => Err(NoSigner::InvalidToken),
            true => Err(NoSigner::ExpiredToken),
            false => Ok(key),
        }
    }

    /// Returns the keys of the file, if the server accepts the sessions of this provider.
    fn provider_keys(&self, name: &str) -> Option<Arc<Keys>> {
        let ring = self.ring.as_ref()?;
        let is_accepted = ring.providers.get()?.iter().any(|accepted| accepted == name);
        is_accepted.then(|| ring.keys.load_full())
    }

    /// Opens a token of a provider's user, who has the policies of the key file that the session
    /// names.
    fn open_for_provider(
        &self,
        token: &UnopenedToken<'_>,
        provider: &str,
        keys: &Keys,
    ) -> Option<ActiveKey> {
        let (server, issuer) = (self.session_secret()?, Issuer::Provider(provider));
        let claims = Claims::open(token, &server, issuer)?;
        let user = claims.user.as_ref()?;
        Some(ActiveKey {
            access_key: claims.access_key().into(),
            secret_key: claims.secret_key(&server, issuer),
            user: Some(user.name.as_str().into()),
            creates_buckets: false,
            reads_metrics: false,
            grants: Arc::default(),
            policies: keys.policies.named(user.policies.iter().map(String::as_str)),
            session: Some(SessionLimits {
                policy: session_policy(&claims)?,
                token: token.text.into(),
            }),
            expires_s: Some(claims.expires_s),
            sessions: OpenedTokens::default(),
            last: ArcSwapOption::empty(),
        })
    }

    /// Opens a token of a key's session.
    fn open(&self, token: &UnopenedToken<'_>, parent: &ActiveKey) -> Option<ActiveKey> {
        let (server, issuer) = (self.session_secret()?, parent.issuer());
        let claims = Claims::open(token, &server, issuer)?;
        let (access_key, secret_key) = (claims.access_key(), claims.secret_key(&server, issuer));
        let pair = Credentials { access_key, secret_key };
        let limits = SessionLimits { policy: session_policy(&claims)?, token: token.text.into() };
        Some(parent.limited(pair, limits, claims.expires_s))
    }

    /// Starts a session of a key; `None` if the server has no secret for sessions, or if the kernel
    /// has no random bytes.
    pub(crate) fn start_session(
        &self,
        parent: &ActiveKey,
        claims: &Claims,
    ) -> Option<TemporaryKey> {
        claims.seal(&self.session_secret()?, parent.issuer())
    }

    /// Starts a session of a provider's user; `None` as in [`Self::start_session`], and if the server
    /// does not accept the provider's sessions.
    pub(crate) fn start_provider_session(
        &self,
        provider: &str,
        claims: &Claims,
    ) -> Option<TemporaryKey> {
        self.provider_keys(provider)?;
        claims.seal(&self.session_secret()?, Issuer::Provider(provider))
    }

    /// Returns the secret for sessions: that of the sealing key, or of the administrator.
    fn session_secret(&self) -> Option<SessionSecret> {
        let ring = self.ring.as_ref().and_then(|ring| ring.session_secret);
        let administrator = self.administrator.as_ref();
        ring.or_else(|| administrator.map(|key| session_secret(key.secret_key.as_bytes())))
    }

    /// Returns `true` for the administrator's name, and for each user that has a key.
    pub(crate) fn is_user(&self, name: &str) -> bool {
        let has_key = |ring: &Arc<KeyRing>| ring.keys.load().users.contains(name);
        name == ADMINISTRATOR || self.ring.as_ref().is_some_and(has_key)
    }

    /// Returns the access key as a shared string, for the logs.
    pub(crate) fn name(&self, access_key: &str) -> Option<Arc<str>> {
        self.find_any(access_key).map(|key| Arc::clone(&key.access_key))
    }

    fn find_any(&self, access_key: &str) -> Option<Arc<ActiveKey>> {
        if let Some(key) = self.administrator.as_ref().filter(|key| *key.access_key == *access_key)
        {
            return Some(Arc::clone(key));
        }
        self.ring.as_ref()?.keys.load().by_access_key.get(access_key).cloned()
    }

    /// Returns the key file's keys, with the rights of requests without a signature.
    pub(crate) fn file_keys(&self) -> Option<Arc<Keys>> {
        self.ring.as_ref().map(|ring| ring.keys.load_full())
    }
}

/// Returns the policy of a session, if it has one; `None` if the policy cannot be applied.
fn session_policy(claims: &Claims) -> Option<Option<Arc<Policy>>> {
    let Some(text) = &claims.policy else { return Some(None) };
    Policy::parse_for_users(text).ok().map(|policy| Some(Arc::new(policy)))
}

fn unix_s(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn credentials() -> Credentials {
        Credentials { access_key: "admin".into(), secret_key: "secret".into() }
    }

    #[test]
    fn replaced_removed_disabled_and_expired_keys_are_not_found() {
        let mut list = KeyList::default();
        let [first, second, third] = ["a", "b", "c"]
            .map(|user| list.create(user, SystemTime::now()).unwrap().access_key.clone());
        let ring = Arc::new(KeyRing::new(list.clone()));
        let administrator = Some(Arc::new(ActiveKey::administrator(credentials())));
        let all = AllKeys { administrator, ring: Some(Arc::clone(&ring)) };
        let found =
            || [&*first, &*second, &*third, "admin", "other"].map(|key| all.find(key).is_some());
        assert_eq!(found(), [true, true, true, true, false]);
        list.remove(&first);
        list.key_mut(&second).unwrap().is_disabled = true;
        list.key_mut(&third).unwrap().expires = Some(SystemTime::now());
        ring.replace(list.clone());
        assert_eq!(found(), [false, false, false, true, false]);
        assert_eq!(all.name(&third).as_deref(), Some(&*third), "expired keys are logged");
        let users = ["a", "b", "c", "haul", "d"].map(|user| all.is_user(user));
        assert_eq!(users, [false, true, true, true, false], "only keys that exist have users");
        let later = SystemTime::now() + Duration::from_secs(60);
        list.key_mut(&third).unwrap().expires = Some(later);
        ring.report_failure("it is damaged".to_owned());
        assert_eq!(found(), [false, false, false, true, false]);
        assert!(ring.failure().is_some());
        ring.replace(list);
        assert_eq!(found(), [false, false, true, true, false]);
        assert!(ring.failure().is_none());
    }

    #[test]
    fn session_ends_at_its_expiry_and_with_its_parent() {
        let mut list = KeyList::default();
        let parent = list.create("ann", SystemTime::now()).unwrap().access_key.clone();
        let seal = SealingKey::generate().unwrap();
        let ring = Arc::new(KeyRing::new(list.clone()).with_sealing_key(&seal));
        let all = AllKeys { administrator: None, ring: Some(Arc::clone(&ring)) };
        let claims = Claims::new(1000, None, None).unwrap();
        let session = all.start_session(&all.find(&parent).unwrap(), &claims).unwrap();
        let (access_key, token) = (&*session.access_key, Some(&*session.token));
        let signer = |all: &AllKeys, now_s| all.signer(access_key, token, now_s).err();
        assert_eq!(signer(&all, 999), None);
        // The token was opened before.
        assert_eq!(signer(&all, 999), None);
        assert_eq!(signer(&all, 1000), Some(NoSigner::ExpiredToken));
        assert_eq!(all.signer(&parent, token, 0).err(), Some(NoSigner::InvalidToken));
        assert_eq!(all.signer(access_key, None, 0).err(), Some(NoSigner::Unknown));
        let key = all.signer(access_key, token, 0).unwrap();
        assert_eq!(key.secret_key, session.secret_key);
        assert_eq!(&*key.log_name(), &*format!("{access_key}/ann"));
        // A server that takes over has the same sealing key; another one has not.
        let earlier = list.clone();
        let server = |seal: &SealingKey| {
            let ring = Arc::new(KeyRing::new(earlier.clone()).with_sealing_key(seal));
            AllKeys { administrator: None, ring: Some(ring) }
        };
        assert_eq!(signer(&server(&seal), 0), None);
        let other = server(&SealingKey::generate().unwrap());
        assert_eq!(signer(&other, 0), Some(NoSigner::InvalidToken));
        let end = UNIX_EPOCH + Duration::from_secs(u64::MAX / 4);
        list.key_mut(&parent).unwrap().expires = Some(end);
        ring.replace(list.clone());
        assert_eq!(signer(&all, 0), None);
        list.key_mut(&parent).unwrap().is_disabled = true;
        ring.replace(list.clone());
        assert_eq!(signer(&all, 0), Some(NoSigner::Unknown));
        let none = AllKeys { administrator: None, ring: Some(Arc::new(KeyRing::new(list))) };
        assert!(none.session_secret().is_none());
        assert!(server(&seal).session_secret().is_some());
    }

    #[test]
    fn only_the_whole_secret_is_equal() {
        let key = ActiveKey::administrator(credentials());
        assert!(key.has_secret(b"secret"));
        for given in ["", "secre", "secret ", "secret\0", "Secret"] {
            assert!(!key.has_secret(given.as_bytes()), "{given}");
        }
        assert!(!format!("{key:?}").contains("secret"));
    }

    #[test]
    fn signing_key_depends_on_the_scope() {
        let key = ActiveKey::administrator(credentials());
        let sign =
            |scope: &str| key.signing_key(scope).map(|key| hmac::sign(&key, b"").as_ref().to_vec());
        let first = sign("20261126/us-east-1/s3/aws4_request");
        assert!(first.is_some());
        assert_ne!(sign("20261127/us-east-1/s3/aws4_request"), first);
        assert_ne!(sign("20261126/us-east-2/s3/aws4_request"), first);
        assert_eq!(sign("20261126/us-east-1/s3/aws4_request"), first);
        for scope in ["", "a", "20261126//s3/aws4_request", "20261126/a/ec2/aws4_request"] {
            assert_eq!(sign(scope), None, "{scope}");
        }
    }
}
