//! The public keys of a provider: a JSON Web Key Set (RFC 7517). Pure.

use base64_simd::URL_SAFE_NO_PAD as BASE64;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde_json::Value;

use crate::oidc::jwt::{Algorithm, Token};

/// A public key that signs tokens.
#[derive(Debug)]
pub(super) struct PublicKey {
    id: Option<String>,
    material: Material,
}

#[derive(Debug)]
enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// An uncompressed point.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl PublicKey {
    /// Returns the keys in a key set. Keys for encryption and of other kinds are left out.
    ///
    /// # Errors
    /// If the text is no key set.
    pub(super) fn parse_set(text: &[u8]) -> Result<Vec<Self>, String> {
        let set: Value =
            serde_json::from_slice(text).map_err(|error| format!("it is not JSON: {error}"))?;
        let keys = set["keys"].as_array().ok_or("it has no list of keys")?;
        Ok(keys.iter().filter_map(Self::parse).collect())
    }

    fn parse(key: &Value) -> Option<Self> {
        if key.get("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let bytes = |name: &str| BASE64.decode_to_vec(key[name].as_str()?).ok();
        let material = match (key["kty"].as_str()?, key["crv"].as_str()) {
            ("RSA", _) => Material::Rsa { modulus: bytes("n")?, exponent: bytes("e")? },
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes("x")?, bytes("y")?);
                if x.len() != 32 || y.len() != 32 {
                    return None;
                }
                Material::P256([&[4], &x[..], &y].concat())
            }
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes("x")?),
            _ => return None,
        };
        let found = Self { id: key["kid"].as_str().map(str::to_owned), material };
        // A key that names its algorithm is for this one only.
        match key.get("alg").map(|name| name.as_str().and_then(Algorithm::parse)) {
            None => Some(found),
            Some(algorithm) => (algorithm == Some(found.algorithm())).then_some(found),
        }
    }

    fn algorithm(&self) -> Algorithm {
        match self.material {
            Material::Rsa { .. } => Algorithm::Rs256,
            Material::P256(_) => Algorithm::Es256,
            Material::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    /// Returns `true` if the key may have signed a token: if it has the ID that the token names, and
    /// is for its algorithm.
    pub(super) fn fits(&self, token: &Token<'_>) -> bool {
        let is_named = token.key_id.is_none() || token.key_id == self.id;
        is_named && self.algorithm() == token.algorithm
    }

    /// Returns `true` if the key has signed a token that it fits.
    pub(super) fn has_signed(&self, token: &Token<'_>) -> bool {
        let (text, signature) = (token.signed.as_bytes(), &*token.signature);
        let verified = match &self.material {
            _ if !self.fits(token) => return false,
            Material::Rsa { modulus, exponent } => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, text, signature)
            }
            Material::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(text, signature)
            }
            Material::Ed25519(point) => {
                UnparsedPublicKey::new(&ED25519, point).verify(text, signature)
            }
        };
        verified.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The token and the key of RFC 7515, appendix A.3.
    const ES256: [&str; 2] = [
        "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcG\
         xlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa\
         8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
        r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#,
    ];

    /// A token and its key, made by OpenSSL.
    const RS256: [&str; 2] = [
        "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UifQ.OktOCPwQ54vd8DNQIP4Wcj7rBuUKueUHNsRoy9ZH\
         2zfunyYQUzMurCBaVDnDPlKHyy95OBbJsTr-RDXd9wtLHgMRk484vnkhDYJ5HQvCr_vJE-DvohHx1xoh\
         cNT5wozdJU10BhgeUCSGNLPOfITd7qojCq-4RH3Lp-na4CZg3l-AG99g4Orl9FZxSCkz2yINQoTOLqzV\
         b1hacAJBiLg6_rvWi9NRZFrCVed1-InZktCcgGWxChARlY6M8f8zncuaSQNSTISrtEq1i8kupDeJA4nm\
         HeqmMPWncUl51VSyGsClRWuIjB-zVSrYuV-pnWW07HPQtRe8tvpqWb3fLSUMeA",
        "{\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\"\
         v-4jLarKYoJHrsPtjy-v3eznmuM6BrxYGrj2D0pOv9Wylmts05scoL_m0M7V5PrKmAiGX0Z1z9F_0OM3\
         5OqVPapStj6KV5ZVxMsVBq0eVt9sKrMi5xfGcsJmJP48zirMLPSAb_xlEH18QOVlp-xo8yUlF5GDrQa9\
         XMo_tVULxB0PJsoXTndPFvzfb53HHn-iT6KWCv5gIZNyCHram-xknc6SoREUY29uyzWCckbm3WBWvjCG\
         My0NfmOq2dQW0GU3VvXHr1gssei-ier7ui_hMd6wAc06-TD4FCnf8V2L_-5YYe75XooPoeilSvxrihoH\
         MFTgklfM4g9n_iUn-now5Q\"}",
    ];

    fn keys(keys: &str) -> Vec<PublicKey> {
        PublicKey::parse_set(format!(r#"{{"keys":[{keys}]}}"#).as_bytes()).unwrap()
    }

    #[test]
    fn only_the_signed_token_is_verified() {
        for [text, key] in [ES256, RS256] {
            let token = Token::parse(text).unwrap();
            let found = keys(key);
            assert!(found[0].has_signed(&token));
            for at in (0..text.len()).filter(|at| text.as_bytes()[*at] != b'.') {
                let mut changed = text.to_owned().into_bytes();
                changed[at] = if changed[at] == b'A' { b'Q' } else { b'A' };
                let changed = String::from_utf8(changed).unwrap();
                let signed = Token::parse(&changed).is_ok_and(|token| found[0].has_signed(&token));
                assert!(!signed, "{at}");
            }
        }
    }

    #[test]
    fn keys_are_for_their_algorithm_and_id() {
        let [text, key] = ES256;
        let token = Token::parse(text).unwrap();
        let with = |more: &str| keys(&key.replacen('{', &format!("{{{more},"), 1));
        assert!(with(r#""use":"sig","alg":"ES256","kid":"a""#)[0].has_signed(&token));
        for left_out in [r#""use":"enc""#, r#""alg":"RS256""#, r#""alg":"HS256""#] {
            assert!(with(left_out).is_empty(), "{left_out}");
        }
        let named = Token { key_id: Some("a".to_owned()), ..Token::parse(text).unwrap() };
        assert!(with(r#""kid":"a""#)[0].has_signed(&named));
        assert!(!with(r#""kid":"b""#)[0].has_signed(&named) && !keys(key)[0].has_signed(&named));
        let other = Token { algorithm: Algorithm::EdDsa, ..Token::parse(text).unwrap() };
        assert!(!keys(key)[0].has_signed(&other));
        for unknown in [r#"{"kty":"oct","k":"AA"}"#, r#"{"kty":"EC","crv":"P-256","x":"AA"}"#, "1"]
        {
            assert!(keys(unknown).is_empty(), "{unknown}");
        }
        assert!(PublicKey::parse_set(b"{}").is_err() && PublicKey::parse_set(b"").is_err());
    }
}
