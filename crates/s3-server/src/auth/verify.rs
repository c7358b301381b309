//! Recognizes a signature's kind, and verifies it.

use std::sync::Arc;

use ring::digest::{SHA256, digest};

use crate::access::authorize::Principal;
use crate::access::keys::key_ring::{ActiveKey, AllKeys};
use crate::auth::canonical::push_hex;
use crate::auth::payload::Payload;
use crate::auth::{v2, v4};
use crate::errors::{S3Error, S3ErrorCode, S3Result, refuse};
use crate::request::fields::SDK_ALGORITHM;
use crate::request::head::Head;
use crate::request::operation::RESPONSE;
use crate::times::now_s;

/// The query parameters that identify a presigned URL with Signature Version 4.
const QUERY_V4: [&str; 6] = [
    "x-amz-algorithm",
    "x-amz-credential",
    "x-amz-date",
    "x-amz-expires",
    "x-amz-signature",
    "x-amz-signedheaders",
];

/// The query parameters that identify a presigned URL with Signature Version 2.
const QUERY_V2: [&str; 2] = ["awsaccesskeyid", "signature"];

/// Query parameters that belong to a signature; other `x-amz-` parameters stand for headers.
const OF_SIGNATURE: [&str; 2] = ["x-amz-content-sha256", "x-amz-security-token"];

const EMPTY_CHECKSUMS: [(&str, &str); 10] = [
    ("x-amz-checksum-crc32", "AAAAAA=="),
    ("x-amz-checksum-crc32c", "AAAAAA=="),
    ("x-amz-checksum-crc64nvme", "AAAAAAAAAAA="),
    ("x-amz-checksum-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
    ("x-amz-checksum-sha1", "2jmj7l5rSw0yVb/vlWAYkK/YBwk="),
    ("x-amz-checksum-sha256", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
    (
        "x-amz-checksum-sha512",
        "z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    ),
    ("x-amz-checksum-xxhash3", "LQaABTjTlMI="),
    ("x-amz-checksum-xxhash64", "70bbN1HY6Zk="),
    ("x-amz-checksum-xxhash128", "maoG0wFHmNhgAcMkRo1Jfw=="),
];

/// A request's client, and the payload as signed by the client.
#[derive(Debug)]
pub(crate) struct Verified {
    pub(crate) principal: Principal,
    pub(crate) payload: Payload,
}

impl Verified {
    /// Returns the anonymous client, for a request whose signature, if any, is verified elsewhere.
    pub(crate) fn anonymous() -> Self {
        let payload = Payload::Plain { sha256: None };
        Self { principal: Principal::Anonymous(None), payload }
    }
}

/// Verifies a request's signature, and returns the client. Query parameters that stand for headers
/// become header fields of `head`: clients that presign URLs move headers to the query.
///
/// # Errors
/// The S3 error for each kind of signature, and `InvalidArgument` for a request with two
/// signatures.
pub(crate) fn verify(keys: &AllKeys, head: &mut Head) -> S3Result<Verified> {
    verify_at(now_s(), keys, head)
}

fn verify_at(now_s: i64, keys: &AllKeys, head: &mut Head) -> S3Result<Verified> {
    check_repeated(head)?;
    if keys.is_empty() {
        let payload = Payload::unverified(head)?;
        move_to_fields(head)?;
        return Ok(Verified { principal: Principal::Open, payload });
    }
    let (key, payload) = match signature_kinds(head) {
        [false, false, false] => {
            check_unsigned(head)?;
            let payload = Payload::unverified(head)?;
            if matches!(payload, Payload::SignedChunks { .. }) {
                let message = "A request without a signature cannot have signed chunks";
                return Err(refuse(S3ErrorCode::InvalidRequest, message));
            }
            move_to_fields(head)?;
            return Ok(Verified { principal: Principal::Anonymous(keys.file_keys()), payload });
        }
        [true, false, false] => {
            let text = head.fields.text("authorization").unwrap_or_default().trim_start();
            let (algorithm, _) = text.split_once(' ').unwrap_or((text, ""));
            match algorithm {
                "AWS4-HMAC-SHA256" => v4::verify_header(keys, head, now_s)?,
                "AWS" => return Err(v2_in_header()),
                _ => return Err(unsupported(text)),
            }
        }
        [false, true, false] => v4::verify_query(keys, head, now_s)?,
        [false, false, true] => {
            // Version 2 signs these parameters as the headers that they stand for.
            move_to_fields(head)?;
            (v2::verify(keys, head, now_s)?, Payload::unverified(head)?)
        }
        _ => return Err(two_kinds()),
    };
    move_to_fields(head)?;
    Ok(Verified { principal: Principal::Key(key), payload })
}

/// Returns the key that signed a request to STS in a header, and its whole body.
///
/// # Errors
/// The S3 error for a missing or wrong signature.
pub(crate) fn verify_body(keys: &AllKeys, head: &Head, body: &[u8]) -> S3Result<Arc<ActiveKey>> {
    check_repeated(head)?;
    if signature_kinds(head) != [true, false, false] {
        let message = "A request for a temporary key must be signed in the header Authorization";
        return Err(refuse(S3ErrorCode::AccessDenied, message));
    }
    let mut hash = String::with_capacity(64);
    push_hex(&mut hash, digest(&SHA256, body).as_ref());
    v4::verify_body(keys, head, &hash, now_s())
}

/// Returns `true` for each of three signatures in a request: in a header, of version 4 in the
/// query, and of version 2 in the query.
fn signature_kinds(head: &Head) -> [bool; 3] {
    let has = |names: &[&str]| {
        let mut found = head.query.iter();
        found.any(|(name, _)| names.iter().any(|known| known.eq_ignore_ascii_case(name)))
    };
    [head.fields.has("authorization"), has(&QUERY_V4), has(&QUERY_V2)]
}

/// Rejects a form whose head has a signature in addition to its fields' signature.
pub(crate) fn check_form(keys: &AllKeys, head: &Head) -> S3Result<()> {
    match signature_kinds(head) {
        [false, false, false] => Ok(()),
        // A server without keys ignores signatures.
        _ if keys.is_empty() => Ok(()),
        _ => Err(two_kinds()),
    }
}

/// Rejects a request that repeats a header which has a single value in S3: authorization could use
/// one value, and execution another.
fn check_repeated(head: &Head) -> S3Result<()> {
    const SINGLE: [&str; 5] =
        ["authorization", "content-disposition", "content-md5", "content-type", "expires"];
    const LISTS: [&str; 5] = [
        "x-amz-copy-source-if-match",
        "x-amz-copy-source-if-none-match",
        "x-amz-object-attributes",
        "x-amz-optional-object-attributes",
        "x-amz-trailer",
    ];
    let is_single = |name: &str| {
        let is_list = LISTS.contains(&name)
            || name.starts_with("x-amz-meta-")
            || name.starts_with("x-amz-grant-");
        name.starts_with("x-amz-") && !is_list || SINGLE.contains(&name)
    };
    let mut names: Vec<_> =
        head.fields.iter().map(|(name, _)| name).filter(|name| is_single(name)).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            let message = format!("The header {} is given twice", pair[0]);
            Err(refuse(S3ErrorCode::InvalidRequest, message))
        }
    }
}

/// Turns query parameters that stand for headers into header fields of `head`.
///
/// An empty body's checksum is omitted: the SDK for JavaScript adds it to each URL that it presigns
/// for an upload, and S3 ignores all checksums in URLs.
fn move_to_fields(head: &mut Head) -> S3Result<()> {
    let is_header = |name: &str| {
        let name = name.to_ascii_lowercase();
        let is_signature_field = QUERY_V4.contains(&&*name) || OF_SIGNATURE.contains(&&*name);
        name.starts_with("x-amz-") && !is_signature_field && name != SDK_ALGORITHM
            || matches!(&*name, "content-md5" | "content-type")
    };
    let moved: Vec<_> = head
        .query
        .iter()
        .filter(|(name, value)| is_header(name) && !is_empty_checksum(name, value))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    for (name, value) in moved {
        let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !name.bytes().all(is_name_byte) {
            let message = "A parameter of the query that begins with x-amz- is no name of a header";
            return Err(refuse(S3ErrorCode::InvalidArgument, message));
        }
        let is_text = value.bytes().all(|byte| byte >= b' ' && byte != 0x7f || byte == b'\t');
        match head.fields.first(&name) {
            _ if !is_text => {
                let message = format!("The parameter {name} of the query can be no header");
                return Err(refuse(S3ErrorCode::InvalidArgument, message));
            }
            None => head.fields.push(name.as_bytes(), value.trim().as_bytes()),
            Some(field) if field == value.trim().as_bytes() => {}
            Some(_) => {
                let message =
                    format!("The header {name} has another value than the parameter of the query");
                return Err(refuse(S3ErrorCode::InvalidArgument, message));
            }
        }
    }
    Ok(())
}

/// Returns `true` for an empty body's checksum.
fn is_empty_checksum(name: &str, value: &str) -> bool {
    EMPTY_CHECKSUMS.iter().any(|(known, empty)| name.eq_ignore_ascii_case(known) && value == *empty)
}

/// Rejects a request without a signature that replaces response headers: a web page could otherwise
/// show another user's upload as HTML.
fn check_unsigned(head: &Head) -> S3Result<()> {
    let mut names = head.query.iter().map(|(name, _)| name);
    if !names.any(|name| name.to_ascii_lowercase().starts_with(RESPONSE)) {
        return Ok(());
    }
    let message = "Only signed requests may replace headers of the response";
    Err(refuse(S3ErrorCode::InvalidRequest, message))
}

fn two_kinds() -> S3Error {
    let message = "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, \
                   Signature query string parameter or the Authorization header should be \
                   specified";
    refuse(S3ErrorCode::InvalidArgument, message).with_field("ArgumentName", "Authorization")
}

fn v2_in_header() -> S3Error {
    let message = "Signatures of version 2 are accepted in URLs only: use AWS4-HMAC-SHA256";
    refuse(S3ErrorCode::InvalidRequest, message)
}

fn unsupported(text: &str) -> S3Error {
    let algorithm = text.split(' ').next().unwrap_or_default();
    let message = format!("Unsupported Authorization Type {algorithm:?}: use AWS4-HMAC-SHA256");
    refuse(S3ErrorCode::InvalidArgument, message).with_field("ArgumentName", "Authorization")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::keys::credentials::Credentials;
    use crate::request::head::tests::head;

    fn keys() -> AllKeys {
        let credentials = Credentials { access_key: "a".into(), secret_key: "b".into() };
        let administrator = Some(Arc::new(ActiveKey::administrator(credentials)));
        AllKeys { administrator, ring: None }
    }

    fn code(line: &str, fields: &[(&str, &str)]) -> String {
        let error = verify(&keys(), &mut head(line, fields)).err();
        error.map(|error| error.code().as_str().to_owned()).unwrap_or_default()
    }

    #[test]
    fn kind_of_a_signature_is_recognized() {
        let v4 = ("authorization", "AWS4-HMAC-SHA256 Credential=x");
        let v2 = ("authorization", "AWS a:signature");
        assert_eq!(code("GET /b/k", &[]), "");
        assert_eq!(code("GET /b/k", &[v4]), "AuthorizationHeaderMalformed");
        assert_eq!(code("GET /b/k", &[v2]), "InvalidRequest");
        for other in ["FOO Credential=x", "Basic x", "AWS4-HMAC-SHA512 a", "AWS2-HMAC-SHA1 a", ""] {
            assert_eq!(code("GET /b/k", &[("authorization", other)]), "InvalidArgument", "{other}");
        }
        let query = "AuthorizationQueryParametersError";
        for name in QUERY_V4 {
            assert_eq!(code(&format!("GET /b/k?{name}=a"), &[]), query, "{name}");
        }
        assert_eq!(code("GET /b/k?Signature=a", &[]), "InvalidRequest");
        for (line, fields) in [
            ("GET /b/k?X-Amz-Signature=a", &[v4][..]),
            ("GET /b/k?Signature=a", &[v4]),
            ("GET /b/k?Signature=a&X-Amz-Signature=b", &[]),
        ] {
            assert_eq!(code(line, fields), "InvalidArgument", "{line}");
            assert!(check_form(&keys(), &head(line, fields)).is_err(), "{line}");
        }
        assert!(check_form(&keys(), &head("POST /b", &[])).is_ok());
        assert!(check_form(&keys(), &head("POST /b", &[v4])).is_err());
        let none = AllKeys { administrator: None, ring: None };
        assert!(check_form(&none, &head("POST /b", &[v4])).is_ok());
        assert_eq!(code("GET /b/k?response-content-type=text/html", &[]), "InvalidRequest");
    }

    #[test]
    fn header_with_one_meaning_is_given_once() {
        for name in ["x-amz-acl", "x-amz-tagging", "authorization", "Content-MD5", "expires"] {
            assert_eq!(code("PUT /b/k", &[(name, "a"), (name, "a")]), "InvalidRequest", "{name}");
        }
        for name in ["x-amz-meta-a", "x-amz-grant-read", "x-amz-object-attributes", "range"] {
            assert_eq!(code("PUT /b/k", &[(name, "a"), (name, "b")]), "", "{name}");
        }
    }

    #[test]
    fn headers_in_the_query_become_fields() {
        let line = "PUT /b/k?x-amz-meta-a=two%20words&X-Amz-Tagging=a%3Db&Content-Type=a/b&x-id=c";
        let mut found = head(line, &[("content-type", "a/b")]);
        verify(&keys(), &mut found).unwrap();
        assert_eq!(found.fields.text("x-amz-meta-a"), Some("two words"));
        assert_eq!(found.fields.text("x-amz-tagging"), Some("a=b"));
        assert_eq!(found.fields.all("content-type").count(), 1);
        assert!(!found.fields.has("x-id"));
        for (header, empty) in EMPTY_CHECKSUMS {
            let empty = empty.replace('+', "%2B").replace('=', "%3D");
            let line = format!("PUT /b/k?{header}={empty}&x-amz-sdk-checksum-algorithm=CRC32");
            let mut presigned = head(&line, &[]);
            verify(&keys(), &mut presigned).unwrap();
            assert_eq!(presigned.fields.iter().count(), 1, "only the host, not {header}");
        }
        for (line, fields) in [
            ("PUT /b/k?x-amz-meta-a=b%0Ac", &[][..]),
            ("PUT /b/k?x-amz-copy-source%3Ab/s%0Ax-amz-metadata-directive=REPLACE", &[]),
            ("PUT /b/k?x-amz-meta-a%3Ab=c", &[]),
            ("PUT /b/k?x-amz-meta-a=b", &[("x-amz-meta-a", "c")]),
            ("PUT /b/k?content-type=b", &[("content-type", "c")]),
        ] {
            assert_eq!(code(line, fields), "InvalidArgument", "{line}");
        }
    }
}
