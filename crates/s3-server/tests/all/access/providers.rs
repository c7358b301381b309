//! Temporary keys for users of OpenID Connect providers.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64_simd::URL_SAFE_NO_PAD as BASE64;
use haul_s3_server::{FetchDocument, KeyList, KeyRing, Providers, SealingKey};
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::administrator;
use crate::client::{Reply, Running};
use crate::signing::{Signer, hash};

const FORM: &str = "application/x-www-form-urlencoded";

/// A provider on this machine, whose keys change.
struct Provider {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Documents by their paths.
    documents: BTreeMap<String, String>,
    fetched: usize,
}

/// A key that signs tokens.
struct TokenKey {
    id: &'static str,
    pair: Pair,
}

enum Pair {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
}

impl TokenKey {
    fn es256(id: &'static str) -> Self {
        let (random, kind) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).unwrap();
        Self { id, pair: Pair::Es256(pair) }
    }

    fn ed_dsa(id: &'static str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self { id, pair: Pair::EdDsa(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap()) }
    }

    fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Es256(_) => "ES256",
            Pair::EdDsa(_) => "EdDSA",
        }
    }

    fn public(&self) -> Vec<u8> {
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

    fn token(&self, claims: &Value) -> String {
        let header = json!({ "alg": self.algorithm(), "kid": self.id, "typ": "JWT" });
        self.token_with(&header, claims)
    }

    fn token_with(&self, header: &Value, claims: &Value) -> String {
        let encode = |value: &Value| BASE64.encode_to_string(value.to_string());
        let signed = format!("{}.{}", encode(header), encode(claims));
        format!("{signed}.{}", BASE64.encode_to_string(self.sign(signed.as_bytes())))
    }
}

impl Provider {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let provider = Self { address, state: Arc::default() };
        let state = Arc::clone(&provider.state);
        // The thread ends with the test process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                respond(&stream, &state);
            }
        });
        let issuer = provider.issuer();
        let discovery = json!({ "issuer": issuer, "jwks_uri": format!("{issuer}/keys") });
        provider.set("/a/.well-known/openid-configuration", &discovery);
        provider
    }

    fn issuer(&self) -> String {
        format!("http://{}/a", self.address)
    }

    fn set(&self, path: &str, document: &Value) {
        self.state.lock().documents.insert(path.to_owned(), document.to_string());
    }

    fn publish(&self, keys: &[&TokenKey]) {
        let keys: Vec<_> = keys.iter().map(|key| key.jwk()).collect();
        self.set("/a/keys", &json!({ "keys": keys }));
    }

    fn fetched(&self) -> usize {
        self.state.lock().fetched
    }

    fn claims(&self, more: &Value) -> Value {
        let mut claims = json!({
            "iss": self.issuer(), "aud": "haul", "exp": now_s() + 60, "sub": "ann|7",
            "policy": "read",
        });
        for (name, value) in more.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    }
}

fn respond(mut stream: &TcpStream, state: &Mutex<State>) {
    let mut head = [0; 4096];
    let length = stream.read(&mut head).unwrap_or_default();
    let head = String::from_utf8_lossy(&head[..length]).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let mut state = state.lock();
    state.fetched += 1;
    let (status, document) = match state.documents.get(path) {
        Some(document) => (200, document.as_str()),
        None => (404, ""),
    };
    let length = document.len();
    let response = format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{document}"
    );
    stream.write_all(response.as_bytes()).ok();
}

/// A small HTTP client.
#[derive(Debug)]
struct Fetcher;

impl FetchDocument for Fetcher {
    fn fetch(&self, url: &str) -> Result<Vec<u8>, String> {
        let rest = url.strip_prefix("http://").ok_or("another scheme")?;
        let (address, path) = rest.split_once('/').ok_or("no path")?;
        let mut stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .map_err(|error| error.to_string())?;
        let request = format!("GET /{path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
        let mut text = String::new();
        stream.read_to_string(&mut text).map_err(|error| error.to_string())?;
        let (head, body) = text.split_once("\r\n\r\n").ok_or("no response")?;
        match head.starts_with("HTTP/1.1 200 ") {
            true => Ok(body.as_bytes().to_vec()),
            false => Err(format!("{url}: {head}")),
        }
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

const READ: &str = r#"{"Statement":{"Effect":"Allow","Action":["s3:GetObject","s3:ListBucket"],
    "Resource":["arn:aws:s3:::bucket","arn:aws:s3:::bucket/*"]}}"#;
const CREATE: &str = r#"{"Statement":{"Effect":"Allow","Action":"s3:CreateBucket",
    "Resource":"arn:aws:s3:::*"}}"#;

/// A server with a provider, and a bucket with an object.
struct Setup {
    server: Running,
    provider: Provider,
    ring: Arc<KeyRing>,
    list: KeyList,
}

impl Setup {
    fn new(more: &Value) -> Self {
        let provider = Provider::start();
        let mut config = json!({ "name": "id", "issuer": provider.issuer(), "audience": "haul" });
        for (name, value) in more.as_object().unwrap() {
            config[name] = value.clone();
        }
        let config = json!({ "providers": [config] }).to_string();
        let providers = Providers::parse(&config, Arc::new(Fetcher)).unwrap();
        let mut list = KeyList::default();
        list.policies_mut().put("read", READ).unwrap();
        list.policies_mut().put("create", CREATE).unwrap();
        let seal = SealingKey::generate().unwrap();
        let ring = Arc::new(KeyRing::new(list.clone()).with_sealing_key(&seal));
        let server = Running::with_providers(administrator(), &ring, providers);
        let setup = Self { server, provider, ring, list };
        let pair = administrator();
        let (access_key, secret_key) = (&*pair.access_key, &*pair.secret_key);
        let root = Signer { client: setup.server.s3, access_key, secret_key };
        assert_eq!(root.send("PUT", "/bucket", &hash(b""), b"").status, 200);
        assert_eq!(root.send("PUT", "/bucket/key", &hash(b"hello"), b"hello").status, 200);
        setup
    }

    fn exchange(&self, token: &str) -> Reply {
        self.exchange_with(token, "")
    }

    fn exchange_with(&self, token: &str, more: &str) -> Reply {
        let form = format!(
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=x&RoleSessionName=y\
             &DurationSeconds=900&WebIdentityToken={token}{more}"
        );
        self.server.s3.send("POST", "/", &[("content-type", FORM)], form.as_bytes())
    }

    fn code(&self, token: &str) -> String {
        self.exchange(token).xml("Code").unwrap_or_default()
    }

    /// Sends a request with the temporary key in a response.
    fn send(&self, keys: &Reply, method: &str, target: &str) -> Reply {
        assert_eq!(keys.status, 200, "{}", keys.text());
        let part = |name: &str| keys.xml(name).unwrap();
        let (access, secret) = (part("AccessKeyId"), part("SecretAccessKey"));
        let signer = Signer { client: self.server.s3, access_key: &access, secret_key: &secret };
        let token = part("SessionToken");
        let more = [("x-amz-security-token", &*token)];
        signer.send_with(method, target, &hash(b""), &more, |_| Vec::new())
    }
}

#[test]
fn user_of_a_provider_has_the_policies_that_its_token_names() {
    for key in [TokenKey::es256("a"), TokenKey::ed_dsa("b")] {
        let mut setup = Setup::new(&json!({}));
        setup.provider.publish(&[&key]);
        let claims = setup.provider.claims(&json!({ "preferred_username": "ann" }));
        let keys = setup.exchange(&key.token(&claims));
        assert_eq!(keys.xml("SubjectFromWebIdentityToken").as_deref(), Some("id:ann"));
        assert_eq!(keys.xml("Provider"), Some(setup.provider.issuer()));
        assert_eq!(setup.send(&keys, "GET", "/bucket/key").body, b"hello");
        assert_eq!(setup.send(&keys, "GET", "/bucket?list-type=2").status, 200);
        assert_eq!(setup.send(&keys, "PUT", "/bucket/key").status, 403);
        assert_eq!(setup.send(&keys, "PUT", "/mine").status, 403);
        // The policies are those of the moment.
        assert!(setup.list.policies_mut().remove("read").unwrap());
        setup.ring.replace(setup.list.clone());
        assert_eq!(setup.send(&keys, "GET", "/bucket/key").status, 403);
    }
}

#[test]
fn user_of_a_provider_is_no_local_user() {
    let mut setup = Setup::new(&json!({}));
    let key = TokenKey::es256("a");
    setup.provider.publish(&[&key]);
    // The owner of the bucket is a local user with the name of the provider's user.
    let local = setup.list.create("ann", SystemTime::now()).unwrap();
    local.creates_buckets = true;
    let local = local.clone();
    setup.ring.replace(setup.list.clone());
    let signer = Signer {
        client: setup.server.s3,
        access_key: &local.access_key,
        secret_key: &local.secret_key,
    };
    assert_eq!(signer.send("PUT", "/anns", &hash(b""), b"").status, 200);
    let named = |name: &str, policy: &str| {
        setup.provider.claims(&json!({ "preferred_username": name, "policy": policy }))
    };
    let ann = setup.exchange(&key.token(&named("ann", "create")));
    assert_eq!(setup.send(&ann, "GET", "/anns").status, 403);
    assert_eq!(setup.send(&ann, "PUT", "/anns").status, 409);
    assert_eq!(setup.send(&ann, "PUT", "/provided").status, 200);
    assert_eq!(setup.send(&ann, "GET", "/provided").status, 200, "it owns its bucket");
    assert_eq!(signer.send("GET", "/provided", &hash(b""), b"").status, 403);
    for name in ["haul", "anonymous", "a:b", "a/b", "x y", "ä"] {
        let reply = setup.exchange(&key.token(&named(name, "read")));
        let user = reply.xml("SubjectFromWebIdentityToken").unwrap();
        assert!(user.starts_with("id:") && !user[3..].contains([':', '/', ' ']), "{user}");
        assert_eq!(setup.send(&reply, "PUT", "/bucket/key").status, 403, "{name}");
    }
    let reply = setup.exchange(&key.token(&setup.provider.claims(&json!({}))));
    assert_eq!(reply.xml("SubjectFromWebIdentityToken").as_deref(), Some("id:ann%7C7"));
}

#[test]
fn claims_select_policies_by_name_or_by_a_table() {
    let table = json!({
        "policy_claim": "groups", "user_claim": "email",
        "policies": { "readers": ["read", "none"], "makers": ["create"] },
    });
    for (config, claims, reads, creates) in [
        (json!({}), json!({ "policy": "none, read" }), 200, 403),
        (json!({}), json!({ "policy": ["read", "create"] }), 200, 200),
        (json!({}), json!({ "policy": ["read,create"] }), 403, 403),
        (json!({}), json!({ "policy": null }), 403, 403),
        (table.clone(), json!({ "email": "a@b", "groups": ["readers", "x"] }), 200, 403),
        (table.clone(), json!({ "email": "a@b", "groups": "readers,makers" }), 200, 200),
        (table.clone(), json!({ "email": "a@b", "groups": ["read"] }), 403, 403),
    ] {
        let (setup, key) = (Setup::new(&config), TokenKey::es256("a"));
        setup.provider.publish(&[&key]);
        let keys = setup.exchange(&key.token(&setup.provider.claims(&claims)));
        assert_eq!(setup.send(&keys, "GET", "/bucket/key").status, reads, "{claims}");
        assert_eq!(setup.send(&keys, "PUT", "/new-bucket").status, creates, "{claims}");
    }
    let (setup, key) = (Setup::new(&table), TokenKey::es256("a"));
    setup.provider.publish(&[&key]);
    assert_eq!(setup.code(&key.token(&setup.provider.claims(&json!({})))), "InvalidIdentityToken");
}

#[test]
fn tokens_that_are_not_for_this_server_are_refused() {
    let (setup, key, other) = (Setup::new(&json!({})), TokenKey::es256("a"), TokenKey::es256("a"));
    setup.provider.publish(&[&key]);
    let claims = |more: Value| setup.provider.claims(&more);
    let valid = claims(json!({}));
    assert_eq!(setup.code(&key.token(&valid)), "");
    assert_eq!(setup.code(&key.token(&claims(json!({ "aud": ["x", "haul"] })))), "");
    for (claims, code) in [
        (claims(json!({ "aud": "other" })), "InvalidIdentityToken"),
        (claims(json!({ "aud": null })), "InvalidIdentityToken"),
        (claims(json!({ "aud": ["haul2"] })), "InvalidIdentityToken"),
        (claims(json!({ "iss": format!("{}/", setup.provider.issuer()) })), "InvalidIdentityToken"),
        (claims(json!({ "iss": "https://other.example.com" })), "InvalidIdentityToken"),
        (claims(json!({ "exp": now_s() - 1 })), "ExpiredTokenException"),
        (claims(json!({ "exp": "never" })), "InvalidIdentityToken"),
        (claims(json!({ "exp": null })), "InvalidIdentityToken"),
        (claims(json!({ "nbf": now_s() + 600 })), "InvalidIdentityToken"),
        (claims(json!({ "sub": "" })), "InvalidIdentityToken"),
        (claims(json!({ "policy": 7 })), "InvalidIdentityToken"),
    ] {
        assert_eq!(setup.code(&key.token(&claims)), code, "{claims}");
    }
    // Another key with the same ID, another claim, and algorithms that need no private key.
    assert_eq!(setup.code(&other.token(&valid)), "InvalidIdentityToken");
    let token = key.token(&valid);
    let (head, signature) = token.rsplit_once('.').unwrap();
    let header = head.split('.').next().unwrap();
    let admin = BASE64.encode_to_string(claims(json!({ "policy": "create" })).to_string());
    assert_eq!(setup.code(&format!("{header}.{admin}.{signature}")), "InvalidIdentityToken");
    assert_eq!(setup.code(&format!("{head}.")), "InvalidIdentityToken");
    for header in [
        json!({ "alg": "none" }),
        json!({ "alg": "HS256", "kid": "a" }),
        json!({ "alg": "EdDSA", "kid": "a" }),
        json!({ "alg": "RS256", "kid": "a" }),
    ] {
        assert_eq!(
            setup.code(&key.token_with(&header, &valid)),
            "InvalidIdentityToken",
            "{header}"
        );
    }
    let hmac_key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key.public());
    let encode = |value: &Value| BASE64.encode_to_string(value.to_string());
    let signed = format!("{}.{}", encode(&json!({ "alg": "HS256", "kid": "a" })), encode(&valid));
    let tag = ring::hmac::sign(&hmac_key, signed.as_bytes());
    let confused = format!("{signed}.{}", BASE64.encode_to_string(tag.as_ref()));
    assert_eq!(setup.code(&confused), "InvalidIdentityToken");
    for token in ["", "a", "a.b.c"] {
        assert_eq!(setup.code(token), "InvalidIdentityToken", "{token}");
    }
}

#[test]
fn keys_are_fetched_once_and_unknown_ones_are_not_fetched_at_each_request() {
    let (setup, key, next) = (Setup::new(&json!({})), TokenKey::es256("a"), TokenKey::ed_dsa("b"));
    setup.provider.publish(&[&key]);
    let claims = setup.provider.claims(&json!({}));
    for _ in 0..3 {
        assert_eq!(setup.code(&key.token(&claims)), "");
    }
    assert_eq!(setup.provider.fetched(), 2, "the discovery document and the keys");
    setup.provider.publish(&[&next]);
    for _ in 0..3 {
        // A moment after the last fetch, an unknown key is refused without another one.
        assert_eq!(setup.code(&next.token(&claims)), "InvalidIdentityToken");
    }
    assert_eq!(setup.provider.fetched(), 2);
}

#[test]
fn documents_of_a_provider_are_checked() {
    for (path, document) in [
        ("/a/keys", json!({})),
        ("/a/keys", json!({ "keys": [] })),
        ("/a/.well-known/openid-configuration", json!({ "issuer": "http://127.0.0.1:1/b" })),
        ("/a/.well-known/openid-configuration", json!([])),
    ] {
        let (setup, key) = (Setup::new(&json!({})), TokenKey::es256("a"));
        setup.provider.publish(&[&key]);
        setup.provider.set(path, &document);
        let code = setup.code(&key.token(&setup.provider.claims(&json!({}))));
        let is_empty = document["keys"].is_array();
        let expected = if is_empty { "InvalidIdentityToken" } else { "IDPCommunicationError" };
        assert_eq!(code, expected, "{path} {document}");
    }
    // Keys at an address that anybody could answer for are not used.
    let (setup, key) = (Setup::new(&json!({})), TokenKey::es256("a"));
    setup.provider.publish(&[&key]);
    let issuer = setup.provider.issuer();
    let elsewhere = json!({ "issuer": issuer, "jwks_uri": "http://192.0.2.1/keys" });
    setup.provider.set("/a/.well-known/openid-configuration", &elsewhere);
    let code = setup.code(&key.token(&setup.provider.claims(&json!({}))));
    assert_eq!(code, "IDPCommunicationError");
}

#[test]
fn session_policy_restricts_a_user_of_a_provider() {
    let (setup, key) = (Setup::new(&json!({})), TokenKey::es256("a"));
    setup.provider.publish(&[&key]);
    let token = key.token(&setup.provider.claims(&json!({})));
    let policy = r#"{"Statement":{"Effect":"Allow","Action":"s3:ListBucket","Resource":"*"}}"#;
    let policy = policy.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let keys = setup.exchange_with(&token, &format!("&Policy={policy}"));
    assert_eq!(setup.send(&keys, "GET", "/bucket").status, 200);
    assert_eq!(setup.send(&keys, "GET", "/bucket/key").status, 403);
    let refused = setup.exchange_with(&token, "&ProviderId=x");
    assert_eq!(refused.xml("Code").as_deref(), Some("ValidationError"));
}
