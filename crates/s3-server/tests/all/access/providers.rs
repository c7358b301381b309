//! Temporary keys for users of OpenID Connect providers.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64_simd::URL_SAFE_NO_PAD as BASE64;
use haul_s3_server::{KeyList, KeyRing, ProviderClient, Providers, SealingKey};
use haul_testing::http::Peer;
use haul_testing::oidc::{IdentityProvider, TokenKey};
use serde_json::{Value, json};

use super::administrator;
use crate::client::{Reply, Running};
use crate::signing::{Signer, hash};

const FORM: &str = "application/x-www-form-urlencoded";

/// A small HTTP client.
#[derive(Debug)]
struct Client;

impl ProviderClient for Client {
    fn get(&self, url: &str) -> Result<Vec<u8>, String> {
        exchange(url, "GET", "", None)
    }

    fn post(&self, url: &str, form: &str, authorization: Option<&str>) -> Result<Vec<u8>, String> {
        exchange(url, "POST", form, authorization)
    }
}

fn exchange(
    url: &str,
    method: &str,
    body: &str,
    authorization: Option<&str>,
) -> Result<Vec<u8>, String> {
    let rest = url.strip_prefix("http://").ok_or("another scheme")?;
    let (address, path) = rest.split_once('/').ok_or("no path")?;
    let mut peer = Peer::connect(address).map_err(|error| error.to_string())?;
    let length = body.len();
    let more = authorization.map(|value| format!("authorization: {value}\r\n"));
    let more = more.unwrap_or_default();
    let head = format!("{method} /{path} HTTP/1.1\r\nhost: {address}\r\n{more}");
    let response = peer.exchange(format!("{head}content-length: {length}\r\n\r\n{body}"));
    match response.status {
        200 => Ok(response.body),
        status => Err(format!("{url}: {status}")),
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

const READ: &str = r#"{"Statement":{"Effect":"Allow","Action":["s3:GetObject","s3:ListBucket"],
    "Resource":["arn:aws:s3:::bucket","arn:aws:s3:::bucket/*"]}}"#;
const CREATE: &str = r#"{"Statement":{"Effect":"Allow","Action":"s3:CreateBucket",
    "Resource":"arn:aws:s3:::*"}}"#;

/// Returns a policy that denies everything.
pub(super) fn deny_all() -> String {
    READ.replacen("Allow", "Deny", 1)
}

/// A server with a provider, and a bucket with an object.
pub(super) struct Setup {
    pub(super) server: Running,
    pub(super) provider: IdentityProvider,
    pub(super) ring: Arc<KeyRing>,
    pub(super) list: KeyList,
}

impl Setup {
    pub(super) fn new(more: &Value) -> Self {
        let provider = IdentityProvider::start();
        let mut config = json!({ "name": "id", "issuer": provider.issuer(), "audience": "haul" });
        for (name, value) in more.as_object().unwrap() {
            config[name] = value.clone();
        }
        let config = json!({ "providers": [config] }).to_string();
        let providers = Providers::parse(&config, Arc::new(Client)).unwrap();
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
    assert_eq!(setup.provider.requests(), 2, "the discovery document and the keys");
    setup.provider.publish(&[&next]);
    for _ in 0..3 {
        // A moment after the last fetch, an unknown key is refused without another one.
        assert_eq!(setup.code(&next.token(&claims)), "InvalidIdentityToken");
    }
    assert_eq!(setup.provider.requests(), 2);
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
