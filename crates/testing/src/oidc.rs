//! An OpenID Connect provider whose documents, keys and users a test chooses.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use base64_simd::URL_SAFE_NO_PAD as BASE64;
use form_urlencoded::parse;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use crate::http::{Message, Peer};

/// The code of each login. That of a real provider is random and for one use.
const CODE: &str = "the code";

/// A key that signs tokens.
#[derive(Debug)]
pub struct TokenKey {
    id: &'static str,
    pair: Pair,
}

#[derive(Debug)]
enum Pair {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
}

impl TokenKey {
    /// Generates a key on the curve P-256.
    ///
    /// # Panics
    /// Panics if the kernel has no random bytes.
    #[must_use]
    pub fn es256(id: &'static str) -> Self {
        let (random, kind) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).unwrap();
        Self { id, pair: Pair::Es256(pair) }
    }

    /// Generates a key of Ed25519.
    ///
    /// # Panics
    /// Panics if the kernel has no random bytes.
    #[must_use]
    pub fn ed_dsa(id: &'static str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self { id, pair: Pair::EdDsa(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap()) }
    }

    fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Es256(_) => "ES256",
            Pair::EdDsa(_) => "EdDSA",
        }
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> Vec<u8> {
        match &self.pair {
            Pair::Es256(pair) => pair.public_key().as_ref().to_vec(),
            Pair::EdDsa(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    fn jwk(&self) -> Value {
        let (point, text) = (self.public(), |bytes: &[u8]| BASE64.encode_to_string(bytes));
        match self.pair {
            Pair::Es256(_) => json!({
                "kty": "EC", "crv": "P-256", "kid": self.id, "use": "sig", "alg": "ES256",
                "x": text(&point[1..33]), "y": text(&point[33..]),
            }),
            Pair::EdDsa(_) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": self.id, "x": text(&point) })
            }
        }
    }

    fn sign(&self, text: &[u8]) -> Vec<u8> {
        match &self.pair {
            Pair::Es256(pair) => pair.sign(&SystemRandom::new(), text).unwrap().as_ref().to_vec(),
            Pair::EdDsa(pair) => pair.sign(text).as_ref().to_vec(),
        }
    }

    /// Returns a token with these claims.
    ///
    /// # Panics
    /// Panics if the kernel has no random bytes.
    #[must_use]
    pub fn token(&self, claims: &Value) -> String {
        let header = json!({ "alg": self.algorithm(), "kid": self.id, "typ": "JWT" });
        self.token_with(&header, claims)
    }

    /// Returns a token with this header and these claims.
    ///
    /// # Panics
    /// Panics if the kernel has no random bytes.
    #[must_use]
    pub fn token_with(&self, header: &Value, claims: &Value) -> String {
        let encode = |value: &Value| BASE64.encode_to_string(value.to_string());
        let signed = format!("{}.{}", encode(header), encode(claims));
        format!("{signed}.{}", BASE64.encode_to_string(self.sign(signed.as_bytes())))
    }
}

/// A provider on this machine, which runs until the process ends.
///
/// Its login page asks for nothing: it logs the chosen user in and sends the browser back with a
/// code, which its token endpoint exchanges if the verifier of PKCE is right.
#[derive(Debug, Clone)]
pub struct IdentityProvider {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Documents by their paths.
    documents: BTreeMap<String, String>,
    requests: usize,
    /// Who logs in, and with which key its token is signed.
    user: Option<(Arc<TokenKey>, Value)>,
    /// The query of the last request for a login.
    asked: BTreeMap<String, String>,
}

impl IdentityProvider {
    /// Starts a provider without keys on a free port.
    ///
    /// # Panics
    /// Panics if no port is free.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let provider = Self { address, state: Arc::default() };
        let accepting = provider.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let provider = accepting.clone();
                thread::spawn(move || provider.serve(stream));
            }
        });
        let issuer = provider.issuer();
        let discovery = json!({
            "issuer": issuer,
            "jwks_uri": format!("{issuer}/keys"),
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
        });
        provider.set("/a/.well-known/openid-configuration", &discovery);
        provider
    }

    /// Returns the URL that its tokens name.
    #[must_use]
    pub fn issuer(&self) -> String {
        format!("http://{}/a", self.address)
    }

    /// Sets the document with this path.
    ///
    /// # Panics
    /// Panics if a thread of the provider has panicked.
    pub fn set(&self, path: &str, document: &Value) {
        self.state.lock().unwrap().documents.insert(path.to_owned(), document.to_string());
    }

    /// Publishes these keys, and no others.
    ///
    /// # Panics
    /// Panics if a thread of the provider has panicked.
    pub fn publish(&self, keys: &[&TokenKey]) {
        let keys: Vec<_> = keys.iter().map(|key| key.jwk()).collect();
        self.set("/a/keys", &json!({ "keys": keys }));
    }

    /// Logs in a user with these claims, whose tokens are signed with `key`. The tokens also have the
    /// `nonce` of the login, unless the claims have one.
    ///
    /// # Panics
    /// Panics if a thread of the provider has panicked.
    pub fn log_in_as(&self, key: TokenKey, claims: Value) {
        self.state.lock().unwrap().user = Some((Arc::new(key), claims));
    }

    /// Returns the number of requests.
    ///
    /// # Panics
    /// Panics if a thread of the provider has panicked.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.state.lock().unwrap().requests
    }

    /// Returns the claims of a token for the audience `haul` that is valid for a minute, with `more`.
    ///
    /// # Panics
    /// Panics if `more` is no object.
    #[must_use]
    pub fn claims(&self, more: &Value) -> Value {
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut claims = json!({
            "iss": self.issuer(), "aud": "haul", "exp": now_s + 60, "sub": "ann|7",
            "policy": "read",
        });
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    }

    fn serve(&self, stream: TcpStream) {
        let mut peer = Peer::new(stream);
        while let Ok(Some(request)) = peer.request() {
            if peer.try_send(self.answer(&request)).is_err() {
                return;
            }
        }
    }

    fn answer(&self, request: &Message) -> String {
        let target = request.line.split(' ').nth(1).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut state = self.state.lock().unwrap();
        state.requests += 1;
        match path {
            "/a/authorize" => {
                state.asked = parse(query.as_bytes()).into_owned().collect();
                let mut to = form_urlencoded::Serializer::new(String::new());
                to.append_pair("code", CODE).append_pair("state", &state.asked["state"]);
                let location = format!("{}?{}", state.asked["redirect_uri"], to.finish());
                response(302, &format!("location: {location}\r\n"), "")
            }
            "/a/token" => match state.token(&request.body) {
                Some(token) => response(200, "", &json!({ "id_token": token }).to_string()),
                None => response(400, "", r#"{"error":"invalid_grant"}"#),
            },
            _ => match state.documents.get(path) {
                Some(document) => response(200, "", document),
                None => response(404, "", ""),
            },
        }
    }
}

impl State {
    /// Returns the token for a form, if it has the code and the verifier of the last login.
    fn token(&self, form: &[u8]) -> Option<String> {
        let form: BTreeMap<String, String> = parse(form).into_owned().collect();
        let challenge = digest(&SHA256, form.get("code_verifier")?.as_bytes());
        let is_right = form.get("code")? == CODE
            && form.get("redirect_uri")? == self.asked.get("redirect_uri")?
            && BASE64.encode_to_string(challenge) == *self.asked.get("code_challenge")?;
        let (key, claims) = self.user.as_ref().filter(|_| is_right)?;
        let mut claims = claims.clone();
        if claims.get("nonce").is_none() {
            claims["nonce"] = self.asked["nonce"].clone().into();
        }
        Some(key.token(&claims))
    }
}

fn response(status: u16, fields: &str, body: &str) -> String {
    let mut text = format!("HTTP/1.1 {status} Status\r\n{fields}");
    write!(text, "content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    text
}
