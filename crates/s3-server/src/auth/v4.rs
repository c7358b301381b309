//! Verifies AWS Signature Version 4, in a header or in a presigned URL.

use std::fmt::Write;
use std::sync::Arc;

use haul_http1::parse_date;
use ring::{digest, hmac};
use time::OffsetDateTime;
use time::macros::format_description;

use crate::access::keys::key_ring::{ActiveKey, AllKeys};
use crate::auth::canonical::{Blanks, push_collapsed, push_encoded, push_hex, seconds_of};
use crate::auth::chunks::ChunkVerifier;
use crate::auth::payload::{CONTENT_SHA256, Payload};
use crate::auth::scope::{Credential, Place};
use crate::auth::signer::signer;
use crate::errors::{S3Error, S3ErrorCode, S3Result, refuse};
use crate::request::head::Head;

/// The only supported algorithm, as clients name it.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The maximum difference between a client's clock and the server's, in seconds.
const SKEW_MAX_S: i64 = 15 * 60;

/// The maximum number of signed headers. A request head in S3 has at most 8 KiB.
const SIGNED_HEADERS_MAX: usize = 512;

/// The longest time for which a presigned URL is valid, in seconds: seven days, as in S3.
const EXPIRES_MAX_S: i64 = 7 * 24 * 60 * 60;

/// The `x-amz-` headers that need no signature, because they change nothing. With a presigned URL,
/// the date is in the query, and the body is not signed.
const UNSIGNED: [&str; 3] = [CONTENT_SHA256, "x-amz-date", "x-amz-user-agent"];

/// The session token of a temporary key, in a header and in the query of a presigned URL.
const TOKEN_HEADER: &str = "x-amz-security-token";
const TOKEN_PARAMETER: &str = "X-Amz-Security-Token";

#[derive(Debug)]
struct Signature<'a> {
    credential: Credential<'a>,
    signed_headers: &'a str,
    /// The signature in hexadecimal digits.
    signature: &'a str,
    /// The time at which the request was signed, in the format of `x-amz-date`.
    date: String,
    /// The body's hash, or the keyword instead.
    body: &'a str,
    /// The session token of a temporary key.
    token: Option<&'a str>,
}

/// Returns the key that signed a request in the `Authorization` header, and the signed payload.
pub(super) fn verify_header(
    keys: &AllKeys,
    head: &Head,
    now_s: i64,
) -> S3Result<(Arc<ActiveKey>, Payload)> {
    let found = Signature::from_header(head, &["s3"], None, now_s)?;
    let payload = Payload::from_text(found.body)?;
    found.verify(keys, head, payload, now_s)
}

/// Returns the key that signed a request to STS, whose body has the hash `body`. The body contains
/// the limits of a session, so that it must be signed.
pub(super) fn verify_body(
    keys: &AllKeys,
    head: &Head,
    body: &str,
    now_s: i64,
) -> S3Result<Arc<ActiveKey>> {
    if head.fields.text(CONTENT_SHA256).is_some_and(|claimed| !claimed.eq_ignore_ascii_case(body)) {
        let message = format!("The body of the request does not have the hash in {CONTENT_SHA256}");
        return Err(refuse(S3ErrorCode::XAmzContentSha256Mismatch, message));
    }
    let found = Signature::from_header(head, &["s3", "sts"], Some(body), now_s)?;
    let (key, _payload) = found.verify(keys, head, Payload::Plain { sha256: None }, now_s)?;
    Ok(key)
}

/// Returns the key that signed a presigned URL, and the signed payload.
pub(super) fn verify_query(
    keys: &AllKeys,
    head: &Head,
    now_s: i64,
) -> S3Result<(Arc<ActiveKey>, Payload)> {
    let malformed = |why: &str| Place::Query.malformed(why);
    let mut found = [None; 6];
    for (name, value) in head.query.iter() {
        const NAMES: [&str; 6] = [
            "X-Amz-Algorithm",
            "X-Amz-Credential",
            "X-Amz-Date",
            "X-Amz-Expires",
            "X-Amz-SignedHeaders",
            "X-Amz-Signature",
        ];
        let Some(number) = NAMES.iter().position(|known| *known == name) else { continue };
        if found[number].replace(value).is_some() {
            return Err(malformed(&format!("The parameter {name} is there twice")));
        }
    }
    let [algorithm, credential, date, expires, signed_headers, signature] = found;
    let credential = credential.map(|text| Credential::parse(text, Place::Query)).transpose()?;
    let (
        Some(algorithm),
        Some(credential),
        Some(date),
        Some(expires),
        Some(signed_headers),
        Some(signature),
    ) = (algorithm, credential, date, expires, signed_headers, signature)
    else {
        return Err(malformed(
            "Query-string authentication version 4 requires the X-Amz-Algorithm, \
             X-Amz-Credential, X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires \
             parameters",
        ));
    };
    if algorithm != ALGORITHM {
        return Err(malformed(&format!("X-Amz-Algorithm only supports \"{ALGORITHM}\"")));
    }
    if seconds_of(date).is_some() && date.get(..8) != Some(credential.date) {
        return Err(malformed(&format!(
            "Invalid credential date \"{}\": it is not that of X-Amz-Date, \"{date}\"",
            credential.date
        )));
    }
    check_validity(date, expires, now_s)?;
    // The signature covers the body only if the client signs the body's hash.
    let in_header = || {
        let is_signed = signed_headers.split(';').any(|name| name == CONTENT_SHA256);
        head.fields.text(CONTENT_SHA256).filter(|_| is_signed)
    };
    let body = head.query.given("X-Amz-Content-Sha256").or_else(in_header);
    let body = body.unwrap_or(Payload::UNSIGNED);
    let claimed = head.fields.text(CONTENT_SHA256).unwrap_or(body);
    if body != Payload::UNSIGNED && claimed != body {
        let message = "The header x-amz-content-sha256 is not the one that was signed";
        return Err(refuse(S3ErrorCode::InvalidRequest, message));
    }
    let payload = Payload::from_text(claimed)?;
    if matches!(payload, Payload::SignedChunks { .. }) {
        let message = "A presigned URL has no signatures of chunks";
        return Err(refuse(S3ErrorCode::NotImplemented, message));
    }
    let token = token_of_url(head)?;
    let date = date.to_owned();
    let found = Signature { credential, signed_headers, signature, date, body, token };
    found.verify(keys, head, payload, now_s)
}

/// Returns the session token of a presigned URL: a parameter, or a header that must be signed.
fn token_of_url(head: &Head) -> S3Result<Option<&str>> {
    match (head.query.get(TOKEN_PARAMETER), head.fields.text(TOKEN_HEADER)) {
        (Some(token), Some(header)) if token != header => {
            let message = "The header x-amz-security-token differs from the parameter of the query";
            Err(refuse(S3ErrorCode::InvalidRequest, message))
        }
        (token, header) => Ok(token.or(header)),
    }
}

/// Fails unless a presigned URL is currently valid.
fn check_validity(date: &str, expires: &str, now_s: i64) -> S3Result<()> {
    let malformed = |why: &str| Place::Query.malformed(why);
    let signed_s = seconds_of(date).ok_or_else(|| {
        malformed("X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\"")
    })?;
    let expires_s = match expires.parse::<i64>() {
        Err(_) => return Err(malformed("X-Amz-Expires should be a number")),
        Ok(seconds) if seconds < 0 => {
            return Err(malformed("X-Amz-Expires must be non-negative"));
        }
        Ok(seconds) if seconds > EXPIRES_MAX_S => {
            return Err(malformed(
                "X-Amz-Expires must be less than a week (in seconds); that is, the given \
                 X-Amz-Expires must be less than 604800 seconds",
            ));
        }
        Ok(seconds) => seconds,
    };
    let age_s = now_s - signed_s;
    if age_s < -SKEW_MAX_S {
        return Err(too_skewed(date, now_s));
    }
    // A URL that is valid for zero seconds has expired, too.
    if age_s > expires_s || expires_s == 0 {
        return Err(refuse(S3ErrorCode::AccessDenied, "Request has expired")
            .with_field("X-Amz-Expires", expires)
            .with_field("Expires", time_text(signed_s + expires_s))
            .with_field("ServerTime", time_text(now_s)));
    }
    Ok(())
}

impl<'a> Signature<'a> {
    /// Returns the signature in a request's `Authorization` header, for one of these services.
    /// Without the hash of a `body`, the request must have a header with it.
    fn from_header(
        head: &'a Head,
        services: &[&str],
        body: Option<&'a str>,
        now_s: i64,
    ) -> S3Result<Self> {
        let header = head.fields.text("authorization").unwrap_or_default().trim();
        let malformed = |why: &str| Place::Header.malformed(why);
        let parts = header.strip_prefix(ALGORITHM).unwrap_or_default();
        let mut found = [None; 3];
        for part in parts.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            const NAMES: [&str; 3] = ["Credential", "SignedHeaders", "Signature"];
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let Some(number) = NAMES.iter().position(|known| *known == name.trim()) else {
                return Err(malformed(&format!("it has an unknown part: {name}")));
            };
            if found[number].replace(value.trim()).is_some() {
                return Err(malformed(&format!("it has two parts {name}")));
            }
        }
        let [credential, signed_headers, signature] = found;
        let missing = |name: &str| malformed(&format!("it has no {name}"));
        let credential = credential.ok_or_else(|| missing("Credential"))?;
        let credential = Credential::parse_for(credential, Place::Header, services)?;
        let signed_headers = signed_headers.ok_or_else(|| missing("SignedHeaders"))?;
        let signature = signature.ok_or_else(|| missing("Signature"))?;
        let date = date_of_fields(head)?;
        if date.get(..8) != Some(credential.date) {
            return Err(malformed("the date of its Credential is not that of the request"));
        }
        let body = body.or_else(|| head.fields.text(CONTENT_SHA256)).ok_or_else(|| {
            let message = format!("Missing required header for this request: {CONTENT_SHA256}");
            refuse(S3ErrorCode::InvalidRequest, message)
        })?;
        let skew_s = seconds_of(&date).unwrap_or_default() - now_s;
        if skew_s.abs() > SKEW_MAX_S {
            return Err(too_skewed(&date, now_s));
        }
        let token = head.fields.text(TOKEN_HEADER);
        Ok(Self { credential, signed_headers, signature, date, body, token })
    }

    /// Verifies the signature, and adds to the payload the state for verifying chunk signatures.
    fn verify(
        self,
        keys: &AllKeys,
        head: &Head,
        payload: Payload,
        now_s: i64,
    ) -> S3Result<(Arc<ActiveKey>, Payload)> {
        check_signed_headers(head, self.signed_headers)?;
        let access_key = self.credential.access_key;
        let key = signer(keys, access_key, self.token, now_s)?;
        let mut path = String::with_capacity(head.target.len());
        push_encoded(&mut path, head.path.as_deref().unwrap_or_default());
        let usual = Dialect { path: &path, blanks: Blanks::Ascii, order: Repeated::Sorted };
        let mismatch = || {
            let message = "The request signature we calculated does not match the signature you \
                           provided. Check your key and signing method";
            let canonical = self.canonical(head, usual);
            refuse(S3ErrorCode::SignatureDoesNotMatch, message)
                .with_field("AWSAccessKeyId", access_key)
                .with_field("StringToSign", self.string_to_sign(&canonical))
                .with_field("SignatureProvided", self.signature)
                .with_field("CanonicalRequest", canonical)
        };
        let secret = key.signing_key(self.credential.scope).ok_or_else(mismatch)?;
        let claimed = crate::auth::canonical::from_hex(self.signature).ok_or_else(mismatch)?;
        let is_right = usual.with_variants(head).any(|dialect| {
            let text = self.string_to_sign(&self.canonical(head, dialect));
            hmac::verify(&secret, text.as_bytes(), &claimed).is_ok()
        });
        if !is_right {
            return Err(mismatch());
        }
        let payload = match payload {
            Payload::SignedChunks { has_trailer, .. } => {
                let Credential { scope, .. } = self.credential;
                let verifier = ChunkVerifier::new(secret, &self.date, scope, self.signature);
                Payload::SignedChunks { has_trailer, verifier: Some(Box::new(verifier)) }
            }
            payload => payload,
        };
        Ok((key, payload))
    }

    /// Returns the canonical request, as clients with this dialect sign it.
    fn canonical(&self, head: &Head, dialect: Dialect<'_>) -> String {
        let Dialect { path, blanks, order } = dialect;
        let mut text = format!("{}\n{path}\n", head.method);
        push_query(&mut text, head, order);
        text.push('\n');
        for name in self.signed_headers.split(';') {
            text += name;
            text.push(':');
            for (number, value) in head.fields.all(name).enumerate() {
                if number > 0 {
                    text.push(',');
                }
                push_collapsed(&mut text, &String::from_utf8_lossy(value), blanks);
            }
            text.push('\n');
        }
        let Self { signed_headers, body, .. } = self;
        write!(text, "\n{signed_headers}\n{body}").expect("a String accepts all text");
        text
    }

    fn string_to_sign(&self, canonical: &str) -> String {
        let mut text = format!("{ALGORITHM}\n{}\n{}\n", self.date, self.credential.scope);
        push_hex(&mut text, digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
        text
    }
}

/// The parts of the canonical request that clients write in different ways.
#[derive(Debug, Clone, Copy)]
struct Dialect<'a> {
    path: &'a str,
    blanks: Blanks,
    order: Repeated,
}

/// The order of the values of a parameter that is repeated in the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeated {
    /// Sorted, as AWS defines it.
    Sorted,
    /// As in the request, by clients in Go.
    AsGiven,
}

impl<'a> Dialect<'a> {
    /// Returns this dialect and those that differ from it for this request: some clients sign the
    /// path as they send it, some treat all Unicode blanks as blanks, and some sort the query by its
    /// names only.
    fn with_variants(self, head: &'a Head) -> impl Iterator<Item = Self> {
        let is_ascii = head.fields.iter().all(|(_, value)| value.is_ascii());
        let paths = [Some(self.path), Some(head.raw_path()).filter(|raw| *raw != self.path)];
        let blanks = [Some(self.blanks), (!is_ascii).then_some(Blanks::Unicode)];
        let orders = [Some(self.order), has_repeated_names(head).then_some(Repeated::AsGiven)];
        let with_blanks = move |path| blanks.into_iter().flatten().map(move |it| (path, it));
        let pairs = paths.into_iter().flatten().flat_map(with_blanks);
        pairs.flat_map(move |(path, blanks)| {
            orders.into_iter().flatten().map(move |order| Self { path, blanks, order })
        })
    }
}

fn has_repeated_names(head: &Head) -> bool {
    let mut names: Vec<_> = head.query.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

/// Appends a request's canonical query: sorted, without the signature.
fn push_query(out: &mut String, head: &Head, order: Repeated) {
    let encoded = |text: &str| {
        let mut out = String::with_capacity(text.len());
        push_encoded(&mut out, text);
        out.replace('/', "%2F")
    };
    let pairs = head.query.iter().filter(|(name, _)| *name != "X-Amz-Signature");
    let mut pairs: Vec<_> = pairs.map(|(name, value)| (encoded(name), encoded(value))).collect();
    match order {
        Repeated::Sorted => pairs.sort_unstable(),
        Repeated::AsGiven => pairs.sort_by(|one, other| one.0.cmp(&other.0)),
    }
    for (number, (name, value)) in pairs.iter().enumerate() {
        if number > 0 {
            out.push('&');
        }
        write!(out, "{name}={value}").expect("a String accepts all text");
    }
}

/// Rejects a request with an unsigned AWS header, as S3 does: the holder of a presigned URL could
/// have added it.
fn check_signed_headers(head: &Head, signed: &str) -> S3Result<()> {
    // The number of names is limited, because each is looked up in the head.
    let mut listed: Vec<_> = signed.split(';').take(SIGNED_HEADERS_MAX + 1).collect();
    listed.sort_unstable();
    if listed.len() > SIGNED_HEADERS_MAX || listed.windows(2).any(|pair| pair[0] == pair[1]) {
        let message =
            format!("SignedHeaders has a name twice, or more than {SIGNED_HEADERS_MAX} names");
        return Err(refuse(S3ErrorCode::AuthorizationHeaderMalformed, message));
    }
    let is_signed = |name: &str| signed.split(';').any(|found| found == name);
    let unsigned =
        |name: &str| name == "host" || name.starts_with("x-amz-") && !UNSIGNED.contains(&name);
    let names = std::iter::once("host").chain(head.fields.iter().map(|(name, _)| name));
    let Some(name) = names.into_iter().find(|name| unsigned(name) && !is_signed(name)) else {
        return Ok(());
    };
    let message = format!(
        "There were headers present in the request which were not signed: the header {name} was \
         not signed"
    );
    Err(refuse(S3ErrorCode::AccessDenied, message).with_field("HeadersNotSigned", name))
}

/// Returns the time in the `x-amz-date` or `Date` header, in the format of `x-amz-date`.
fn date_of_fields(head: &Head) -> S3Result<String> {
    let missing = || {
        let message = "AWS authentication requires a valid Date or x-amz-date header";
        refuse(S3ErrorCode::AccessDenied, message)
    };
    if let Some(date) = head.fields.text("x-amz-date") {
        return seconds_of(date).map(|_valid| date.to_owned()).ok_or_else(missing);
    }
    let date = head.fields.text("date").ok_or_else(missing)?;
    if seconds_of(date).is_some() {
        return Ok(date.to_owned());
    }
    let date = OffsetDateTime::from(parse_date(date.as_bytes()).ok_or_else(missing)?);
    let form = format_description!("[year][month][day]T[hour][minute][second]Z");
    date.format(form).map_err(|_unwritable| missing())
}

fn too_skewed(date: &str, now_s: i64) -> S3Error {
    let message = "The difference between the request time and the current time is too large";
    refuse(S3ErrorCode::RequestTimeTooSkewed, message)
        .with_field("RequestTime", date)
        .with_field("ServerTime", time_text(now_s))
        .with_field("MaxAllowedSkewMilliseconds", (SKEW_MAX_S * 1000).to_string())
}

/// Returns a time in the format of error documents.
pub(super) fn time_text(seconds: i64) -> String {
    let form = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    let time = OffsetDateTime::from_unix_timestamp(seconds).ok();
    time.and_then(|time| time.format(form).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::keys::credentials::Credentials;
    use crate::request::head::tests::head;

    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

    const NOW_S: i64 = 1_369_353_600;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn keys() -> AllKeys {
        let credentials =
            Credentials { access_key: "AKIAIOSFODNN7EXAMPLE".into(), secret_key: SECRET.into() };
        let administrator = Some(Arc::new(ActiveKey::administrator(credentials)));
        AllKeys { administrator, ring: None }
    }

    fn code<T>(outcome: S3Result<T>) -> String {
        outcome.err().map(|error| error.code().as_str().to_owned()).unwrap_or_default()
    }

    /// The headers in the AWS documentation's example "GET Object" for Signature Version 4.
    const GET: [(&str, &str); 5] = [
        ("Host", "examplebucket.s3.amazonaws.com"),
        (
            "Authorization",
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,\
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        ("Range", "bytes=0-9"),
        ("x-amz-content-sha256", EMPTY),
        ("x-amz-date", "20130524T000000Z"),
    ];

    /// Verifies the example with `from` replaced by `to`. Returns the error code; empty if it is
    /// valid.
    fn get(from: &str, to: &str, now_s: i64) -> String {
        let fields = GET.map(|(name, value)| (name.replace(from, to), value.replace(from, to)));
        let fields: Vec<_> =
            fields.iter().filter(|(name, _)| !name.is_empty()).map(|(n, v)| (&**n, &**v)).collect();
        let line = "GET /test.txt".replace(from, to);
        code(verify_header(&keys(), &head(&line, &fields), now_s))
    }

    #[test]
    fn get_of_the_documentation_is_valid_for_a_quarter_of_an_hour() {
        for now_s in [NOW_S, NOW_S + SKEW_MAX_S, NOW_S - SKEW_MAX_S] {
            assert_eq!(get("bytes", "bytes", now_s), "");
        }
        for now_s in [NOW_S + SKEW_MAX_S + 1, NOW_S - SKEW_MAX_S - 1] {
            assert_eq!(get("bytes", "bytes", now_s), "RequestTimeTooSkewed");
        }
        assert_eq!(get("bytes=0-9", " bytes=0-9 ", NOW_S), "");
    }

    #[test]
    fn any_change_of_a_signed_part_is_refused() {
        for (from, to, expected) in [
            ("GET ", "PUT ", "SignatureDoesNotMatch"),
            ("/test.txt", "/test.txT", "SignatureDoesNotMatch"),
            ("/test.txt", "/test.txt?acl", "SignatureDoesNotMatch"),
            ("bytes=0-9", "bytes=0-8", "SignatureDoesNotMatch"),
            ("examplebucket", "otherbucket", "SignatureDoesNotMatch"),
            ("f0e8bd", "f0e8be", "SignatureDoesNotMatch"),
            ("f0e8bd", "", "SignatureDoesNotMatch"),
            ("us-east-1", "us-east-2", "SignatureDoesNotMatch"),
            (EMPTY, "UNSIGNED-PAYLOAD", "SignatureDoesNotMatch"),
            (EMPTY, "hello", "InvalidArgument"),
            ("Range", "X-Amz-Acl", "AccessDenied"),
            ("=host;", "=", "AccessDenied"),
            ("=host;", "=host;host;", "AuthorizationHeaderMalformed"),
            ("x-amz-date", "x", "AccessDenied"),
            ("20130524T", "20130525T", "AuthorizationHeaderMalformed"),
            ("T000000Z", "", "AccessDenied"),
            ("Signature=", "X=", "AuthorizationHeaderMalformed"),
            ("Credential=", "Signature=", "AuthorizationHeaderMalformed"),
            ("SignedHeaders=", "", "AuthorizationHeaderMalformed"),
            ("AKIA", "BKIA", "InvalidAccessKeyId"),
        ] {
            assert_eq!(get(from, to, NOW_S), expected, "{from} -> {to}");
        }
    }

    #[test]
    fn put_of_the_documentation_is_valid_with_both_dates() {
        let fields = [
            ("Host", "examplebucket.s3.amazonaws.com"),
            ("Date", "Fri, 24 May 2013 00:00:00 GMT"),
            (
                "Authorization",
                "AWS4-HMAC-SHA256 \
                 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
                 SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class,\
                 Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
            ),
            ("x-amz-date", "20130524T000000Z"),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            (
                "x-amz-content-sha256",
                "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
            ),
            ("Content-Length", "21"),
        ];
        let (_, payload) =
            verify_header(&keys(), &head("PUT /test$file.text", &fields), NOW_S).unwrap();
        assert!(matches!(payload, Payload::Plain { sha256: Some(_) }));
        // The `Date` header alone is a valid date, but not what was signed.
        let fields: Vec<_> = fields.into_iter().filter(|(name, _)| *name != "x-amz-date").collect();
        let head = head("PUT /test$file.text", &fields);
        assert_eq!(code(verify_header(&keys(), &head, NOW_S)), "SignatureDoesNotMatch");
    }

    #[test]
    fn body_of_a_request_to_sts_is_signed_without_a_header() {
        let date = "20130524T000000Z";
        let keys = keys();
        for (service, claimed, expected) in [
            ("sts", None, ""),
            ("s3", None, ""),
            ("s3", Some(EMPTY), ""),
            ("s3", Some(Payload::UNSIGNED), "XAmzContentSHA256Mismatch"),
            ("ec2", None, "AuthorizationHeaderMalformed"),
        ] {
            let credential =
                format!("AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/{service}/aws4_request");
            let found = Signature {
                credential: Credential::parse_for(&credential, Place::Header, &[service]).unwrap(),
                signed_headers: "host;x-amz-date",
                signature: "",
                date: date.to_owned(),
                body: EMPTY,
                token: None,
            };
            let mut fields = vec![("Host", "a"), ("x-amz-date", date)];
            fields.extend(claimed.map(|claimed| (CONTENT_SHA256, claimed)));
            let plain = head("POST /", &fields);
            let dialect = Dialect { path: "/", blanks: Blanks::Ascii, order: Repeated::Sorted };
            let text = found.string_to_sign(&found.canonical(&plain, dialect));
            let key = keys.find(found.credential.access_key).unwrap();
            let mut signature = String::new();
            if let Some(secret) = key.signing_key(found.credential.scope) {
                push_hex(&mut signature, hmac::sign(&secret, text.as_bytes()).as_ref());
            }
            let authorization = format!(
                "{ALGORITHM} Credential={credential}, SignedHeaders=host;x-amz-date, \
                 Signature={signature}"
            );
            fields.push(("Authorization", &*authorization));
            let signed = head("POST /", &fields);
            let verified = |body| {
                let error = verify_body(&keys, &signed, body, NOW_S).err();
                error.map(|error| error.code().as_str().to_owned()).unwrap_or_default()
            };
            assert_eq!(verified(EMPTY), expected, "{service} {claimed:?}");
            assert_ne!(verified(&EMPTY.replace('e', "f")), "", "{service}");
        }
    }

    #[test]
    fn request_is_signed_in_the_dialect_of_each_client() {
        let date = "20130524T000000Z";
        let credential = "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request";
        let signed_headers = "host;x-amz-content-sha256;x-amz-date;x-amz-meta-a";
        let fields = [
            ("Host", "a"),
            ("x-amz-date", date),
            (CONTENT_SHA256, EMPTY),
            ("x-amz-meta-a", "b\u{3000}c"),
        ];
        // The query of "mc watch", which is written in Go.
        let line = "GET /b/k%2B?events=s3:b&events=s3:a&a=";
        let plain = head(line, &fields);
        let usual = Dialect { path: "/b/k%2B", blanks: Blanks::Ascii, order: Repeated::Sorted };
        let is_accepted = |dialect: Dialect<'_>, line: &str| {
            let credential_of = Credential::parse(credential, Place::Header).unwrap();
            let unsigned = Signature {
                credential: credential_of,
                signed_headers,
                signature: "",
                date: date.to_owned(),
                body: EMPTY,
                token: None,
            };
            let text = unsigned.string_to_sign(&unsigned.canonical(&plain, dialect));
            let keys = keys();
            let key = keys.find(unsigned.credential.access_key).unwrap();
            let secret = key.signing_key(unsigned.credential.scope).unwrap();
            let mut signature = String::new();
            push_hex(&mut signature, hmac::sign(&secret, text.as_bytes()).as_ref());
            let authorization = format!(
                "{ALGORITHM} Credential={credential}, SignedHeaders={signed_headers}, \
                 Signature={signature}"
            );
            let signed = [&fields[..], &[("Authorization", &*authorization)]].concat();
            code(verify_header(&keys, &head(line, &signed), NOW_S)).is_empty()
        };
        for blanks in [Blanks::Ascii, Blanks::Unicode] {
            for order in [Repeated::Sorted, Repeated::AsGiven] {
                assert!(is_accepted(Dialect { blanks, order, ..usual }, line), "{blanks:?}");
            }
        }
        let swapped = "GET /b/k%2B?events=s3:a&events=s3:b&a=";
        assert!(is_accepted(usual, swapped), "its values are sorted in the signed text");
        let as_given = Dialect { order: Repeated::AsGiven, ..usual };
        assert!(!is_accepted(as_given, swapped), "its values were signed in another order");
        for other in ["GET /b/k%2B?events=s3:b&a=", "GET /b/k%2B?events=s3:b&events=s3:c&a="] {
            assert!(!is_accepted(usual, other) && !is_accepted(as_given, other), "{other}");
        }
    }

    #[test]
    fn url_of_the_documentation_is_valid_until_it_expires() {
        let line = "GET /test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256\
             &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
             &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
             &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
        let host = ("Host", "examplebucket.s3.amazonaws.com");
        let verify = |from: &str, to: &str, more: &[(&str, &str)], now_s| {
            let fields = [&[host], more].concat();
            code(verify_query(&keys(), &head(&line.replace(from, to), &fields), now_s))
        };
        let plain = |now_s| verify("", "", &[], now_s);
        assert_eq!(plain(NOW_S + 86_400), "");
        assert_eq!(plain(NOW_S + 86_401), "AccessDenied");
        assert_eq!(plain(NOW_S - SKEW_MAX_S), "");
        assert_eq!(plain(NOW_S - SKEW_MAX_S - 1), "RequestTimeTooSkewed");
        let malformed = "AuthorizationQueryParametersError";
        for (from, to, expected) in [
            ("GET ", "PUT ", "SignatureDoesNotMatch"),
            ("test.txt", "test.txT", "SignatureDoesNotMatch"),
            ("86400", "86401", "SignatureDoesNotMatch"),
            ("d404", "d405", "SignatureDoesNotMatch"),
            ("&X-Amz-Expires=86400", "", malformed),
            ("86400", "604801", malformed),
            ("86400", "-1", malformed),
            ("86400", "undefined", malformed),
            ("86400", "0", "AccessDenied"),
            ("Algorithm=AWS4", "Algorithm=AWS5", malformed),
            ("&X-Amz-Date=20130524T000000Z", "", malformed),
            ("=20130524T000000Z", "=2013", malformed),
            ("=20130524T", "=20130523T", malformed),
            ("%2Fs3%2F", "%2Fec2%2F", malformed),
            ("&X-Amz-Expires", "&X-Amz-Date=20130524T000000Z&X-Amz-Expires", malformed),
            ("AKIA", "BKIA", "InvalidAccessKeyId"),
            ("test.txt?", "test.txt?acl&", "SignatureDoesNotMatch"),
        ] {
            assert_eq!(verify(from, to, &[], NOW_S), expected, "{from} -> {to}");
        }
        for (name, expected) in [
            ("x-amz-acl", "AccessDenied"),
            ("x-amz-meta-a", "AccessDenied"),
            ("x-amz-copy-source", "AccessDenied"),
            ("x-amz-bypass-governance-retention", "AccessDenied"),
            ("x-amz-date", ""),
            ("x-amz-user-agent", ""),
            ("user-agent", ""),
        ] {
            assert_eq!(verify("", "", &[(name, "a")], NOW_S), expected, "{name}");
        }
        // A request may not claim another hash than its presigned URL.
        let with_hash = format!("&X-Amz-Content-Sha256={EMPTY}&X-Amz-Date=");
        for claimed in [Payload::UNSIGNED, &EMPTY.replace('e', "f")] {
            let more = [(CONTENT_SHA256, claimed)];
            assert_eq!(verify("&X-Amz-Date=", &with_hash, &more, NOW_S), "InvalidRequest");
        }
        // An unsigned hash is compared with the body all the same.
        assert_eq!(verify("", "", &[(CONTENT_SHA256, EMPTY)], NOW_S), "");
        assert_eq!(verify("", "", &[(CONTENT_SHA256, "a")], NOW_S), "InvalidArgument");
    }
}
