//! Verifies the signature of a form, which is the signature of its policy.

use std::sync::Arc;

use base64_simd::STANDARD as BASE64;
use ring::hmac;
use s3s::{S3Error, S3ErrorCode, S3Result};

use crate::access::keys::key_ring::{ActiveKey, AllKeys};
use crate::access::service::unknown_key;
use crate::errors::refuse;
use crate::front::canonical::from_hex;
use crate::front::forms::fields::Fields;

/// Returns the key that signed a form; `None` if the form has neither a policy nor a signature.
///
/// # Errors
/// `InvalidArgument` if a field of the signature is missing or malformed, and the errors of S3 for
/// unknown keys and wrong signatures.
pub(super) fn signer(keys: &AllKeys, fields: &Fields) -> S3Result<Option<Arc<ActiveKey>>> {
    let Some(policy) = fields.get("policy") else {
        let is_signed =
            ["signature", "x-amz-signature"].iter().any(|name| fields.get(name).is_some());
        return if is_signed { Err(missing("policy")) } else { Ok(None) };
    };
    let field = |name: &'static str| fields.get(name).ok_or_else(|| missing(name));
    let (key, is_right) = if fields.get("x-amz-signature").is_some() {
        let algorithm = field("x-amz-algorithm")?;
        if algorithm != "AWS4-HMAC-SHA256" {
            let message = format!("The algorithm {algorithm} is unknown: use AWS4-HMAC-SHA256");
            return Err(refuse(S3ErrorCode::InvalidArgument, message));
        }
        let credential = field("x-amz-credential")?;
        let (access_key, scope) = credential.split_once('/').ok_or_else(|| {
            refuse(S3ErrorCode::InvalidArgument, "The field x-amz-credential is malformed")
        })?;
        let key = keys.find(access_key).ok_or_else(unknown_key)?;
        let is_of_day = field("x-amz-date")?.get(..8) == scope.get(..8);
        let secret = key.signing_key(scope).filter(|_| is_of_day);
        let claimed = from_hex(field("x-amz-signature")?);
        let is_right = secret.zip(claimed).is_some_and(|(secret, claimed)| {
            hmac::verify(&secret, policy.as_bytes(), &claimed).is_ok()
        });
        (key, is_right)
    } else {
        let key = keys.find(field("awsaccesskeyid")?).ok_or_else(unknown_key)?;
        let secret = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key.secret_key.as_bytes());
        let claimed = BASE64.decode_to_vec(field("signature")?).unwrap_or_default();
        let is_right = hmac::verify(&secret, policy.as_bytes(), &claimed).is_ok();
        (key, is_right)
    };
    if !is_right {
        let message = "The signature of the policy is not the one that the secret key gives";
        return Err(refuse(S3ErrorCode::SignatureDoesNotMatch, message));
    }
    Ok(Some(key))
}

fn missing(field: &str) -> S3Error {
    let message = format!("Bucket POST must contain a field named '{field}'");
    refuse(S3ErrorCode::InvalidArgument, message)
}
