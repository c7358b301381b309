//! Verifies presigned URLs with signatures of version 2, which boto3 still makes by default. The S3
//! service does not compare them in constant time, so it never receives them.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64_simd::STANDARD as BASE64;
use form_urlencoded::parse;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Uri};
use ring::hmac;
use s3s::{S3ErrorCode, S3Result};

use crate::access::keys::key_ring::{ActiveKey, AllKeys};
use crate::access::service::unknown_key;
use crate::errors::refuse;

/// The parameters that are signed, in the order in which they are signed.
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

/// The parameters that version 2 does not sign, and that choose no other operation than the signed
/// one: those of listings, and those of the signature itself.
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

/// The parameters of a query, decoded.
type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// Returns `true` if a query has a signature of version 2.
pub(crate) fn is_signed(query: Option<&str>) -> bool {
    parse(query.unwrap_or_default().as_bytes()).any(|(name, _)| name == "Signature")
}

/// Returns the key that signed a URL, which was found to have a signature. boto3 moves some headers
/// to the query after it has signed them: `headers` receives them again.
pub(crate) fn verify(
    keys: &AllKeys,
    method: &Method,
    uri: &Uri,
    headers: &mut HeaderMap,
) -> S3Result<Arc<ActiveKey>> {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    verify_at(now_s, keys, method, uri, headers)
}

fn verify_at(
    now_s: u64,
    keys: &AllKeys,
    method: &Method,
    uri: &Uri,
    headers: &mut HeaderMap,
) -> S3Result<Arc<ActiveKey>> {
    let malformed = |why: &str| {
        let message = format!("The presigned URL of version 2 is malformed: {why}");
        Err(refuse(S3ErrorCode::InvalidRequest, message))
    };
    if headers.contains_key(AUTHORIZATION) {
        return malformed("the request has a signature in a header, too");
    }
    let pairs: Pairs<'_> = parse(uri.query().unwrap_or_default().as_bytes()).collect();
    for (number, (name, value)) in pairs.iter().enumerate() {
        if is_header(name) {
            let field = (name.parse::<HeaderName>().ok()).zip(HeaderValue::from_str(value).ok());
            let Some((field, value)) = field.filter(|(field, _)| !headers.contains_key(field))
            else {
                return malformed(&format!("{name} is no header, or is given twice"));
            };
            headers.insert(field, value);
            continue;
        }
        if !SIGNED.contains(&&**name) && !UNSIGNED.contains(&&**name) {
            return malformed(&format!("version 2 does not sign the parameter {name}"));
        }
        if pairs[..number].iter().any(|(earlier, _)| earlier == name) {
            return malformed(&format!("it has the parameter {name} twice"));
        }
    }
    let value = |name: &str| pairs.iter().find(|(found, _)| found == name).map(|(_, v)| &**v);
    let parts = (value("AWSAccessKeyId"), value("Expires"), value("Signature"));
    let (Some(access_key), Some(expires), Some(signature)) = parts else {
        return malformed("it needs AWSAccessKeyId, Expires and Signature");
    };
    let Ok(expires_s) = expires.parse::<u64>() else {
        return malformed("Expires must be a number of seconds since 1970");
    };
    let key = keys.find(access_key).ok_or_else(unknown_key)?;
    let Some(signed) = string_to_sign(method, uri.path(), &pairs, expires, headers) else {
        return malformed("a signed header is not text");
    };
    let secret = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key.secret_key.as_bytes());
    let claimed = BASE64.decode_to_vec(signature).unwrap_or_default();
    if hmac::verify(&secret, signed.as_bytes(), &claimed).is_err() {
        let message = "The signature of the URL is not the one that the secret key gives";
        return Err(refuse(S3ErrorCode::SignatureDoesNotMatch, message));
    }
    if now_s > expires_s {
        return Err(refuse(S3ErrorCode::AccessDenied, "Request has expired"));
    }
    Ok(key)
}

/// Returns `true` for the parameters that stand for headers.
fn is_header(name: &str) -> bool {
    name.starts_with("x-amz-") || matches!(name, "content-md5" | "content-type")
}

/// Returns the signed text; `None` if a header is no text.
fn string_to_sign(
    method: &Method,
    path: &str,
    pairs: &Pairs<'_>,
    expires: &str,
    headers: &HeaderMap,
) -> Option<String> {
    let header = |name: &str| match headers.get(name) {
        Some(value) => value.to_str().ok(),
        None => Some(""),
    };
    let (md5, content_type) = (header("content-md5")?, header(CONTENT_TYPE.as_str())?);
    let mut text = format!("{method}\n{md5}\n{content_type}\n{expires}\n");
    let mut names: Vec<_> = headers
        .keys()
        .map(|name| name.as_str())
        .filter(|name| name.starts_with("x-amz-"))
        .collect();
    names.sort_unstable();
    for name in names {
        let values: Result<Vec<_>, _> =
            headers.get_all(name).iter().map(|value| value.to_str().map(str::trim)).collect();
        text += &format!("{name}:{}\n", values.ok()?.join(","));
    }
    text += path;
    let mut separator = '?';
    for name in SIGNED {
        let Some((_, value)) = pairs.iter().find(|(found, _)| found == name) else { continue };
        text.push(separator);
        text += name;
        if !value.is_empty() {
            text.push('=');
            text += value;
        }
        separator = '&';
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::keys::credentials::Credentials;

    /// The expiry of the example "Query String Request Authentication Alternative" in the AWS
    /// documentation of Signature Version 2.
    const EXPIRES_S: u64 = 1_175_139_620;

    fn example(now_s: u64, change: impl Fn(String) -> String, headers: &[(&str, &str)]) -> String {
        let credentials = Credentials {
            access_key: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
        };
        let administrator = Some(Arc::new(ActiveKey::administrator(credentials)));
        let keys = AllKeys { administrator, ring: None };
        let line = "GET /johnsmith/photos/puppy.jpg?AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE\
                    &Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&Expires=1175139620";
        let line = change(line.to_owned());
        let (method, uri) = line.split_once(' ').unwrap();
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()));
        let mut headers = headers.collect();
        let method = method.parse().unwrap();
        match verify_at(now_s, &keys, &method, &uri.parse().unwrap(), &mut headers) {
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
        ] {
            assert_eq!(example(now_s, |line| line, &[]), expected, "{now_s}");
        }
        let unsigned = |line| format!("{line}&x-id=GetObject");
        assert_eq!(example(EXPIRES_S, unsigned, &[("range", "bytes=0-1")]), "AKIAIOSFODNN7EXAMPLE");
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
            ("jpg?", "jpg?X-Amz-Credential=a&", "InvalidRequest"),
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
            let moved = |line: String| format!("{line}&{header}=a");
            assert_eq!(example(EXPIRES_S, moved, &[]), "SignatureDoesNotMatch", "{header}");
            let twice = example(EXPIRES_S, moved, &[(header, "a")]);
            assert_eq!(twice, "InvalidRequest", "{header}");
        }
        let found = example(EXPIRES_S, |line| line, &[("authorization", "AWS4-HMAC-SHA256 a")]);
        assert_eq!(found, "InvalidRequest");
    }

    #[test]
    fn headers_that_boto3_moved_to_the_query_are_headers_again() {
        let credentials = Credentials { access_key: "a".into(), secret_key: "b".into() };
        let administrator = Some(Arc::new(ActiveKey::administrator(credentials)));
        let keys = AllKeys { administrator, ring: None };
        let secret = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, b"b");
        let signed = hmac::sign(&secret, b"PUT\n\na/b\n9\nx-amz-meta-a:1 2\n/b/k");
        let signature = BASE64.encode_to_string(signed).replace('+', "%2B");
        let uri = format!(
            "/b/k?AWSAccessKeyId=a&Signature={signature}&x-amz-meta-a=1%202&Expires=9\
             &content-type=a%2Fb"
        );
        let mut headers = HeaderMap::new();
        let uri = uri.parse().unwrap();
        assert!(verify_at(9, &keys, &Method::PUT, &uri, &mut headers).is_ok());
        assert_eq!(
            (&headers["x-amz-meta-a"], &headers["content-type"]),
            (&HeaderValue::from_static("1 2"), &HeaderValue::from_static("a/b"),)
        );
    }

    #[test]
    fn signed_text_has_sorted_headers_and_subresources() {
        let headers = [("x-amz-meta-b", " 2 "), ("x-amz-acl", "private"), ("content-type", "a/b")];
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()));
        let query = "uploadId=x%2By&prefix=z&partNumber=2&acl";
        let pairs = parse(query.as_bytes()).collect();
        let found =
            string_to_sign(&Method::PUT, "/b/a%20b", &pairs, "9", &headers.collect()).unwrap();
        let expected = "PUT\n\na/b\n9\nx-amz-acl:private\nx-amz-meta-b:2\n\
                        /b/a%20b?acl&partNumber=2&uploadId=x+y";
        assert_eq!(found, expected);
        assert!(SIGNED.is_sorted() && UNSIGNED.is_sorted());
    }
}
