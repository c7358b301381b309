//! Logins to the console by the authorization code flow (OpenID Connect Core 1.0, section 3.1) with
//! PKCE (RFC 7636). Pure, except for random secrets.

use base64_simd::{STANDARD, URL_SAFE_NO_PAD};
use form_urlencoded::{Serializer, byte_serialize};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use crate::oidc::config::LoginConfig;

/// The number of random bytes in a secret of a login.
const SECRET_BYTES: usize = 32;

/// The secrets of one login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoginSecrets {
    /// Comes back with the code, and shows that the browser that brings it has started the login.
    state: String,
    /// Is in the token, and shows that it is for this login.
    nonce: String,
    /// Shows the provider that the code is exchanged by the server that started the login. Only its
    /// hash passes through the browser.
    verifier: String,
}

impl LoginSecrets {
    /// Returns new secrets; `None` if the kernel has no random bytes.
    pub(crate) fn generate() -> Option<Self> {
        Some(Self { state: secret()?, nonce: secret()?, verifier: secret()? })
    }

    pub(crate) fn has_state(&self, state: &str) -> bool {
        self.state == state
    }

    pub(super) fn nonce(&self) -> &str {
        &self.nonce
    }
}

fn secret() -> Option<String> {
    let mut bytes = [0; SECRET_BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode_to_string(bytes))
}

/// Returns the URL at which a provider logs a user in.
pub(super) fn authorization_url(
    endpoint: &str,
    client_id: &str,
    login: &LoginConfig,
    secrets: &LoginSecrets,
) -> String {
    let challenge = digest(&SHA256, secrets.verifier.as_bytes());
    let query = Serializer::new(String::new())
        .append_pair("response_type", "code")
        .append_pair("client_id", client_id)
        .append_pair("redirect_uri", &login.redirect_uri)
        .append_pair("scope", &login.scopes)
        .append_pair("state", &secrets.state)
        .append_pair("nonce", &secrets.nonce)
        .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode_to_string(challenge))
        .append_pair("code_challenge_method", "S256")
        .finish();
    let separator = if endpoint.contains('?') { '&' } else { '?' };
    format!("{endpoint}{separator}{query}")
}

/// The request that exchanges a code for a token.
pub(super) struct TokenRequest {
    pub(super) form: String,
    pub(super) authorization: Option<String>,
}

impl TokenRequest {
    pub(super) fn new(
        client_id: &str,
        login: &LoginConfig,
        accepts_basic: bool,
        code: &str,
        secrets: &LoginSecrets,
    ) -> Self {
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &login.redirect_uri)
            .append_pair("code_verifier", &secrets.verifier);
        let authorization = match &login.client_secret {
            Some(secret) if accepts_basic => Some(basic(client_id, secret)),
            secret => {
                form.append_pair("client_id", client_id);
                if let Some(secret) = secret {
                    form.append_pair("client_secret", secret);
                }
                None
            }
        };
        Self { form: form.finish(), authorization }
    }
}

/// Returns the `Authorization` of a client, whose parts are encoded as in forms (RFC 6749, section
/// 2.3.1).
fn basic(client_id: &str, secret: &str) -> String {
    let [id, secret] =
        [client_id, secret].map(|text| byte_serialize(text.as_bytes()).collect::<String>());
    format!("Basic {}", STANDARD.encode_to_string(format!("{id}:{secret}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(client_secret: Option<&str>) -> LoginConfig {
        LoginConfig {
            redirect_uri: "https://haul.example.com/login/callback".to_owned(),
            client_secret: client_secret.map(str::to_owned),
            scopes: "openid groups".to_owned(),
        }
    }

    /// The verifier and the challenge of RFC 7636, appendix B.
    fn secrets() -> LoginSecrets {
        LoginSecrets {
            state: "state".to_owned(),
            nonce: "nonce".to_owned(),
            verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned(),
        }
    }

    #[test]
    fn browser_gets_the_hash_of_the_verifier_only() {
        let url = authorization_url("https://id/auth", "haul a", &login(None), &secrets());
        let expected = "https://id/auth?response_type=code&client_id=haul+a\
                        &redirect_uri=https%3A%2F%2Fhaul.example.com%2Flogin%2Fcallback\
                        &scope=openid+groups&state=state&nonce=nonce\
                        &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM\
                        &code_challenge_method=S256";
        assert_eq!(url, expected);
        let url = authorization_url("https://id/auth?p=a", "haul", &login(None), &secrets());
        assert!(url.starts_with("https://id/auth?p=a&response_type=code&"), "{url}");
    }

    #[test]
    fn client_authenticates_itself_as_the_provider_accepts_it() {
        let request = |secret: Option<&str>, accepts_basic| {
            TokenRequest::new("haul", &login(secret), accepts_basic, "c", &secrets())
        };
        let common = "grant_type=authorization_code&code=c\
                      &redirect_uri=https%3A%2F%2Fhaul.example.com%2Flogin%2Fcallback\
                      &code_verifier=dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        for (secret, accepts_basic, more, basic) in [
            (None, true, "&client_id=haul", None),
            (Some("a:b"), true, "", Some("Basic aGF1bDphJTNBYg==")),
            (Some("a:b"), false, "&client_id=haul&client_secret=a%3Ab", None),
        ] {
            let request = request(secret, accepts_basic);
            assert_eq!(request.form, format!("{common}{more}"));
            assert_eq!(request.authorization.as_deref(), basic);
        }
    }

    #[test]
    fn secrets_are_random_and_differ() {
        let [first, second] = [(), ()].map(|()| LoginSecrets::generate().unwrap());
        let LoginSecrets { state, nonce, verifier } = &first;
        assert_eq!([state, nonce, verifier].map(String::len), [43; 3]);
        assert!(state != nonce && nonce != verifier && state != verifier && first != second);
        assert!(first.has_state(state) && !first.has_state("") && !second.has_state(state));
    }
}
