//! JSON Web Tokens that are signed by a public key (RFC 7515 and 7519). Pure.

use base64_simd::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Map, Value};

/// The maximum length of a token, in bytes, as in AWS.
const TOKEN_BYTES_MAX: usize = 20_000;

/// The algorithms that are accepted (RFC 7518 and 8037). Tokens without a signature, and signatures
/// with a secret, are not: a provider's public key must never be used as a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// RSA, at least 2048 bits, with SHA-256.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// Returns the algorithm with this name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            "EdDSA" | "Ed25519" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

/// A token whose signature is not verified yet.
#[derive(Debug)]
pub(super) struct Token<'a> {
    pub(super) algorithm: Algorithm,
    /// The ID of the key that signed it.
    pub(super) key_id: Option<String>,
    /// The text that is signed.
    pub(super) signed: &'a str,
    pub(super) signature: Vec<u8>,
    pub(super) claims: Map<String, Value>,
}

impl<'a> Token<'a> {
    /// Parses a token.
    ///
    /// # Errors
    /// The reason why the token is malformed or not supported.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(format!("the token has more than {TOKEN_BYTES_MAX} bytes"));
        }
        let (signed, signature) = text.rsplit_once('.').ok_or("the token has no signature")?;
        let (header, claims) = signed.split_once('.').ok_or("the token has no claims")?;
        let header = object(header)?;
        let name = header.get("alg").and_then(Value::as_str).unwrap_or_default();
        let algorithm = Algorithm::parse(name)
            .ok_or("the algorithm of the token is none of RS256, ES256 and EdDSA")?;
        // Critical parameters would have to be understood.
        if header.contains_key("crit") {
            return Err("the token has critical parameters".to_owned());
        }
        let key_id = match header.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return Err("the token has a malformed key ID".to_owned()),
        };
        let signature = BASE64.decode_to_vec(signature);
        let signature =
            signature.map_err(|_malformed| "the signature of the token is malformed")?;
        Ok(Self { algorithm, key_id, signed, signature, claims: object(claims)? })
    }

    /// Returns a claim with a text.
    pub(super) fn text(&self, claim: &str) -> Option<&str> {
        self.claims.get(claim).and_then(Value::as_str)
    }

    /// Returns a claim with a time, in seconds since 1970; a fraction is cut.
    ///
    /// # Errors
    /// If the claim is no time.
    pub(super) fn time(&self, claim: &str) -> Result<Option<i64>, String> {
        let Some(value) = self.claims.get(claim) else { return Ok(None) };
        let whole = value.as_i64();
        #[expect(clippy::cast_possible_truncation, reason = "a cast of a float saturates")]
        let time = whole.or_else(|| value.as_f64().map(|seconds| seconds as i64));
        time.map(Some).ok_or_else(|| format!("the claim {claim} of the token is no time"))
    }

    /// Returns a claim with a text or a list of texts.
    ///
    /// # Errors
    /// If the claim is neither.
    pub(super) fn texts(&self, claim: &str) -> Result<Vec<&str>, String> {
        let malformed = || format!("the claim {claim} of the token is neither a text nor a list");
        match self.claims.get(claim) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text]),
            Some(Value::Array(list)) => {
                list.iter().map(|value| value.as_str().ok_or_else(malformed)).collect()
            }
            Some(_) => Err(malformed()),
        }
    }
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    let malformed = || "the token is no JSON Web Token".to_owned();
    let bytes = BASE64.decode_to_vec(text).map_err(|_malformed| malformed())?;
    serde_json::from_slice(&bytes).map_err(|_malformed| malformed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(header: &str, claims: &str) -> String {
        let encode = |text: &str| BASE64.encode_to_string(text);
        format!("{}.{}.{}", encode(header), encode(claims), encode("signature"))
    }

    #[test]
    fn only_public_keys_sign() {
        for algorithm in ["RS256", "ES256", "EdDSA"] {
            let text = token(&format!(r#"{{"alg":"{algorithm}","kid":"a"}}"#), "{}");
            let parsed = Token::parse(&text).unwrap();
            assert_eq!(Some(parsed.algorithm), Algorithm::parse(algorithm));
            assert_eq!(
                (parsed.key_id.as_deref(), &*parsed.signature),
                (Some("a"), &b"signature"[..])
            );
        }
        for header in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"None"}"#,
            r#"{"alg":"HS256"}"#,
            r#"{"alg":"HS512"}"#,
            r#"{"alg":"RS1"}"#,
            r#"{"alg":["RS256"]}"#,
            r#"{"kid":"a"}"#,
            r#"{"alg":"RS256","crit":["b64"]}"#,
            r#"{"alg":"RS256","kid":1}"#,
            "[]",
            "",
        ] {
            assert!(Token::parse(&token(header, "{}")).is_err(), "{header}");
        }
        for text in ["", ".", "..", "a.b", "a.b.c", &token(r#"{"alg":"RS256"}"#, "[]")] {
            assert!(Token::parse(text).is_err(), "{text}");
        }
        let long = token(r#"{"alg":"RS256"}"#, &" ".repeat(TOKEN_BYTES_MAX));
        assert!(Token::parse(&long).unwrap_err().contains("20000"));
    }

    #[test]
    fn claims_have_their_types() {
        let claims = r#"{"exp":1.5,"nbf":7,"iat":"7","aud":["a","b"],"azp":"c","x":[1],"y":2}"#;
        let text = token(r#"{"alg":"ES256"}"#, claims);
        let token = Token::parse(&text).unwrap();
        assert_eq!((token.time("exp"), token.time("nbf")), (Ok(Some(1)), Ok(Some(7))));
        assert_eq!(token.time("none"), Ok(None));
        assert!(token.time("iat").is_err());
        assert_eq!(token.texts("aud"), Ok(vec!["a", "b"]));
        assert_eq!(token.texts("azp"), Ok(vec!["c"]));
        assert_eq!(token.texts("none"), Ok(vec![]));
        assert!(token.texts("x").is_err() && token.texts("y").is_err());
    }
}
