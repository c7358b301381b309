//! Parses the configuration of OpenID Connect providers. Pure.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// The claims with a user's name if the configuration names none, by precedence.
const USER_CLAIMS: [&str; 2] = ["preferred_username", "sub"];

/// The claim with the names of policies if the configuration names none.
const POLICY_CLAIM: &str = "policy";

/// The path of the console's page to which a provider sends browsers back, whose name follows: one
/// provider cannot send back what another one has issued.
pub(crate) const REDIRECT_PATH: &str = "/login/callback/";

/// What a login asks for if the configuration names no scopes: the claims with a user's name.
const SCOPES: &str = "openid profile email";

/// The maximum length of a provider's name, in bytes.
const NAME_BYTES_MAX: usize = 32;

/// The configuration of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProviderConfig {
    /// The first part of its users' names.
    pub(super) name: String,
    /// The URL that its tokens name.
    pub(super) issuer: String,
    /// The audience of its tokens: the ID of the client for which they are issued.
    pub(super) audience: String,
    pub(super) user_claims: Vec<String>,
    pub(super) policy_claim: String,
    /// The policies for each value of the claim; `None` if the values are names of policies.
    pub(super) policies: Option<BTreeMap<String, Vec<String>>>,
    /// `None` if users do not log in to the console with the provider.
    pub(super) login: Option<LoginConfig>,
}

/// How users log in to the console. The ID of the client is the audience of the provider.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct LoginConfig {
    /// The URL to which the provider sends browsers back: a page of the console.
    pub(super) redirect_uri: String,
    /// The secret of the client, if it is a confidential one.
    pub(super) client_secret: Option<String>,
    pub(super) scopes: String,
}

impl fmt::Debug for LoginConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginConfig")
            .field("redirect_uri", &self.redirect_uri)
            .finish_non_exhaustive()
    }
}

impl ProviderConfig {
    /// Parses a file of providers.
    pub(super) fn parse_file(text: &str) -> Result<Vec<Self>> {
        let file: Value = serde_json::from_str(text).map_err(|error| fail(error.to_string()))?;
        let fields = fields(&file, "the file", &["providers"])?;
        let list = fields.get("providers").and_then(Value::as_array);
        let list = list.ok_or_else(|| fail("the file has no list \"providers\""))?;
        let providers = list.iter().map(Self::parse).collect::<Result<Vec<_>>>()?;
        for (number, provider) in providers.iter().enumerate() {
            let is_other =
                |other: &Self| other.name == provider.name || other.issuer == provider.issuer;
            if providers[..number].iter().any(is_other) {
                let name = &provider.name;
                return Err(fail(format!("two providers have the name or the issuer of {name}")));
            }
        }
        match providers.is_empty() {
            true => Err(fail("the file has no provider")),
            false => Ok(providers),
        }
    }

    fn parse(value: &Value) -> Result<Self> {
        let known = [
            "name",
            "issuer",
            "audience",
            "user_claim",
            "policy_claim",
            "policies",
            "console_url",
            "client_secret",
            "scopes",
        ];
        let fields = fields(value, "a provider", &known)?;
        let optional = |name: &str| match fields.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
            Some(_) => Err(fail(format!("\"{name}\" of a provider must be a text"))),
        };
        let text = |name: &str| {
            optional(name)?.ok_or_else(|| fail(format!("a provider has no \"{name}\"")))
        };
        let (name, issuer) = (text("name")?, text("issuer")?);
        let is_name = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if name.len() > NAME_BYTES_MAX || !name.bytes().all(is_name) {
            let text = "1 to 32 lower-case letters, digits and hyphens";
            return Err(fail(format!("the name of a provider has {text}, and is not {name}")));
        }
        check_url(&issuer).map_err(|why| fail(format!("the issuer {issuer} {why}")))?;
        let user_claims = match optional("user_claim")? {
            Some(claim) => vec![claim],
            None => USER_CLAIMS.map(str::to_owned).to_vec(),
        };
        let policy_claim = optional("policy_claim")?.unwrap_or_else(|| POLICY_CLAIM.to_owned());
        let policies = fields.get("policies").map(policies).transpose()?;
        let audience = text("audience")?;
        let [console_url, client_secret, scopes] =
            ["console_url", "client_secret", "scopes"].map(optional);
        let (client_secret, scopes) = (client_secret?, scopes?);
        let login = match console_url? {
            Some(url) => {
                check_url(&url).map_err(|why| fail(format!("the console_url {url} {why}")))?;
                let redirect_uri = format!("{}{REDIRECT_PATH}{name}", url.trim_end_matches('/'));
                let scopes = scopes.unwrap_or_else(|| SCOPES.to_owned());
                if !scopes.split(' ').any(|scope| scope == "openid") {
                    return Err(fail("the scopes of a provider must contain openid"));
                }
                Some(LoginConfig { redirect_uri, client_secret, scopes })
            }
            None if client_secret.is_some() || scopes.is_some() => {
                let text = "client_secret and scopes are for logins to the console, and need \
                            console_url";
                return Err(fail(text));
            }
            None => None,
        };
        Ok(Self { name, issuer, audience, user_claims, policy_claim, policies, login })
    }
}

/// Fails unless a URL is that of a server whose answers can be trusted: with TLS, or on this
/// machine.
pub(super) fn check_url(url: &str) -> std::result::Result<(), &'static str> {
    if url.contains(['?', '#', ' ']) || url.chars().any(char::is_control) {
        return Err("has a query or a fragment, or is no URL");
    }
    if url.strip_prefix("https://").is_some_and(|rest| !rest.starts_with(['/', ':'])) {
        return Ok(());
    }
    let rest = url.strip_prefix("http://").ok_or("does not begin with https://")?;
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let is_loopback =
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    match is_loopback {
        true => Ok(()),
        false => Err("must begin with https://, because it is not on this machine"),
    }
}

/// Parses a table of claim values and their policies.
fn policies(value: &Value) -> Result<BTreeMap<String, Vec<String>>> {
    let malformed = || fail("\"policies\" must be a table of values and lists of policies");
    let table = value.as_object().ok_or_else(malformed)?;
    let row = |(value, names): (&String, &Value)| {
        let names = names.as_array()?.iter().map(|name| name.as_str().map(str::to_owned));
        Some((value.clone(), names.collect::<Option<_>>()?))
    };
    table.iter().map(|pair| row(pair).ok_or_else(malformed)).collect()
}

fn fields<'a>(value: &'a Value, what: &str, known: &[&str]) -> Result<&'a Map<String, Value>> {
    let fields = value.as_object().ok_or_else(|| fail(format!("{what} must be an object")))?;
    match fields.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(fail(format!("{what} has the unknown member \"{name}\""))),
        None => Ok(fields),
    }
}

fn fail(why: impl Into<String>) -> Error {
    Error::Provider { why: why.into() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_have_defaults() {
        let provider = json!({
            "name": "id", "issuer": "https://id.example.com", "audience": "haul",
        });
        let text = json!({ "providers": [provider] }).to_string();
        let [parsed] = &ProviderConfig::parse_file(&text).unwrap()[..] else { panic!("{text}") };
        assert_eq!(parsed.user_claims, USER_CLAIMS);
        assert_eq!((&*parsed.policy_claim, &parsed.policies), (POLICY_CLAIM, &None));
    }

    #[test]
    fn invalid_providers_are_refused() {
        let valid = json!({
            "name": "id", "issuer": "https://id.example.com/a", "audience": "haul",
            "user_claim": "email", "policy_claim": "groups", "policies": { "admins": ["all"] },
        });
        let parse = |provider: &Value| {
            ProviderConfig::parse_file(&json!({ "providers": [provider] }).to_string())
        };
        assert!(parse(&valid).is_ok());
        for (name, value) in [
            ("name", json!("")),
            ("name", json!("a:b")),
            ("name", json!("a".repeat(33))),
            ("issuer", json!("http://id.example.com")),
            ("issuer", json!("https://id.example.com?a")),
            ("issuer", json!("ftp://127.0.0.1")),
            ("issuer", json!("https:///a")),
            ("audience", json!(1)),
            ("user_claim", json!(["a"])),
            ("policies", json!({ "admins": "all" })),
            ("policies", json!(["all"])),
            ("secret", json!("a")),
            ("client_secret", json!("a")),
            ("scopes", json!("openid")),
            ("console_url", json!("http://haul.example.com")),
        ] {
            let mut provider = valid.clone();
            provider[name] = value;
            assert!(parse(&provider).is_err(), "{provider}");
        }
        for missing in ["name", "issuer", "audience"] {
            let mut provider = valid.clone();
            provider.as_object_mut().unwrap().remove(missing);
            assert!(parse(&provider).is_err(), "{provider}");
        }
        for text in ["", "[]", "{}", r#"{"providers":[]}"#, r#"{"providers":[],"a":1}"#] {
            assert!(ProviderConfig::parse_file(text).is_err(), "{text}");
        }
        let twice = json!({ "providers": [valid, valid] }).to_string();
        assert!(ProviderConfig::parse_file(&twice).is_err());
    }

    #[test]
    fn login_has_a_page_of_the_console_and_the_scope_of_identities() {
        let parse = |more: &Value| {
            let mut provider =
                json!({ "name": "id", "issuer": "https://id.example.com", "audience": "haul" });
            provider.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let parsed =
                ProviderConfig::parse_file(&json!({ "providers": [provider] }).to_string());
            parsed.map(|mut providers| providers.remove(0).login)
        };
        assert_eq!(parse(&json!({})).unwrap(), None);
        let login = parse(&json!({ "console_url": "https://haul.example.com/" })).unwrap().unwrap();
        assert_eq!(login.redirect_uri, "https://haul.example.com/login/callback/id");
        assert_eq!((login.client_secret, &*login.scopes), (None, SCOPES));
        let url = "http://127.0.0.1:9001";
        assert!(parse(&json!({ "console_url": url, "scopes": "openid groups" })).is_ok());
        assert!(parse(&json!({ "console_url": url, "scopes": "groups" })).is_err());
    }

    #[test]
    fn plain_http_is_for_this_machine() {
        for url in ["http://127.0.0.1:1/a", "http://localhost", "http://[::1]:1/", "https://a/b"] {
            assert_eq!(check_url(url), Ok(()), "{url}");
        }
        for url in ["http://127.0.0.1.example.com", "http://10.0.0.1", "http://[::2]", "https://"] {
            assert!(check_url(url).is_err() || url == "https://", "{url}");
        }
    }
}
