//! Verifies the signatures of plain requests: AWS Signature Version 4 in a header or in a presigned
//! URL. The body of a PUT is not part of it: the caller compares it with `x-amz-content-sha256`.
//!
//! A request that this module cannot verify is not refused: it is left to the S3 service, which
//! knows all kinds of signatures and the errors for them. So a form that is not recognized here
//! costs time, and never lets a request pass.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use haul_http1::Request;
use ring::{digest, hmac};

use crate::access::keys::key_ring::{ActiveKey, AllKeys};
use crate::front::canonical::{from_hex, hex, push_collapsed, push_encoded, seconds_of};

/// The most by which the clock of a client may differ, in seconds.
const SKEW_MAX_S: i64 = 15 * 60;

/// The SHA-256 of no bytes, and the word for a body that is not signed.
const NO_BODY: [&str; 2] =
    ["e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "UNSIGNED-PAYLOAD"];

/// The value of `x-amz-content-sha256` for a body of chunks that are not signed, and a trailer.
pub(super) const STREAMING_UNSIGNED: &str = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";

/// The longest time for which a presigned URL is valid, in seconds.
const EXPIRES_MAX_S: i64 = 7 * 24 * 60 * 60;

/// A part of a query that names the operation, as clients of AWS add it, and changes nothing.
const OPERATION: &str = "x-id=";

/// The parts of a signature, from a header or a query.
#[derive(Debug)]
struct Signature<'a> {
    access_key: &'a str,
    /// Date, region, service and a fixed word, separated by slashes.
    scope: Cow<'a, str>,
    signed_headers: Cow<'a, str>,
    signature: &'a str,
    date: &'a str,
    /// The hash of the body, or the word in its place.
    body: &'a str,
    /// The signed query, sorted.
    query: String,
}

/// Returns the key that signed the request, if it is signed correctly and its query consists of a
/// signature and the name of the operation only. `path` is its decoded path.
pub(super) fn signer(
    keys: &AllKeys,
    request: &Request<'_>,
    path: &str,
    query: &str,
) -> Option<Arc<ActiveKey>> {
    verify(keys, request, path, query, now_s())
}

fn verify(
    keys: &AllKeys,
    request: &Request<'_>,
    path: &str,
    query: &str,
    now_s: i64,
) -> Option<Arc<ActiveKey>> {
    let signature = match request.fields.first("authorization") {
        Some(_) => Signature::of_header(request, query, now_s)?,
        None => Signature::of_query(request, query, now_s)?,
    };
    let Signature { scope, signed_headers, date, body, .. } = &signature;
    if date.get(..8) != scope.get(..8) || !signs_enough(request, signed_headers) {
        return None;
    }
    let key = keys.find(signature.access_key)?;
    let mut canonical = format!("{}\n", request.method);
    push_encoded(&mut canonical, path);
    canonical += &format!("\n{}\n", signature.query);
    for name in signed_headers.split(';') {
        canonical += name;
        canonical.push(':');
        push_collapsed(&mut canonical, str::from_utf8(once(request, name)?).ok()?);
        canonical.push('\n');
    }
    canonical += &format!("\n{signed_headers}\n{body}");
    let hash = digest::digest(&digest::SHA256, canonical.as_bytes());
    let mut signed = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n").into_bytes();
    hash.as_ref().iter().for_each(|byte| signed.extend(hex(*byte)));
    let claimed = from_hex(signature.signature)?;
    hmac::verify(&*key.signing_key(scope)?, &signed, &claimed).ok()?;
    Some(key)
}

impl<'a> Signature<'a> {
    /// Returns the signature in the header `Authorization`.
    fn of_header(request: &Request<'a>, query: &str, now_s: i64) -> Option<Self> {
        let header = |name| Some(str::from_utf8(once(request, name)?).ok()?.trim());
        let value = header("authorization")?.strip_prefix("AWS4-HMAC-SHA256 ")?;
        let mut parts = value.split(',').map(str::trim);
        let (access_key, scope) = parts.next()?.strip_prefix("Credential=")?.split_once('/')?;
        let signed_headers = parts.next()?.strip_prefix("SignedHeaders=")?.into();
        let signature = parts.next()?.strip_prefix("Signature=")?;
        let (date, body) = (header("x-amz-date")?, header("x-amz-content-sha256")?);
        let is_plain = parts.next().is_none()
            && is_plain_query(request, query)
            && (NO_BODY.contains(&body) || is_put(request) && is_of_body(body))
            && (seconds_of(date)? - now_s).abs() <= SKEW_MAX_S;
        let (scope, query) = (scope.into(), query.to_owned());
        is_plain.then_some(Self { access_key, scope, signed_headers, signature, date, body, query })
    }

    /// Returns the signature of a presigned URL.
    fn of_query(request: &Request<'_>, query: &'a str, now_s: i64) -> Option<Self> {
        let mut values = [None; 6];
        let mut signed = Vec::new();
        for part in query.split('&') {
            const NAMES: [&str; 6] = [
                "X-Amz-Algorithm",
                "X-Amz-Credential",
                "X-Amz-Date",
                "X-Amz-Expires",
                "X-Amz-SignedHeaders",
                "X-Amz-Signature",
            ];
            let (name, value) = part.split_once('=')?;
            match NAMES.iter().position(|known| *known == name) {
                Some(number) if values[number].is_none() => values[number] = Some(value),
                None if is_operation(request, part) => {}
                _ => return None,
            }
            if name != "X-Amz-Signature" {
                signed.push(part);
            }
        }
        let [algorithm, credential, date, expires, signed_headers, signature] = values;
        let (access_key, scope) = credential?.split_once("%2F")?;
        let (date, expires) = (date?, expires?.parse::<i64>().ok()?);
        let age_s = now_s - seconds_of(date)?;
        let is_valid = algorithm == Some("AWS4-HMAC-SHA256")
            && (1..=EXPIRES_MAX_S).contains(&expires)
            && (-SKEW_MAX_S..=expires).contains(&age_s);
        if !is_valid {
            return None;
        }
        signed.sort_unstable();
        Some(Self {
            access_key,
            scope: scope.replace("%2F", "/").into(),
            signed_headers: signed_headers?.replace("%3B", ";").into(),
            signature: signature?,
            date,
            body: "UNSIGNED-PAYLOAD",
            query: signed.join("&"),
        })
    }
}

/// Returns `true` if a query is empty, or only names the operation of a plain request.
pub(super) fn is_plain_query(request: &Request<'_>, query: &str) -> bool {
    query.is_empty() || is_operation(request, query)
}

/// Returns `true` if a part of a query names the operation of a plain request.
fn is_operation(request: &Request<'_>, part: &str) -> bool {
    part.strip_prefix(OPERATION).is_some_and(|name| match name {
        "GetObject" | "HeadObject" => !is_put(request),
        "PutObject" => is_put(request),
        _ => false,
    })
}

/// Returns `true` for a hash of a body, or the word for unsigned chunks.
fn is_of_body(text: &str) -> bool {
    text == STREAMING_UNSIGNED || from_hex(text).is_some()
}

fn is_put(request: &Request<'_>) -> bool {
    request.method == "PUT"
}

/// Returns `true` if the names of the signed headers are in order, and the host and all headers of
/// AWS are among them.
fn signs_enough(request: &Request<'_>, signed_headers: &str) -> bool {
    let names = || signed_headers.split(';');
    let is_plain =
        |name: &str| name.bytes().all(|b| b.is_ascii_graphic() && !b.is_ascii_uppercase());
    let is_signed =
        |name: &[u8]| names().any(|signed| name.eq_ignore_ascii_case(signed.as_bytes()));
    let is_of_aws = |name: &[u8]| name.get(..6).is_some_and(|s| s.eq_ignore_ascii_case(b"x-amz-"));
    names().all(is_plain)
        && names().zip(names().skip(1)).all(|(name, next)| name < next)
        && is_signed(b"host")
        && request.fields.into_iter().all(|field| !is_of_aws(field.name) || is_signed(field.name))
}

/// Returns the value of a field that occurs once.
fn once<'a>(request: &Request<'a>, name: &str) -> Option<&'a [u8]> {
    let mut values = request.fields.all(name);
    values.next().filter(|_| values.next().is_none())
}

fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use haul_http1::{HeadLimits, parse_request};

    use super::*;
    use crate::access::keys::credentials::Credentials;

    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

    const NOW_S: i64 = 1_369_353_600;

    fn keys() -> AllKeys {
        let credentials =
            Credentials { access_key: "AKIAIOSFODNN7EXAMPLE".into(), secret_key: SECRET.into() };
        let administrator = Some(Arc::new(ActiveKey::administrator(credentials)));
        AllKeys { administrator, ring: None }
    }

    /// The example "GET Object" of the AWS documentation of Signature Version 4.
    fn example(change: impl Fn(String) -> String) -> bool {
        let head = "GET /test.txt HTTP/1.1\r\n\
             Host: examplebucket.s3.amazonaws.com\r\n\
             Authorization: AWS4-HMAC-SHA256 \
             Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,\
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41\r\n\
             Range: bytes=0-9\r\n\
             x-amz-content-sha256: \
             e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\r\n\
             x-amz-date: 20130524T000000Z\r\n\r\n";
        let head = change(head.to_owned());
        let request = parse_request(head.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
        let path = request.target.path();
        verify(&keys(), &request, path, "", NOW_S).is_some()
    }

    #[test]
    fn example_of_the_documentation_is_valid() {
        assert!(example(|head| head));
        assert!(example(|head| head.replace("bytes=0-9", " bytes=0-9 ")));
    }

    /// The example "PUT Object" of the same documentation.
    fn put_example(change: impl Fn(String) -> String) -> bool {
        let head = "PUT /test$file.text HTTP/1.1\r\n\
             Host: examplebucket.s3.amazonaws.com\r\n\
             Date: Fri, 24 May 2013 00:00:00 GMT\r\n\
             Authorization: AWS4-HMAC-SHA256 \
             Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
             SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class,\
             Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd\r\n\
             x-amz-date: 20130524T000000Z\r\n\
             x-amz-storage-class: REDUCED_REDUNDANCY\r\n\
             x-amz-content-sha256: \
             44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072\r\n\
             Content-Length: 21\r\n\r\n";
        let head = change(head.to_owned());
        let request = parse_request(head.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
        verify(&keys(), &request, request.target.path(), "", NOW_S).is_some()
    }

    #[test]
    fn hash_of_a_body_is_signed_with_a_put_only() {
        assert!(put_example(|head| head));
        for (from, to) in [
            ("PUT ", "GET "),
            ("44ce7d", "44ce7e"),
            ("44ce7d", "44CE7D"),
            ("REDUCED", "INCREASED"),
            ("Content-Length", "x-amz-acl: private\r\nContent-Length"),
            ("/test$", "/test%24"),
        ] {
            assert!(!put_example(|head| head.replace(from, to)), "{from} -> {to}");
        }
        let request = |line: &str| format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n");
        for (line, query, is_plain) in [
            ("GET /b/k", "x-id=GetObject", true),
            ("PUT /b/k", "x-id=PutObject", true),
            ("PUT /b/k", "", true),
            ("PUT /b/k", "x-id=GetObject", false),
            ("GET /b/k", "x-id=PutObject", false),
            ("PUT /b/k", "tagging", false),
        ] {
            let head = request(line);
            let request = parse_request(head.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
            assert_eq!(is_plain_query(&request, query), is_plain, "{line} {query}");
        }
    }

    #[test]
    fn any_change_of_a_signed_part_is_invalid() {
        for (from, to) in [
            ("GET ", "HEAD "),
            ("/test.txt", "/test.txT"),
            ("Host: examplebucket", "Host: otherbucket"),
            ("bytes=0-9", "bytes=0-8"),
            ("20130524T000000Z", "20130524T000001Z"),
            ("20130524T000000Z", "20130524T001501Z"),
            ("20130524/us-east-1", "20130525/us-east-1"),
            ("us-east-1/s3", "us-east-2/s3"),
            ("/s3/", "/sts/"),
            ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLF"),
            ("bdb41", "bdb42"),
            ("host;range;", "range;host;"),
            ("host;range;", "range;"),
            ("host;range;", "host;"),
            ("x-amz-date: ", "x-amz-security-token: a\r\nx-amz-date: "),
            ("Range: ", "Range: bytes=0-9\r\nRange: "),
            ("e3b0c4", "e3b0c5"),
        ] {
            assert!(!example(|head| head.replace(from, to)), "{from} -> {to}");
        }
    }

    /// The example of the AWS documentation for authentication by query parameters.
    fn presigned_example(now_s: i64, change: impl Fn(String) -> String) -> bool {
        let head = "GET /test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256\
             &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
             &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
             &X-Amz-Signature=\
             aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404 HTTP/1.1\r\n\
             Host: examplebucket.s3.amazonaws.com\r\nRange: bytes=0-9\r\n\r\n";
        let head = change(head.to_owned());
        let request = parse_request(head.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
        let (path, query) = request.target.path().split_once('?').unwrap();
        verify(&keys(), &request, path, query, now_s).is_some()
    }

    #[test]
    fn presigned_example_is_valid_until_it_expires() {
        for (age_s, is_valid) in
            [(-901, false), (-900, true), (0, true), (86_400, true), (86_401, false)]
        {
            assert_eq!(presigned_example(NOW_S + age_s, |head| head), is_valid, "{age_s}");
        }
        let reordered = |head: String| {
            let date = "&X-Amz-Date=20130524T000000Z";
            head.replace(date, "").replace(" HTTP/1.1", &format!("{date} HTTP/1.1"))
        };
        assert!(presigned_example(NOW_S, reordered));
    }

    #[test]
    fn any_change_of_a_presigned_url_is_invalid() {
        for (from, to) in [
            ("GET ", "HEAD "),
            ("/test.txt", "/test.txT"),
            ("HMAC-SHA256", "HMAC-SHA255"),
            ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLF"),
            ("%2F20130524", "%2F20130525"),
            ("20130524T000000Z", "20130524T000001Z"),
            ("Expires=86400", "Expires=86401"),
            ("Expires=86400", "Expires=604801"),
            ("Expires=86400", "Expires=0"),
            ("SignedHeaders=host", "SignedHeaders=host%3Brange"),
            ("SignedHeaders=host", "SignedHeaders=range"),
            ("Host: examplebucket", "Host: otherbucket"),
            ("d404", "d405"),
            ("&X-Amz-Expires", "&x-id=GetObject&X-Amz-Expires"),
            ("&X-Amz-Expires", "&response-content-type=a&X-Amz-Expires"),
            ("&X-Amz-Expires=86400", "&X-Amz-Expires=86400&X-Amz-Expires=86400"),
            ("&X-Amz-Expires=86400", ""),
            ("\r\nRange", "\r\nx-amz-meta-a: b\r\nRange"),
            ("\r\nRange", "\r\nauthorization: AWS4-HMAC-SHA256 a\r\nRange"),
        ] {
            assert!(!presigned_example(NOW_S, |head| head.replacen(from, to, 1)), "{from} -> {to}");
        }
    }
}
