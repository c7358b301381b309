//! The providers of a server: keeps their public keys, and identifies the users of their tokens.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use serde_json::Value;

use crate::access::keys::session::ProviderUser;
use crate::error::Result;
use crate::oidc::config::{ProviderConfig, check_url};
use crate::oidc::jwt::Token;
use crate::oidc::key_set::PublicKey;

/// The age at which keys are fetched again.
const KEYS_AGE_MAX: Duration = Duration::from_mins(15);

/// The age until which keys are used if they cannot be fetched again.
const STALE_KEYS_AGE_MAX: Duration = Duration::from_hours(24);

/// The least time between two fetches: anyone can send a token with an unknown key.
const FETCH_INTERVAL: Duration = Duration::from_secs(10);

/// The maximum difference between the clocks of the provider and the server, for the start of a
/// token, in seconds.
const SKEW_MAX_S: i64 = 60;

/// The maximum length of a user's name in a token, in bytes.
const USER_BYTES_MAX: usize = 256;

/// Fetches the documents of providers. The caller that has an HTTP client implements it.
pub trait FetchDocument: fmt::Debug + Send + Sync {
    /// Returns the document at a URL. Blocks, for some seconds at most.
    ///
    /// # Errors
    /// The reason why there is no document.
    fn fetch(&self, url: &str) -> std::result::Result<Vec<u8>, String>;
}

/// The OpenID Connect providers whose users may have temporary keys.
#[derive(Debug)]
pub struct Providers {
    providers: Vec<Provider>,
    fetch: Arc<dyn FetchDocument>,
}

impl Providers {
    /// Parses the configuration of providers, a JSON file. Their documents are fetched with `fetch`.
    ///
    /// # Errors
    /// [`crate::Error::Provider`] if the configuration is invalid.
    pub fn parse(text: &str, fetch: Arc<dyn FetchDocument>) -> Result<Self> {
        let configs = ProviderConfig::parse_file(text)?;
        Ok(Self { providers: configs.into_iter().map(Provider::new).collect(), fetch })
    }

    /// Returns the names of the providers.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.providers.iter().map(|provider| &*provider.config.name)
    }

    /// Returns the user of a token. May fetch keys, which blocks.
    ///
    /// # Errors
    /// The reason to refuse the token.
    pub(crate) fn identify(
        &self,
        token: &str,
        now_s: i64,
    ) -> std::result::Result<Identified<'_>, Refusal> {
        let token = Token::parse(token).map_err(Refusal::Invalid)?;
        let issuer = token.text("iss").unwrap_or_default();
        let provider = self.providers.iter().find(|provider| provider.config.issuer == issuer);
        let provider = provider.ok_or_else(|| {
            Refusal::Invalid("the issuer of the token is no provider of this server".to_owned())
        })?;
        provider.verify(&token, &*self.fetch)?;
        let user = provider.user(&token, now_s)?;
        let ProviderConfig { name, issuer, audience, .. } = &provider.config;
        Ok(Identified { provider: name, issuer, audience, user })
    }
}

/// The user of a token, and the provider that issued it.
#[derive(Debug)]
pub(crate) struct Identified<'a> {
    pub(crate) provider: &'a str,
    pub(crate) issuer: &'a str,
    pub(crate) audience: &'a str,
    pub(crate) user: ProviderUser,
}

/// The reason to refuse a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    Invalid(String),
    Expired,
    /// The provider's keys are not known, and cannot be fetched now.
    Unreachable(String),
}

struct Provider {
    config: ProviderConfig,
    keys: ArcSwapOption<KnownKeys>,
    /// The start of the last fetch. Locked during a fetch.
    fetched: Mutex<Option<Instant>>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("config", &self.config).finish_non_exhaustive()
    }
}

struct KnownKeys {
    keys: Vec<PublicKey>,
    fetched: Instant,
}

impl Provider {
    fn new(config: ProviderConfig) -> Self {
        Self { config, keys: ArcSwapOption::empty(), fetched: Mutex::new(None) }
    }

    /// Fails unless a key of the provider has signed the token.
    fn verify(
        &self,
        token: &Token<'_>,
        fetch: &dyn FetchDocument,
    ) -> std::result::Result<(), Refusal> {
        let fits = |known: &Arc<KnownKeys>| known.keys.iter().any(|key| key.fits(token));
        let mut known = self.keys.load_full();
        let is_fresh = known.as_ref().is_some_and(|known| known.fetched.elapsed() < KEYS_AGE_MAX);
        if !is_fresh || !known.as_ref().is_some_and(fits) {
            let fetched = self.fetch(fetch);
            let is_usable = |known: &Arc<KnownKeys>| {
                known.fetched.elapsed() < STALE_KEYS_AGE_MAX && fits(known)
            };
            known = self.keys.load_full();
            if let (Err(why), false) = (fetched, known.as_ref().is_some_and(is_usable)) {
                return Err(why);
            }
        }
        let is_signed =
            known.is_some_and(|known| known.keys.iter().any(|key| key.has_signed(token)));
        let refusal = || Refusal::Invalid("no key of its issuer has signed the token".to_owned());
        is_signed.then_some(()).ok_or_else(refusal)
    }

    /// Fetches the keys, unless this was tried a moment ago.
    fn fetch(&self, fetch: &dyn FetchDocument) -> std::result::Result<(), Refusal> {
        let unreachable =
            |why: String| Refusal::Unreachable(format!("{}: {why}", self.config.issuer));
        // Requests do not wait for each other: clients repeat them.
        let Some(mut last) = self.fetched.try_lock() else {
            return Err(unreachable("its keys are being fetched".to_owned()));
        };
        if last.is_some_and(|last| last.elapsed() < FETCH_INTERVAL) {
            return match self.keys.load().is_some() {
                true => Ok(()),
                false => Err(unreachable("its keys could not be fetched a moment ago".to_owned())),
            };
        }
        let now = Instant::now();
        *last = Some(now);
        let keys = self.fetch_keys(fetch).map_err(unreachable)?;
        self.keys.store(Some(Arc::new(KnownKeys { keys, fetched: now })));
        Ok(())
    }

    fn fetch_keys(&self, fetch: &dyn FetchDocument) -> std::result::Result<Vec<PublicKey>, String> {
        let issuer = &self.config.issuer;
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let document = fetch.fetch(&url)?;
        let document: Value = serde_json::from_slice(&document)
            .map_err(|error| format!("{url} is not JSON: {error}"))?;
        // A document of another issuer could name the keys of that one.
        if document["issuer"].as_str() != Some(issuer) {
            return Err(format!("{url} is the document of another issuer"));
        }
        let keys = document["jwks_uri"].as_str().ok_or(format!("{url} names no keys"))?;
        check_url(keys).map_err(|why| format!("the URL {keys} of the keys {why}"))?;
        PublicKey::parse_set(&fetch.fetch(keys)?).map_err(|why| format!("{keys}: {why}"))
    }

    /// Returns the user of a token whose signature is verified.
    fn user(&self, token: &Token<'_>, now_s: i64) -> std::result::Result<ProviderUser, Refusal> {
        let ProviderConfig { name: provider, audience, user_claims, .. } = &self.config;
        let invalid = |why: &str| Refusal::Invalid(why.to_owned());
        let audiences = token.texts("aud").map_err(Refusal::Invalid)?;
        if !audiences.contains(&&**audience) {
            return Err(invalid("the token is for another audience"));
        }
        let expires_s = token.time("exp").map_err(Refusal::Invalid)?;
        let expires_s = expires_s.ok_or_else(|| invalid("the token has no claim exp"))?;
        if now_s >= expires_s {
            return Err(Refusal::Expired);
        }
        let begins_s = token.time("nbf").map_err(Refusal::Invalid)?;
        if begins_s.is_some_and(|begins_s| begins_s > now_s.saturating_add(SKEW_MAX_S)) {
            return Err(invalid("the token is not valid yet"));
        }
        let name = user_claims.iter().find_map(|claim| token.text(claim));
        let name = name.filter(|name| !name.is_empty() && name.len() <= USER_BYTES_MAX);
        let name = name.ok_or_else(|| {
            let claims = user_claims.join(" or ");
            Refusal::Invalid(format!("the token has no name of 1 to 256 bytes in {claims}"))
        })?;
        let name = format!("{provider}:{}", escaped(name));
        Ok(ProviderUser { name, policies: self.policies(token)? })
    }

    /// Returns the names of the policies that a token gives its user.
    fn policies(&self, token: &Token<'_>) -> std::result::Result<Vec<String>, Refusal> {
        let values = token.texts(&self.config.policy_claim).map_err(Refusal::Invalid)?;
        let is_text = token.text(&self.config.policy_claim).is_some();
        let values = values.into_iter().flat_map(|value| match is_text {
            true => value.split(',').map(str::trim).collect::<Vec<_>>(),
            false => vec![value],
        });
        let values = values.filter(|value| !value.is_empty());
        Ok(match &self.config.policies {
            None => values.map(str::to_owned).collect(),
            Some(table) => values.filter_map(|value| table.get(value)).flatten().cloned().collect(),
        })
    }
}

/// Returns a name in the characters of local users; others are percent-encoded, so that two names
/// remain different.
fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'@' | b'+' | b'-' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use base64_simd::URL_SAFE_NO_PAD as BASE64;
    use ring::rand::SystemRandom;
    use ring::signature::{Ed25519KeyPair, KeyPair};
    use serde_json::json;

    use super::*;

    const ISSUER: &str = "https://id.example.com";

    /// Returns these key sets one after the other; an empty text is a failure.
    #[derive(Debug, Default)]
    struct Sets(Mutex<VecDeque<String>>);

    impl FetchDocument for Sets {
        fn fetch(&self, url: &str) -> std::result::Result<Vec<u8>, String> {
            if url.ends_with("/.well-known/openid-configuration") {
                let document = json!({ "issuer": ISSUER, "jwks_uri": "https://id.example.com/k" });
                return Ok(document.to_string().into_bytes());
            }
            let set = self.0.lock().pop_front().expect("no more fetches");
            if set.is_empty() { Err("down".to_owned()) } else { Ok(set.into_bytes()) }
        }
    }

    fn key() -> Ed25519KeyPair {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap()
    }

    fn set(id: &str, key: &Ed25519KeyPair) -> String {
        let point = BASE64.encode_to_string(key.public_key().as_ref());
        json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": point }] }).to_string()
    }

    fn token(id: &str, key: &Ed25519KeyPair) -> String {
        let encode = |value: Value| BASE64.encode_to_string(value.to_string());
        let header = encode(json!({ "alg": "EdDSA", "kid": id }));
        let claims = json!({ "iss": ISSUER, "aud": "haul", "exp": 1000, "sub": "ann" });
        let signed = format!("{header}.{}", encode(claims));
        let signature = BASE64.encode_to_string(key.sign(signed.as_bytes()).as_ref());
        format!("{signed}.{signature}")
    }

    #[test]
    fn keys_are_fetched_again_when_they_change_and_kept_when_the_provider_fails() {
        let (old, new) = (key(), key());
        let sets = Arc::new(Sets::default());
        let config = json!({ "name": "id", "issuer": ISSUER, "audience": "haul" });
        let config = json!({ "providers": [config] }).to_string();
        let fetch = Arc::clone(&sets) as Arc<dyn FetchDocument>;
        let providers = Providers::parse(&config, fetch).unwrap();
        let provider = &providers.providers[0];
        let identify = |id: &str, key: &Ed25519KeyPair| {
            let found = providers.identify(&token(id, key), 999);
            found.map(|found| found.user.name)
        };
        let publish = |set: String| sets.0.lock().push_back(set);
        let pass_time = || *provider.fetched.lock() = None;
        let ann = || Ok("id:ann".to_owned());
        publish(String::new());
        assert!(matches!(identify("a", &old), Err(Refusal::Unreachable(_))));
        // Not fetched again at once.
        assert!(matches!(identify("a", &old), Err(Refusal::Unreachable(_))));
        pass_time();
        publish(set("a", &old));
        assert_eq!(identify("a", &old), ann());
        // The provider rotates its keys.
        assert!(matches!(identify("b", &new), Err(Refusal::Invalid(_))));
        pass_time();
        publish(set("b", &new));
        assert_eq!(identify("b", &new), ann());
        pass_time();
        publish(set("b", &new));
        assert!(matches!(identify("a", &old), Err(Refusal::Invalid(_))));
        // Keys of some age are fetched again, and kept if the provider does not answer.
        let Some(then) = Instant::now().checked_sub(KEYS_AGE_MAX) else { return };
        let keys = PublicKey::parse_set(set("b", &new).as_bytes()).unwrap();
        provider.keys.store(Some(Arc::new(KnownKeys { keys, fetched: then })));
        pass_time();
        publish(String::new());
        assert_eq!(identify("b", &new), ann());
        assert!(sets.0.lock().is_empty());
        let Some(then) = Instant::now().checked_sub(STALE_KEYS_AGE_MAX) else { return };
        let keys = PublicKey::parse_set(set("b", &new).as_bytes()).unwrap();
        provider.keys.store(Some(Arc::new(KnownKeys { keys, fetched: then })));
        pass_time();
        publish(String::new());
        assert!(matches!(identify("b", &new), Err(Refusal::Unreachable(_))));
    }

    #[test]
    fn names_remain_different_when_they_are_escaped() {
        for (name, expected) in [
            ("ann@example.com", "ann@example.com"),
            ("a:b", "a%3Ab"),
            ("a%3Ab", "a%253Ab"),
            ("\u{e4} ", "%C3%A4%20"),
        ] {
            assert_eq!(escaped(name), expected);
        }
    }
}
