//! The providers of a server: keeps what they publish, and identifies the users of their tokens.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use serde_json::Value;

use crate::access::keys::session::ProviderUser;
use crate::error::Result;
use crate::oidc::config::{LoginConfig, ProviderConfig, check_url};
use crate::oidc::jwt::Token;
use crate::oidc::key_set::PublicKey;
use crate::oidc::login::{LoginSecrets, TokenRequest, authorization_url};

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

/// Sends requests to providers. The caller that has an HTTP client implements it.
pub trait ProviderClient: fmt::Debug + Send + Sync {
    /// Returns the document at a URL. Blocks, for some seconds at most.
    ///
    /// # Errors
    /// The reason why there is no document.
    fn get(&self, url: &str) -> std::result::Result<Vec<u8>, String>;

    /// Posts a form, `application/x-www-form-urlencoded`, with this `Authorization` if there is one,
    /// and returns the response. Blocks, for some seconds at most.
    ///
    /// # Errors
    /// The reason why there is no response with a status of 2xx.
    fn post(
        &self,
        url: &str,
        form: &str,
        authorization: Option<&str>,
    ) -> std::result::Result<Vec<u8>, String>;
}

/// The OpenID Connect providers whose users may have temporary keys.
#[derive(Debug)]
pub struct Providers {
    providers: Vec<Provider>,
    client: Arc<dyn ProviderClient>,
}

impl Providers {
    /// Parses the configuration of providers, a JSON file. `client` sends requests to them.
    ///
    /// # Errors
    /// [`crate::Error::Provider`] if the configuration is invalid.
    pub fn parse(text: &str, client: Arc<dyn ProviderClient>) -> Result<Self> {
        let configs = ProviderConfig::parse_file(text)?;
        Ok(Self { providers: configs.into_iter().map(Provider::new).collect(), client })
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
        provider.verify(&token, &*self.client)?;
        let user = provider.user(&token, now_s)?;
        let ProviderConfig { name, issuer, audience, .. } = &provider.config;
        Ok(Identified { provider: name, issuer, audience, user })
    }

    /// Returns `true` if the configuration has secrets.
    #[must_use]
    pub fn has_secrets(&self) -> bool {
        let has_secret = |login: &LoginConfig| login.client_secret.is_some();
        self.providers.iter().any(|provider| provider.config.login.as_ref().is_some_and(has_secret))
    }

    /// Returns the names of the providers with which users log in to the console.
    pub(crate) fn login_names(&self) -> impl Iterator<Item = &str> {
        let with_login = self.providers.iter().filter(|provider| provider.config.login.is_some());
        with_login.map(|provider| &*provider.config.name)
    }

    /// Returns the URL at which a provider logs a user in. May fetch documents, which blocks.
    ///
    /// # Errors
    /// [`Refusal::Unreachable`] if what the provider publishes cannot be read.
    pub(crate) fn login_url(
        &self,
        name: &str,
        secrets: &LoginSecrets,
    ) -> std::result::Result<String, Refusal> {
        let (provider, login) = self.login(name)?;
        let published = provider.published(&*self.client, |_any| true)?;
        let endpoint = published.authorization_endpoint.as_deref();
        let endpoint = endpoint.ok_or_else(|| provider.lacks("authorization_endpoint"))?;
        Ok(authorization_url(endpoint, &provider.config.audience, login, secrets))
    }

    /// Exchanges the code of a login for the user that has logged in. Sends a request, which blocks.
    ///
    /// # Errors
    /// The reason to refuse the login.
    pub(crate) fn finish_login(
        &self,
        name: &str,
        code: &str,
        secrets: &LoginSecrets,
        now_s: i64,
    ) -> std::result::Result<ProviderUser, Refusal> {
        let (provider, login) = self.login(name)?;
        let published = provider.published(&*self.client, |_any| true)?;
        let endpoint = published.token_endpoint.as_deref();
        let endpoint = endpoint.ok_or_else(|| provider.lacks("token_endpoint"))?;
        let client_id = &provider.config.audience;
        let TokenRequest { form, authorization } =
            TokenRequest::new(client_id, login, published.accepts_basic, code, secrets);
        let response = self.client.post(endpoint, &form, authorization.as_deref());
        let response = response.map_err(Refusal::Invalid)?;
        let response: Value = serde_json::from_slice(&response)
            .map_err(|error| Refusal::Invalid(format!("{endpoint} does not send JSON: {error}")))?;
        let token = response["id_token"].as_str().unwrap_or_default();
        let token = Token::parse(token).map_err(Refusal::Invalid)?;
        if token.text("iss") != Some(&provider.config.issuer) {
            return Err(Refusal::Invalid("the token is of another issuer".to_owned()));
        }
        provider.verify(&token, &*self.client)?;
        // The token must be for this login, and not one that another page obtained.
        if token.text("nonce") != Some(secrets.nonce()) {
            return Err(Refusal::Invalid("the token is for another login".to_owned()));
        }
        provider.user(&token, now_s)
    }

    fn login(&self, name: &str) -> std::result::Result<(&Provider, &LoginConfig), Refusal> {
        let provider = self.providers.iter().find(|provider| provider.config.name == name);
        let found = provider.and_then(|provider| Some((provider, provider.config.login.as_ref()?)));
        found.ok_or_else(|| Refusal::Invalid(format!("{name} is no provider for logins")))
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
    published: ArcSwapOption<Published>,
    /// The start of the last fetch. Locked during a fetch.
    fetched: Mutex<Option<Instant>>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("config", &self.config).finish_non_exhaustive()
    }
}

/// What a provider publishes.
struct Published {
    keys: Vec<PublicKey>,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    /// `true` if the token endpoint accepts the secret of a client as the password of HTTP Basic.
    accepts_basic: bool,
    fetched: Instant,
}

impl Provider {
    fn new(config: ProviderConfig) -> Self {
        Self { config, published: ArcSwapOption::empty(), fetched: Mutex::new(None) }
    }

    /// Fails unless a key of the provider has signed the token.
    fn verify(
        &self,
        token: &Token<'_>,
        client: &dyn ProviderClient,
    ) -> std::result::Result<(), Refusal> {
        let fits = |known: &Published| known.keys.iter().any(|key| key.fits(token));
        let known = self.published(client, fits)?;
        let is_signed = known.keys.iter().any(|key| key.has_signed(token));
        let refusal = || Refusal::Invalid("no key of its issuer has signed the token".to_owned());
        is_signed.then_some(()).ok_or_else(refusal)
    }

    /// Returns what the provider publishes: fetches it if it is old or does not fit, and returns the
    /// old one if it fits and the fetch fails.
    fn published(
        &self,
        client: &dyn ProviderClient,
        fits: impl Fn(&Published) -> bool,
    ) -> std::result::Result<Arc<Published>, Refusal> {
        let younger = |known: &Published, age: Duration| known.fetched.elapsed() < age;
        if let Some(known) = self.published.load_full()
            && younger(&known, KEYS_AGE_MAX)
            && fits(&known)
        {
            return Ok(known);
        }
        let fetched = self.fetch(client);
        match self.published.load_full().filter(|known| younger(known, STALE_KEYS_AGE_MAX)) {
            // What was fetched now is returned in any case: the caller says what does not fit.
            Some(known) if fetched.is_ok() || fits(&known) => Ok(known),
            _ => {
                fetched?;
                Err(self.unreachable("its keys are too old, and could not be fetched"))
            }
        }
    }

    fn unreachable(&self, why: &str) -> Refusal {
        Refusal::Unreachable(format!("{}: {why}", self.config.issuer))
    }

    fn lacks(&self, endpoint: &str) -> Refusal {
        self.unreachable(&format!("it publishes no {endpoint} with TLS"))
    }

    /// Fetches what the provider publishes, unless this was tried a moment ago.
    fn fetch(&self, client: &dyn ProviderClient) -> std::result::Result<(), Refusal> {
        // Requests do not wait for each other: clients repeat them.
        let Some(mut last) = self.fetched.try_lock() else {
            return Err(self.unreachable("its keys are being fetched"));
        };
        if last.is_some_and(|last| last.elapsed() < FETCH_INTERVAL) {
            return match self.published.load().is_some() {
                true => Ok(()),
                false => Err(self.unreachable("its keys could not be fetched a moment ago")),
            };
        }
        let now = Instant::now();
        *last = Some(now);
        let published = self.fetch_documents(client, now).map_err(|why| self.unreachable(&why))?;
        self.published.store(Some(Arc::new(published)));
        Ok(())
    }

    fn fetch_documents(
        &self,
        client: &dyn ProviderClient,
        now: Instant,
    ) -> std::result::Result<Published, String> {
        let issuer = &self.config.issuer;
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let document = client.get(&url)?;
        let document: Value = serde_json::from_slice(&document)
            .map_err(|error| format!("{url} is not JSON: {error}"))?;
        // A document of another issuer could name the keys of that one.
        if document["issuer"].as_str() != Some(issuer) {
            return Err(format!("{url} is the document of another issuer"));
        }
        let keys = document["jwks_uri"].as_str().ok_or(format!("{url} names no keys"))?;
        check_url(keys).map_err(|why| format!("the URL {keys} of the keys {why}"))?;
        // Only logins need the endpoints: some providers of tokens have others in their place.
        let endpoint = |name: &str| {
            let found = document[name].as_str()?;
            check_url(found.split('?').next()?).ok().map(|()| found.to_owned())
        };
        let methods = document["token_endpoint_auth_methods_supported"].as_array();
        Ok(Published {
            keys: PublicKey::parse_set(&client.get(keys)?)
                .map_err(|why| format!("{keys}: {why}"))?,
            authorization_endpoint: endpoint("authorization_endpoint"),
            token_endpoint: endpoint("token_endpoint"),
            accepts_basic: methods
                .is_none_or(|methods| methods.iter().any(|it| it == "client_secret_basic")),
            fetched: now,
        })
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

    impl ProviderClient for Sets {
        fn post(
            &self,
            url: &str,
            _form: &str,
            _authorization: Option<&str>,
        ) -> std::result::Result<Vec<u8>, String> {
            panic!("nothing is posted to {url}")
        }

        fn get(&self, url: &str) -> std::result::Result<Vec<u8>, String> {
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

    fn published(keys: Vec<PublicKey>, fetched: Instant) -> Published {
        let (authorization_endpoint, token_endpoint) = (None, None);
        Published { keys, authorization_endpoint, token_endpoint, accepts_basic: true, fetched }
    }

    #[test]
    fn keys_are_fetched_again_when_they_change_and_kept_when_the_provider_fails() {
        let (old, new) = (key(), key());
        let sets = Arc::new(Sets::default());
        let config = json!({ "name": "id", "issuer": ISSUER, "audience": "haul" });
        let config = json!({ "providers": [config] }).to_string();
        let client = Arc::clone(&sets) as Arc<dyn ProviderClient>;
        let providers = Providers::parse(&config, client).unwrap();
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
        provider.published.store(Some(Arc::new(published(keys, then))));
        pass_time();
        publish(String::new());
        assert_eq!(identify("b", &new), ann());
        assert!(sets.0.lock().is_empty());
        let Some(then) = Instant::now().checked_sub(STALE_KEYS_AGE_MAX) else { return };
        let keys = PublicKey::parse_set(set("b", &new).as_bytes()).unwrap();
        provider.published.store(Some(Arc::new(published(keys, then))));
        pass_time();
        publish(String::new());
        for _ in 0..2 {
            assert!(matches!(identify("b", &new), Err(Refusal::Unreachable(_))));
        }
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
