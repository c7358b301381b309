//! Verifies a form's signature, which is its policy's signature.

use std::sync::Arc;

use base64_simd::STANDARD as BASE64;
use ring::hmac;

use crate::access::keys::key_ring::{ActiveKey, AllKeys};
use crate::auth::canonical::{from_hex, push_hex, seconds_of};
use crate::auth::scope::{Credential, Place};
use crate::auth::signer::signer as find_signer;
use crate::errors::{S3Error, S3ErrorCode, S3Result, invalid_argument, refuse};
use crate::front::forms::fields::FormFields;
use crate::times::now_s;

/// The form fields that a Version 4 signature needs; the policy is what is signed.
const V4: [&str; 5] =
    ["policy", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature"];

/// The form fields that a Version 2 signature needs.
const V2: [&str; 3] = ["policy", "AWSAccessKeyId", "signature"];

/// The form field with the session token of a temporary key.
const TOKEN: &str = "x-amz-security-token";

/// A policy's signature.
struct Signature<'a> {
    policy: &'a str,
    access_key: &'a str,
    /// The signature's text in the form.
    signature: &'a str,
    /// The session token of a temporary key.
    token: Option<&'a str>,
}

/// Returns the key that signed a form; `None` if the form has no signature field.
///
/// # Errors
/// `InvalidArgument` if a signature field is missing or malformed, and the S3 errors for unknown
/// keys and wrong signatures.
pub(super) fn signer(keys: &AllKeys, fields: &FormFields) -> S3Result<Option<Arc<ActiveKey>>> {
    // As in S3, a form with a policy alone is not signed.
    let has = |names: &[&str]| names.iter().any(|name| value(fields, name).is_some());
    if has(&V4[1..]) {
        return verify_v4(keys, fields).map(Some);
    }
    if has(&V2[1..]) {
        return verify_v2(keys, fields).map(Some);
    }
    Ok(None)
}

fn verify_v4(keys: &AllKeys, fields: &FormFields) -> S3Result<Arc<ActiveKey>> {
    let [policy, algorithm, credential, date, signature] = required(fields, V4)?;
    if algorithm != "AWS4-HMAC-SHA256" {
        let message = "Only AWS4-HMAC-SHA256 is supported";
        return Err(invalid_argument("X-Amz-Algorithm", algorithm, message));
    }
    if seconds_of(date).is_none() {
        let message = "X-Amz-Date must be formated via ISO8601 Long format";
        return Err(invalid_argument("X-Amz-Date", date, message));
    }
    let Credential { access_key, date: day, scope } = Credential::parse(credential, Place::Form)?;
    let found = Signature { policy, access_key, signature, token: value(fields, TOKEN) };
    let key = found.key(keys)?;
    let secret = key.signing_key(scope).filter(|_| date.starts_with(day));
    let is_right = secret.zip(from_hex(signature)).is_some_and(|(secret, claimed)| {
        hmac::verify(&secret, policy.as_bytes(), &claimed).is_ok()
    });
    if is_right { Ok(key) } else { Err(found.mismatch()) }
}

fn verify_v2(keys: &AllKeys, fields: &FormFields) -> S3Result<Arc<ActiveKey>> {
    let [policy, access_key, signature] = required(fields, V2)?;
    if value(fields, TOKEN).is_some() {
        let message = "Temporary keys need signatures of version 4";
        return Err(invalid_argument(TOKEN, "", message));
    }
    let found = Signature { policy, access_key, signature, token: None };
    let key = found.key(keys)?;
    let secret = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key.secret_key.as_bytes());
    let claimed = BASE64.decode_to_vec(signature).unwrap_or_default();
    let is_right = hmac::verify(&secret, policy.as_bytes(), &claimed).is_ok();
    if is_right { Ok(key) } else { Err(found.mismatch()) }
}

impl Signature<'_> {
    fn key(&self, keys: &AllKeys) -> S3Result<Arc<ActiveKey>> {
        find_signer(keys, self.access_key, self.token, now_s())
    }

    /// Returns the error for a signature that the key did not make.
    fn mismatch(&self) -> S3Error {
        let message = "The request signature we calculated does not match the signature you \
                       provided. Check your key and signing method.";
        let mut bytes = String::with_capacity(3 * self.policy.len());
        for byte in self.policy.as_bytes().chunks(1) {
            push_hex(&mut bytes, byte);
            bytes.push(' ');
        }
        refuse(S3ErrorCode::SignatureDoesNotMatch, message)
            .with_field("AWSAccessKeyId", self.access_key)
            .with_field("StringToSign", self.policy)
            .with_field("SignatureProvided", self.signature)
            .with_field("StringToSignBytes", bytes.trim_end())
    }
}

fn value<'a>(fields: &'a FormFields, name: &str) -> Option<&'a str> {
    fields.get(&name.to_ascii_lowercase())
}

/// Returns the values of fields that a signed form must have.
fn required<'a, const N: usize>(
    fields: &'a FormFields,
    names: [&'static str; N],
) -> S3Result<[&'a str; N]> {
    let mut values = [""; N];
    for (found, name) in values.iter_mut().zip(names) {
        *found = value(fields, name).ok_or_else(|| missing(name))?;
    }
    Ok(values)
}

/// Returns the error for a form without this field.
pub(super) fn missing(field: &str) -> S3Error {
    let message = format!(
        "Bucket POST must contain a field named '{field}'.  If it is specified, please check the \
         order of the fields."
    );
    invalid_argument(field, "", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::keys::credentials::Credentials;
    use crate::access::keys::session::Claims;

    const ACCESS_KEY: &str = "AKIAIOSFODNN7EXAMPLE";

    /// Policy and signature on the page "Example: Browser-Based Upload using HTTP POST" in the S3
    /// developer guide.
    const POLICY: &str = "eyAiZXhwaXJhdGlvbiI6ICIyMDE1LTEyLTMwVDEyOjAwOjAwLjAwMFoiLA0KICAiY29uZGl0\
        aW9ucyI6IFsNCiAgICB7ImJ1Y2tldCI6ICJzaWd2NGV4YW1wbGVidWNrZXQifSwNCiAgICBbInN0YXJ0cy13aXRoIi\
        wgIiRrZXkiLCAidXNlci91c2VyMS8iXSwNCiAgICB7ImFjbCI6ICJwdWJsaWMtcmVhZCJ9LA0KICAgIHsic3VjY2Vz\
        c19hY3Rpb25fcmVkaXJlY3QiOiAiaHR0cDovL3NpZ3Y0ZXhhbXBsZWJ1Y2tldC5zMy5hbWF6b25hd3MuY29tL3N1Y2\
        Nlc3NmdWxfdXBsb2FkLmh0bWwifSwNCiAgICBbInN0YXJ0cy13aXRoIiwgIiRDb250ZW50LVR5cGUiLCAiaW1hZ2Uv\
        Il0sDQogICAgeyJ4LWFtei1tZXRhLXV1aWQiOiAiMTQzNjUxMjM2NTEyNzQifSwNCiAgICB7IngtYW16LXNlcnZlci\
        1zaWRlLWVuY3J5cHRpb24iOiAiQUVTMjU2In0sDQogICAgWyJzdGFydHMtd2l0aCIsICIkeC1hbXotbWV0YS10YWci\
        LCAiIl0sDQoNCiAgICB7IngtYW16LWNyZWRlbnRpYWwiOiAiQUtJQUlPU0ZPRE5ON0VYQU1QTEUvMjAxNTEyMjkvdX\
        MtZWFzdC0xL3MzL2F3czRfcmVxdWVzdCJ9LA0KICAgIHsieC1hbXotYWxnb3JpdGhtIjogIkFXUzQtSE1BQy1TSEEy\
        NTYifSwNCiAgICB7IngtYW16LWRhdGUiOiAiMjAxNTEyMjlUMDAwMDAwWiIgfQ0KICBdDQp9";
    const SIGNATURE: &str = "8afdbf4008c03f22c2cd3cdb72e4afbb1f6a588f3255ac628749a66d7f09699e";

    fn keys() -> AllKeys {
        let secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into();
        let credentials = Credentials { access_key: ACCESS_KEY.into(), secret_key };
        let administrator = Some(Arc::new(ActiveKey::administrator(credentials)));
        AllKeys { administrator, ring: None }
    }

    /// Returns the access key that signed a form with these fields, or the error code.
    fn signer_of(fields: &[(&str, &str)]) -> Result<Option<Arc<str>>, (S3ErrorCode, String)> {
        let mut all = [("x-ignore-nothing", ""); 6];
        all[..fields.len()].copy_from_slice(fields);
        let found = signer(&keys(), &FormFields::from(all));
        let key = found.map(|key| key.map(|key| Arc::clone(&key.access_key)));
        key.map_err(|error| (error.code(), error.message().to_owned()))
    }

    /// Returns the example's fields; the field `changed` has another value or is missing.
    fn example<'a>(changed: &str, value: Option<&'a str>) -> Vec<(&'static str, &'a str)> {
        [
            ("policy", POLICY),
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", "AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request"),
            ("X-Amz-Date", "20151229T000000Z"),
            ("X-Amz-Signature", SIGNATURE),
        ]
        .into_iter()
        .filter_map(|(name, own)| match name.eq_ignore_ascii_case(changed) {
            true => Some((name, value?)),
            false => Some((name, own)),
        })
        .collect()
    }

    #[test]
    fn example_of_the_documentation_is_verified() {
        assert_eq!(signer_of(&example("", None)).unwrap().as_deref(), Some(ACCESS_KEY));
        let upper = SIGNATURE.replace('8', "9");
        for (field, value) in [("policy", &POLICY[4..]), ("x-amz-signature", &upper)] {
            let (code, _) = signer_of(&example(field, Some(value))).unwrap_err();
            assert_eq!(code, S3ErrorCode::SignatureDoesNotMatch, "{field}");
        }
    }

    #[test]
    fn fields_of_a_signature_are_there_together() {
        for field in V4 {
            let (code, message) = signer_of(&example(field, None)).unwrap_err();
            assert_eq!(code, S3ErrorCode::InvalidArgument, "{field}");
            assert!(message.contains(&format!("a field named '{field}'.  If")), "{message}");
        }
        for (fields, missing) in [
            (&[("policy", POLICY), ("AWSAccessKeyId", ACCESS_KEY)][..], "signature"),
            (&[("policy", POLICY), ("signature", "a")], "AWSAccessKeyId"),
            (&[("signature", "a")], "policy"),
            (&[("x-amz-signature", "a")], "policy"),
        ] {
            let (code, message) = signer_of(fields).unwrap_err();
            assert_eq!(code, S3ErrorCode::InvalidArgument, "{missing}");
            assert!(message.contains(&format!("'{missing}'")), "{message}");
        }
        assert_eq!(signer_of(&[("policy", POLICY)]), Ok(None));
        assert_eq!(signer_of(&[]), Ok(None));
    }

    #[test]
    fn malformed_fields_and_unknown_keys_are_refused() {
        use S3ErrorCode::{InvalidAccessKeyId, InvalidArgument, SignatureDoesNotMatch};
        for (field, value, expected) in [
            ("x-amz-algorithm", "invalid", InvalidArgument),
            ("x-amz-date", "invalid_date", InvalidArgument),
            ("x-amz-date", "2015-12-29T00:00:00Z", InvalidArgument),
            ("x-amz-date", "20151230T000000Z", SignatureDoesNotMatch),
            ("x-amz-credential", "malformed-no-slashes", InvalidArgument),
            ("x-amz-credential", "/20151229/us-east-1/s3/aws4_request", InvalidArgument),
            ("x-amz-credential", "a/20151229/us-east-1/ec2/aws4_request", InvalidArgument),
            ("x-amz-credential", "a/20151229/us-east-1/s3/aws4_request", InvalidAccessKeyId),
            ("x-amz-signature", "incorrect_signature", SignatureDoesNotMatch),
        ] {
            let (code, message) = signer_of(&example(field, Some(value))).unwrap_err();
            assert_eq!(code, expected, "{field} {value}: {message}");
        }
    }

    #[test]
    fn temporary_key_signs_with_its_token() {
        let keys = keys();
        let claims = Claims::new(i64::MAX, None, None).unwrap();
        let session = keys.start_session(&keys.find(ACCESS_KEY).unwrap(), &claims).unwrap();
        let credential = format!("{}/20151229/us-east-1/s3/aws4_request", session.access_key);
        let key = keys.signer(&session.access_key, Some(&session.token), 0).unwrap();
        let secret = key.signing_key("20151229/us-east-1/s3/aws4_request").unwrap();
        let mut signature = String::new();
        push_hex(&mut signature, hmac::sign(&secret, b"e30=").as_ref());
        let signed_by = |token: (&str, &str)| {
            let fields = FormFields::from([
                ("policy", "e30="),
                ("x-amz-algorithm", "AWS4-HMAC-SHA256"),
                ("x-amz-credential", &*credential),
                ("x-amz-date", "20151229T000000Z"),
                ("x-amz-signature", &*signature),
                token,
            ]);
            let found = signer(&keys, &fields).map(|key| key.unwrap().access_key.to_string());
            found.map_err(|error| error.code())
        };
        let with = |token: &str| signed_by((TOKEN, token));
        assert_eq!(with(&session.token), Ok(session.access_key.clone()));
        assert_eq!(with(&session.token[1..]), Err(S3ErrorCode::InvalidToken));
        assert_eq!(signed_by(("x-ignore-a", "")), Err(S3ErrorCode::InvalidAccessKeyId));
        let old = [("policy", "e30="), ("AWSAccessKeyId", ACCESS_KEY), ("signature", "a")];
        let old = [&old[..], &[(TOKEN, "a")]].concat();
        assert_eq!(signer_of(&old).unwrap_err().0, S3ErrorCode::InvalidArgument);
    }

    #[test]
    fn version_2_signs_with_sha1() {
        let form = |access_key: &'static str, signature: &'static str| {
            [("policy", "e30="), ("AWSAccessKeyId", access_key), ("signature", signature)]
        };
        let (right, wrong) = ("4QWH4O9CWtowYUW+X4P2gZ/6fNc=", "AAAAAAAAAAAAAAAAAAAAAAAAAAA=");
        assert_eq!(signer_of(&form(ACCESS_KEY, right)).unwrap().as_deref(), Some(ACCESS_KEY));
        for (form, expected) in [
            (form(ACCESS_KEY, wrong), S3ErrorCode::SignatureDoesNotMatch),
            (form(ACCESS_KEY, "!"), S3ErrorCode::SignatureDoesNotMatch),
            (form("other", right), S3ErrorCode::InvalidAccessKeyId),
        ] {
            assert_eq!(signer_of(&form).unwrap_err().0, expected);
        }
    }
}
