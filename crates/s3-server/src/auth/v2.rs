//! Verifies presigned URLs with Signature Version 2, which boto3 still makes by default.

use std::sync::Arc;

use base64_simd::STANDARD as BASE64;
use ring::hmac;

use crate::access::keys::key_ring::{ActiveKey, AllKeys};
use crate::auth::v4::time_text;
use crate::errors::{S3ErrorCode, S3Result, refuse, unknown_key};
use crate::request::head::Head;

/// The maximum time for which a URL may still be valid, in seconds: 7 days, as in version 4.
const EXPIRES_MAX_S: i64 = 7 * 24 * 60 * 60;

/// The query parameters that are signed, in signing order.
const SIGNED: [&str; 33] = [
    "accelerate",
    "acl",
    "analytics",
    "cors",
    "delete",
    "inventory",
    "lifecycle",
    "location",
    "logging",
    "metrics",
    "notification",
    "object-lock",
    "partNumber",
    "policy",
    "replication",
    "requestPayment",
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
    "restore",
    "select",
    "select-type",
    "storageClass",
    "tagging",
    "uploadId",
    "uploads",
    "versionId",
    "versioning",
    "versions",
    "website",
];

/// The query parameters that version 2 does not sign, and that select no other operation: listing
/// parameters, and the signature's own parameters.
const UNSIGNED: [&str; 18] = [
    "AWSAccessKeyId",
    "Expires",
    "Signature",
    "continuation-token",
    "delimiter",
    "encoding-type",
    "fetch-owner",
    "key-marker",
    "list-type",
    "marker",
    "max-keys",
    "max-parts",
    "max-uploads",
    "part-number-marker",
    "prefix",
    "start-after",
    "upload-id-marker",
    "x-id",
];

/// Returns the key that signed a URL. Query parameters that stand for headers, which boto3 moves to
/// the query after signing, are already header fields of `head`.
pub(super) fn verify(keys: &AllKeys, head: &Head, now_s: i64) -> S3Result<Arc<ActiveKey>> {
    let malformed = |why: &str| {
        let message = format!("The presigned URL of version 2 is malformed: {why}");
        Err(refuse(S3ErrorCode::InvalidRequest, message))
    };
    let pairs: Vec<_> = head.query.iter().filter(|(name, _)| !is_header(name)).collect();
    for (number, (name, value)) in pairs.iter().enumerate() {
        if !SIGNED.contains(name) && !UNSIGNED.contains(name) {
            return malformed(&format!("version 2 does not sign the parameter {name}"));
        }
        if has_parameter(value) {
            return malformed(&format!("the value of {name} contains another signed parameter"));
        }
        if pairs[..number].iter().any(|(earlier, _)| earlier == name) {
            return malformed(&format!("it has the parameter {name} twice"));
        }
    }
    if head.query.iter().any(|(name, _)| name.eq_ignore_ascii_case("x-amz-security-token"))
        || head.fields.has("x-amz-security-token")
    {
        let message = "Temporary keys need signatures of version 4: version 2 does not sign tokens";
        return Err(refuse(S3ErrorCode::InvalidRequest, message));
    }
    let value = |name: &str| head.query.get(name);
    let parts = (value("AWSAccessKeyId"), value("Expires"), value("Signature"));
    let (Some(access_key), Some(expires), Some(signature)) = parts else {
        return malformed("it needs AWSAccessKeyId, Expires and Signature");
    };
    let Ok(expires_s) = expires.parse::<i64>() else {
        return malformed("Expires must be a number of seconds since 1970");
    };
    if expires_s > now_s.saturating_add(EXPIRES_MAX_S) {
        let message = "Expires must be at most seven days from now";
        return Err(refuse(S3ErrorCode::AuthorizationQueryParametersError, message));
    }
    let key = keys.find(access_key).ok_or_else(|| unknown_key(access_key))?;
    let secret = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key.secret_key.as_bytes());
    let claimed = BASE64.decode_to_vec(signature).unwrap_or_default();
    // boto3 signs the path of a bucket with a slash at its end, and sends it without.
    let mut ends = ["", "/"].into_iter().filter(|end| end.is_empty() || head.name.key.is_empty());
    let is_signed = |end| {
        let signed = string_to_sign(head, expires, end);
        hmac::verify(&secret, signed.as_bytes(), &claimed).is_ok()
    };
    if !ends.any(is_signed) {
        let message = "The signature of the URL is not the one that the secret key gives";
        return Err(refuse(S3ErrorCode::SignatureDoesNotMatch, message)
            .with_field("AWSAccessKeyId", access_key)
            .with_field("StringToSign", string_to_sign(head, expires, ""))
            .with_field("SignatureProvided", signature));
    }
    if now_s > expires_s {
        return Err(refuse(S3ErrorCode::AccessDenied, "Request has expired")
            .with_field("Expires", time_text(expires_s))
            .with_field("ServerTime", time_text(now_s)));
    }
    Ok(key)
}

/// Returns `true` for a value that reads as several parameters in the text that is signed, which has
/// values as they are: a request could have other parameters than those that were signed.
fn has_parameter(value: &str) -> bool {
    let mut parts = value.split('&').skip(1);
    parts.any(|part| SIGNED.contains(&part.split('=').next().unwrap_or_default()))
}

/// Returns `true` for a query parameter that stands for a header.
fn is_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("x-amz-") || matches!(&*name, "content-md5" | "content-type")
}

/// Returns the text that a client signs, with `path_end` appended to the path.
fn string_to_sign(head: &Head, expires: &str, path_end: &str) -> String {
    let field = |name: &str| head.fields.text(name).unwrap_or_default();
    let (md5, content_type) = (field("content-md5"), field("content-type"));
    let mut text = format!("{}\n{md5}\n{content_type}\n{expires}\n", head.method);
    let names = head.fields.iter().map(|(name, _)| name);
    let mut names: Vec<_> = names.filter(|name| name.starts_with("x-amz-")).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let value = head.fields.joined(name).unwrap_or_default();
        text += &format!("{name}:{value}\n");
    }
    // The signed path has the bucket, also if the host names it.
    let path = head.raw_path();
    if head.names_bucket_in_host() {
        text += &format!("/{}", head.name.bucket);
    }
    text += path;
    text += path_end;
    let mut separator = '?';
    for name in SIGNED {
        let Some(value) = head.query.get(name) else { continue };
        text.push(separator);
        text += name;
        if !value.is_empty() {
            text.push('=');
            text += value;
        }
        separator = '&';
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::keys::credentials::Credentials;
    use crate::request::head::tests::head;

    /// The expiry in the AWS documentation's example "Query String Request Authentication
    /// Alternative" for Signature Version 2.
    const EXPIRES_S: i64 = 1_175_139_620;

    fn keys(access_key: &str, secret_key: &str) -> AllKeys {
        let credentials =
            Credentials { access_key: access_key.into(), secret_key: secret_key.into() };
        let administrator = Some(Arc::new(ActiveKey::administrator(credentials)));
        AllKeys { administrator, ring: None }
    }

    fn example(now_s: i64, change: impl Fn(String) -> String, fields: &[(&str, &str)]) -> String {
        let keys = keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        let line = "GET /johnsmith/photos/puppy.jpg?AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE\
                    &Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&Expires=1175139620";
        match verify(&keys, &head(&change(line.to_owned()), fields), now_s) {
            Ok(key) => key.access_key.to_string(),
            Err(error) => error.code().as_str().to_owned(),
        }
    }

    #[test]
    fn example_of_the_documentation_is_valid_until_it_expires() {
        for (now_s, expected) in [
            (EXPIRES_S - 1, "AKIAIOSFODNN7EXAMPLE"),
            (EXPIRES_S, "AKIAIOSFODNN7EXAMPLE"),
            (EXPIRES_S + 1, "AccessDenied"),
            (EXPIRES_S - EXPIRES_MAX_S, "AKIAIOSFODNN7EXAMPLE"),
            (EXPIRES_S - EXPIRES_MAX_S - 1, "AuthorizationQueryParametersError"),
        ] {
            assert_eq!(example(now_s, |line| line, &[]), expected, "{now_s}");
        }
    }

    #[test]
    fn any_change_of_a_signed_part_is_refused() {
        for (from, to, code) in [
            ("GET ", "PUT ", "SignatureDoesNotMatch"),
            ("puppy.jpg", "puppy.jpG", "SignatureDoesNotMatch"),
            ("1175139620", "1175139621", "SignatureDoesNotMatch"),
            ("Npg", "Npf", "SignatureDoesNotMatch"),
            ("NpgCjnDzrM", "", "SignatureDoesNotMatch"),
            ("jpg?", "jpg?acl&", "SignatureDoesNotMatch"),
            ("jpg?", "jpg?uploadId=a&", "SignatureDoesNotMatch"),
            ("jpg?", "jpg?attributes&", "InvalidRequest"),
            ("&Expires=1175139620", "", "InvalidRequest"),
            ("Expires=1175139620", "Expires=a", "InvalidRequest"),
            ("jpg?", "jpg?Expires=1175139620&", "InvalidRequest"),
            ("EXAMPLE", "EXAMPLF", "InvalidAccessKeyId"),
        ] {
            let found = example(EXPIRES_S, |line| line.replacen(from, to, 1), &[]);
            assert_eq!(found, code, "{from} -> {to}");
        }
        for header in ["x-amz-acl", "content-type", "content-md5"] {
            let found = example(EXPIRES_S, |line| line, &[(header, "a")]);
            assert_eq!(found, "SignatureDoesNotMatch", "{header}");
        }
    }

    #[test]
    fn signed_text_has_sorted_headers_and_subresources() {
        let fields = [("x-amz-meta-b", " 2 "), ("x-amz-acl", "private"), ("content-type", "a/b")];
        let head = head("PUT /b/a%20b?uploadId=x%2By&prefix=z&partNumber=2&acl", &fields);
        let expected = "PUT\n\na/b\n9\nx-amz-acl:private\nx-amz-meta-b:2\n\
                        /b/a%20b?acl&partNumber=2&uploadId=x+y";
        assert_eq!(string_to_sign(&head, "9", ""), expected);
        assert!(SIGNED.is_sorted() && UNSIGNED.is_sorted());
    }

    #[test]
    fn host_of_a_bucket_signs_its_path_with_the_bucket() {
        let mut by_host = head("GET /a?Signature=b", &[]);
        by_host.name = crate::request::name::ObjectName::new("bucket", "a");
        assert_eq!(string_to_sign(&by_host, "9", ""), "GET\n\n\n9\n/bucket/a");
    }
}
