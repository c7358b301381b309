//! Temporary keys. A session token contains its claims, encrypted and authenticated by a key that
//! depends on a secret of the server and on the parent's secret key; nothing is stored.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use base64_simd::URL_SAFE_NO_PAD as BASE64;
use parking_lot::Mutex;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};

use crate::access::keys::names::base32;

/// The prefix of temporary access keys.
const ACCESS_KEY_PREFIX: &str = "HAUT";

/// The number of random bytes in a session's ID, which are 16 characters of its access key.
const ID_BYTES: usize = 10;

/// The number of bytes in a secret key, which has 40 characters.
const SECRET_BYTES: usize = 30;

/// The maximum length of a session token, which is longer than any that this server creates.
const TOKEN_BYTES_MAX: usize = 8 << 10;

/// The number of opened tokens that a parent remembers.
const OPENED_MAX: usize = 64;

/// A secret from which the keys of tokens are derived.
pub(crate) type SessionSecret = [u8; 32];

/// The issuer of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Issuer<'a> {
    /// A key pair: its access key and its secret key.
    Key { access_key: &'a str, secret_key: &'a str },
    /// An OpenID Connect provider, by its name.
    Provider(&'a str),
}

impl Issuer<'_> {
    fn kind(self) -> u8 {
        match self {
            Self::Key { .. } => 1,
            Self::Provider(_) => 2,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Key { access_key, .. } => access_key,
            Self::Provider(name) => name,
        }
    }

    fn secret(&self) -> &str {
        match self {
            Self::Key { secret_key, .. } => secret_key,
            Self::Provider(_) => "",
        }
    }

    /// Returns the readable part of the issuer's tokens: its kind and its name.
    fn prefix(&self) -> Option<Vec<u8>> {
        let length = u8::try_from(self.name().len()).ok()?;
        Some([&[self.kind(), length], self.name().as_bytes()].concat())
    }

    /// Returns the key with which an issuer's tokens are sealed, or from which the secret keys of
    /// its sessions are derived.
    fn key(&self, server: &SessionSecret, purpose: &str) -> [u8; 32] {
        let mut text = purpose.as_bytes().to_vec();
        // Lengths, so that no two issuers have the same text.
        for part in [&[self.kind()][..], self.name().as_bytes(), self.secret().as_bytes()] {
            text.extend((part.len() as u64).to_be_bytes());
            text.extend(part);
        }
        sign(&hmac::Key::new(hmac::HMAC_SHA256, server), &text)
    }
}

/// The claims of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) id: [u8; ID_BYTES],
    /// The end of the session, in seconds since 1970.
    pub(crate) expires_s: i64,
    /// The text of the policy that must allow each request.
    pub(crate) policy: Option<String>,
    /// The user, and the names of its policies, in a session of a provider.
    pub(crate) user: Option<ProviderUser>,
}

/// A user of an OpenID Connect provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderUser {
    pub(crate) name: String,
    /// The names of policies in the key file.
    pub(crate) policies: Vec<String>,
}

/// A new temporary key.
pub(crate) struct TemporaryKey {
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
    pub(crate) token: String,
}

impl Claims {
    /// Returns claims with a random ID; `None` if the kernel has no random bytes.
    pub(crate) fn new(
        expires_s: i64,
        policy: Option<String>,
        user: Option<ProviderUser>,
    ) -> Option<Self> {
        let mut id = [0; ID_BYTES];
        SystemRandom::new().fill(&mut id).ok()?;
        Some(Self { id, expires_s, policy, user })
    }

    /// Returns the temporary access key.
    pub(crate) fn access_key(&self) -> String {
        format!("{ACCESS_KEY_PREFIX}{}", base32(&self.id))
    }

    /// Returns the temporary secret key.
    pub(crate) fn secret_key(&self, server: &SessionSecret, issuer: Issuer<'_>) -> String {
        let key = issuer.key(server, "session secret");
        let secret = sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), &self.id);
        BASE64.encode_to_string(&secret[..SECRET_BYTES])
    }

    /// Returns a temporary key with these claims; `None` if the kernel has no random bytes, or if
    /// the issuer's name is too long.
    pub(crate) fn seal(&self, server: &SessionSecret, issuer: Issuer<'_>) -> Option<TemporaryKey> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let prefix = issuer.prefix()?;
        let mut bytes = self.encode().into_bytes();
        let sealed = cipher(server, issuer)?.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(&prefix),
            &mut bytes,
        );
        sealed.ok()?;
        Some(TemporaryKey {
            access_key: self.access_key(),
            secret_key: self.secret_key(server, issuer),
            token: BASE64.encode_to_string([&prefix[..], &nonce, &bytes].concat()),
        })
    }

    /// Returns the claims in a sealed token; `None` if the token was not sealed by the issuer, or
    /// was changed.
    pub(crate) fn open(
        token: &UnopenedToken<'_>,
        server: &SessionSecret,
        issuer: Issuer<'_>,
    ) -> Option<Self> {
        let prefix = issuer.prefix()?;
        let (nonce, sealed) =
            token.bytes.strip_prefix(&prefix[..])?.split_first_chunk::<NONCE_LEN>()?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = cipher(server, issuer)?.open_in_place(nonce, Aad::from(&prefix), &mut sealed);
        Self::decode(opened.ok()?)
    }

    fn encode(&self) -> String {
        let mut claims =
            json!({ "id": BASE64.encode_to_string(self.id), "expires_s": self.expires_s });
        if let Some(policy) = &self.policy {
            claims["policy"] = policy.as_str().into();
        }
        if let Some(ProviderUser { name, policies }) = &self.user {
            claims["user"] = json!({ "name": name, "policies": policies });
        }
        claims.to_string()
    }

    /// Parses claims. An unknown claim is malformed, because it could restrict the session.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let fields = value.as_object()?;
        let known = ["id", "expires_s", "policy", "user"];
        if fields.keys().any(|name| !known.contains(&name.as_str())) {
            return None;
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let user = match fields.get("user") {
            None => None,
            Some(user) => {
                let policies = user["policies"].as_array()?.iter().map(text);
                Some(ProviderUser {
                    name: text(&user["name"])?,
                    policies: policies.collect::<Option<_>>()?,
                })
            }
        };
        let policy = match fields.get("policy") {
            None => None,
            Some(policy) => Some(text(policy)?),
        };
        let id = BASE64.decode_to_vec(fields.get("id")?.as_str()?).ok()?.try_into().ok()?;
        Some(Self { id, expires_s: fields.get("expires_s")?.as_i64()?, policy, user })
    }
}

/// A session token whose issuer is known, and whose claims are still sealed.
pub(crate) struct UnopenedToken<'a> {
    pub(crate) text: &'a str,
    bytes: Vec<u8>,
}

/// The issuer that a token names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NamedIssuer<'a> {
    Key(&'a str),
    Provider(&'a str),
}

impl<'a> UnopenedToken<'a> {
    /// Decodes a token; `None` if it is malformed.
    pub(crate) fn decode(text: &'a str) -> Option<Self> {
        if text.len() > TOKEN_BYTES_MAX {
            return None;
        }
        // Some clients decode plus signs and padding of other tokens: this alphabet has neither.
        BASE64.decode_to_vec(text).ok().map(|bytes| Self { text, bytes })
    }

    /// Returns the token's issuer, which is not authenticated yet.
    pub(crate) fn issuer(&self) -> Option<NamedIssuer<'_>> {
        let [kind, length, rest @ ..] = &self.bytes[..] else { return None };
        let name = str::from_utf8(rest.get(..usize::from(*length))?).ok()?;
        match kind {
            1 => Some(NamedIssuer::Key(name)),
            2 => Some(NamedIssuer::Provider(name)),
            _ => None,
        }
    }
}

/// The keys of tokens that were opened before: opening one takes about as long as a small read.
pub(crate) struct OpenedTokens<T>(Mutex<VecDeque<(Box<str>, Arc<T>)>>);

impl<T> Default for OpenedTokens<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> fmt::Debug for OpenedTokens<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedTokens").finish_non_exhaustive()
    }
}

impl<T> OpenedTokens<T> {
    /// Returns the key of a token, which is opened unless it was opened before.
    pub(super) fn get_or_open(
        &self,
        token: &str,
        open: impl FnOnce() -> Option<T>,
    ) -> Option<Arc<T>> {
        if let Some(key) = self.get(token) {
            return Some(key);
        }
        let key = Arc::new(open()?);
        self.insert(token, &key);
        Some(key)
    }

    fn get(&self, token: &str) -> Option<Arc<T>> {
        let opened = self.0.lock();
        opened.iter().find(|(known, _)| **known == *token).map(|(_, key)| Arc::clone(key))
    }

    /// Remembers the key of a token, in place of the oldest one if there are many.
    fn insert(&self, token: &str, key: &Arc<T>) {
        let mut opened = self.0.lock();
        if opened.len() == OPENED_MAX {
            opened.pop_front();
        }
        opened.push_back((token.into(), Arc::clone(key)));
    }
}

/// Derives the server's secret for sessions from another secret.
pub(super) fn session_secret(from: &[u8]) -> SessionSecret {
    sign(&hmac::Key::new(hmac::HMAC_SHA256, from), b"haul session secret 1")
}

fn cipher(server: &SessionSecret, issuer: Issuer<'_>) -> Option<LessSafeKey> {
    let key = UnboundKey::new(&AES_256_GCM, &issuer.key(server, "session token"));
    key.ok().map(LessSafeKey::new)
}

fn sign(key: &hmac::Key, text: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(hmac::sign(key, text).as_ref());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: SessionSecret = [7; 32];
    const PARENT: Issuer<'_> = Issuer::Key { access_key: "parent", secret_key: "secret" };

    fn claims() -> Claims {
        let user = ProviderUser { name: "oidc:ann".to_owned(), policies: vec!["a".to_owned()] };
        Claims::new(1_800_000_000, Some("{}".to_owned()), Some(user)).unwrap()
    }

    #[test]
    fn token_is_opened_by_its_issuer_only() {
        let claims = claims();
        let TemporaryKey { access_key, secret_key, token } = claims.seal(&SERVER, PARENT).unwrap();
        assert_eq!((access_key.len(), secret_key.len()), (20, 40));
        let unopened = UnopenedToken::decode(&token).unwrap();
        assert_eq!(unopened.issuer(), Some(NamedIssuer::Key("parent")));
        assert_eq!(Claims::open(&unopened, &SERVER, PARENT).as_ref(), Some(&claims));
        for (server, issuer) in [
            ([8; 32], PARENT),
            (SERVER, Issuer::Key { access_key: "parent", secret_key: "other" }),
            (SERVER, Issuer::Key { access_key: "other", secret_key: "secret" }),
            (SERVER, Issuer::Provider("parent")),
        ] {
            assert_eq!(Claims::open(&unopened, &server, issuer), None);
            assert_ne!(claims.secret_key(&server, issuer), secret_key);
        }
        assert_ne!(claims.seal(&SERVER, PARENT).unwrap().token, token, "a nonce of its own");
    }

    #[test]
    fn token_with_any_changed_byte_is_refused() {
        let token = claims().seal(&SERVER, PARENT).unwrap().token;
        let bytes = BASE64.decode_to_vec(&token).unwrap();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                assert_eq!(
                    Claims::open(&UnopenedToken { text: "", bytes }, &SERVER, PARENT),
                    None,
                    "{at}"
                );
            }
            let cut = UnopenedToken { text: "", bytes: bytes[..at].to_vec() };
            assert_eq!(Claims::open(&cut, &SERVER, PARENT), None, "cut at {at}");
        }
        for text in ["", "?", "AA==", "a+b/", &"A".repeat(TOKEN_BYTES_MAX + 1)] {
            let issuer = UnopenedToken::decode(text);
            assert!(issuer.is_none_or(|token| token.issuer().is_none()), "{text}");
        }
    }

    #[test]
    fn unknown_claims_are_refused() {
        let claims = claims();
        let text = claims.encode();
        assert_eq!(Claims::decode(text.as_bytes()), Some(claims));
        for (from, to) in [
            ("\"policy\"", "\"boundary\":1,\"policy\""),
            ("1800000000", "\"never\""),
            ("\"{}\"", "{}"),
            ("[\"a\"]", "\"a\""),
        ] {
            assert!(text.contains(from), "{text}");
            assert_eq!(Claims::decode(text.replace(from, to).as_bytes()), None, "{to}");
        }
    }

    #[test]
    fn oldest_opened_token_is_forgotten() {
        let (opened, key) = (OpenedTokens::default(), Arc::new(()));
        for number in 0..=OPENED_MAX {
            opened.insert(&number.to_string(), &key);
        }
        assert!(opened.get("0").is_none() && opened.get("1").is_some());
    }
}
