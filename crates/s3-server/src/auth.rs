//! Checks of signatures that the crate `s3s` does not make.

use std::time::{SystemTime, UNIX_EPOCH};

use form_urlencoded::parse;
use hyper::header::{AUTHORIZATION, HeaderMap};
use s3s::{S3ErrorCode, S3Result};

use crate::errors::refuse;

/// The longest validity of a presigned URL: seven days, as in S3.
const PRESIGNED_SECONDS_MAX: u64 = 7 * 24 * 60 * 60;

/// The region that errors name. Signatures for any other valid region name are accepted, too.
pub(crate) const REGION: &str = "us-east-1";

/// Refuses invalid region names, such as `US`, with the error of S3 for the wrong region of a
/// bucket. It names the region that clients must sign for.
pub(crate) fn check_region(headers: &HeaderMap, query: Option<&str>) -> S3Result<()> {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let scope = header.and_then(|value| value.split_once("Credential="));
    if let Some(region) = scope.and_then(|(_, scope)| wrong_region(scope)) {
        let message = format!(
            "The authorization header is malformed; the region '{region}' is wrong; expecting \
             '{REGION}'"
        );
        return Err(refuse(S3ErrorCode::AuthorizationHeaderMalformed, message));
    }
    let mut pairs = parse(query.unwrap_or_default().as_bytes());
    let scope = pairs.find(|(name, _)| name == "X-Amz-Credential");
    if let Some(region) = scope.as_ref().and_then(|(_, scope)| wrong_region(scope)) {
        let message = format!(
            "Error parsing the X-Amz-Credential parameter; the region '{region}' is wrong; \
             expecting '{REGION}'"
        );
        return Err(refuse(S3ErrorCode::AuthorizationQueryParametersError, message));
    }
    Ok(())
}

/// Returns the region in a scope (`key/date/region/service/aws4_request`) if it is invalid.
fn wrong_region(scope: &str) -> Option<&str> {
    let region = scope.split('/').nth(2)?;
    let is_valid = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    (region.is_empty() || !region.bytes().all(is_valid)).then_some(region)
}

/// Refuses malformed dates of signatures of version 4, with the errors of S3. (`s3s` subtracts from
/// the characters before it checks that they are digits, which panics if overflows are checked.)
pub(crate) fn check_dates(headers: &HeaderMap, query: Option<&str>) -> S3Result<()> {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_day = |text: &str| text.len() == 8 && is_digits(text);
    let is_time = |text: &str| {
        let time =
            text.split_once('T').and_then(|(day, time)| Some((day, time.strip_suffix('Z')?)));
        time.is_some_and(|(day, time)| is_day(day) && time.len() == 6 && is_digits(time))
    };
    let of_scope = |scope: &str| scope.split('/').nth(1).is_none_or(is_day);
    // As in the service, which accepts more than ASCII.
    let text = |name: &str| {
        headers.get(name).map(|value| str::from_utf8(value.as_bytes()).unwrap_or_default())
    };
    if let Some(value) = text(AUTHORIZATION.as_str()).filter(|value| value.starts_with("AWS4-")) {
        if value.split_once("Credential=").is_some_and(|(_, scope)| !of_scope(scope)) {
            let message = "The authorization header is malformed; invalid credential date";
            return Err(refuse(S3ErrorCode::AuthorizationHeaderMalformed, message));
        }
        if text("x-amz-date").is_some_and(|date| !is_time(date)) {
            let message = "AWS authentication requires a valid Date or x-amz-date header";
            return Err(refuse(S3ErrorCode::AccessDenied, message));
        }
    }
    for (name, value) in parse(query.unwrap_or_default().as_bytes()) {
        let is_valid = match name.as_ref() {
            "X-Amz-Credential" => of_scope(&value),
            "X-Amz-Date" => is_time(&value),
            _ => true,
        };
        if !is_valid {
            let message = format!("{name} must have a date of the form 20261123, or such a time");
            return Err(refuse(S3ErrorCode::AuthorizationQueryParametersError, message));
        }
    }
    Ok(())
}

/// Refuses signatures that `s3s` would accept: those of version 2 in a header, which never expire,
/// and presigned URLs that are valid for more than seven days. (boto3 still signs URLs with
/// version 2.)
pub(crate) fn check_signature_kind(headers: &HeaderMap, query: Option<&str>) -> S3Result<()> {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    if header.is_some_and(|value| value.starts_with("AWS ")) {
        let message = "Signatures of version 2 are accepted in URLs only: use AWS4-HMAC-SHA256";
        return Err(refuse(S3ErrorCode::InvalidRequest, message));
    }
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    for (name, value) in parse(query.unwrap_or_default().as_bytes()) {
        let last_s = match name.as_ref() {
            "X-Amz-Expires" => PRESIGNED_SECONDS_MAX,
            "Expires" => now_s + PRESIGNED_SECONDS_MAX,
            _ => continue,
        };
        if !value.parse().is_ok_and(|seconds: u64| seconds <= last_s) {
            let message = format!("{name} must be a number of seconds of at most seven days");
            return Err(refuse(S3ErrorCode::AuthorizationQueryParametersError, message));
        }
    }
    Ok(())
}

/// The headers of AWS that need no signature, because they change nothing: with a presigned URL, the
/// date is in the query, and the body is not signed.
const UNSIGNED: [&str; 3] = ["x-amz-content-sha256", "x-amz-date", "x-amz-user-agent"];

/// Refuses a signed request with another header of AWS that is not signed, as S3 does: the holder of
/// a presigned URL could have added it. (`s3s` verifies the headers that are signed only.)
pub(crate) fn check_signed_headers(headers: &HeaderMap, query: Option<&str>) -> S3Result<()> {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let of_header = header.and_then(|value| value.split_once("SignedHeaders="));
    let of_header = of_header.map(|(_, value)| value.split(',').next().unwrap_or_default().into());
    let of_query = || {
        let mut pairs = parse(query.unwrap_or_default().as_bytes());
        pairs.find(|(name, _)| name == "X-Amz-SignedHeaders").map(|(_, value)| value)
    };
    let Some(signed) = of_header.or_else(of_query) else { return Ok(()) };
    let is_signed = |name: &str| signed.split(';').any(|found| found.trim() == name);
    for name in headers.keys().map(hyper::header::HeaderName::as_str) {
        if name.starts_with("x-amz-") && !UNSIGNED.contains(&name) && !is_signed(name) {
            let message = format!("The header {name} was not signed");
            return Err(refuse(S3ErrorCode::AccessDenied, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_aws_must_be_signed() {
        let header = "AWS4-HMAC-SHA256 Credential=key/20261122/us-east-1/s3/aws4_request, \
                      SignedHeaders=host;x-amz-acl;x-amz-date, Signature=abc";
        let query = "X-Amz-SignedHeaders=host%3Bx-amz-acl&X-Amz-Signature=abc";
        for (name, expected) in [
            ("x-amz-acl", true),
            ("x-amz-date", true),
            ("x-amz-content-sha256", true),
            ("user-agent", true),
            ("x-amz-meta-a", false),
            ("x-amz-bypass-governance-retention", false),
            ("x-amz-grant-read", false),
            ("x-amz-copy-source", false),
        ] {
            let sent = (name.parse().unwrap(), "a".parse().unwrap());
            let unsigned: HeaderMap = [sent.clone()].into_iter().collect();
            let signed = [sent, (AUTHORIZATION, header.parse().unwrap())].into_iter().collect();
            assert_eq!(check_signed_headers(&signed, None).is_ok(), expected, "{name}");
            assert_eq!(check_signed_headers(&unsigned, Some(query)).is_ok(), expected, "{name}");
            assert!(check_signed_headers(&unsigned, Some("a=b")).is_ok(), "no signature");
        }
    }

    #[test]
    fn invalid_region_is_found_in_a_scope() {
        for (scope, wrong) in [
            ("key/20261122/us-east-1/s3/aws4_request, SignedHeaders=host", None),
            ("key/20261122/garage/s3/aws4_request", None),
            ("key/20261122/US/s3/aws4_request", Some("US")),
            ("key/20261122//s3/aws4_request", Some("")),
            ("key", None),
        ] {
            assert_eq!(wrong_region(scope), wrong, "{scope}");
        }
    }

    #[test]
    fn malformed_dates_are_refused() {
        let code = |field: Option<(&'static str, &str)>, date: &str, query: &str| {
            let value = format!("AWS4-HMAC-SHA256 Credential=key/{date}/us-east-1/s3/aws4_request");
            let fields = [("authorization", value.as_str())].into_iter().chain(field);
            let header = |text: &str| hyper::header::HeaderValue::from_str(text).unwrap();
            let headers = fields.map(|(name, text)| (name.parse().unwrap(), header(text)));
            let refused = check_dates(&headers.collect(), Some(query)).err();
            refused.map(|error| error.code().as_str().to_owned()).unwrap_or_default()
        };
        let time = |text| Some(("x-amz-date", text));
        let (day, malformed) = ("20261123", "AuthorizationHeaderMalformed");
        assert_eq!(code(time("20261123T181500Z"), day, ""), "");
        for date in ["\"0130563", "2026112", "202611233", "2026-1-1", ""] {
            assert_eq!(code(None, date, ""), malformed, "{date}");
        }
        for text in ["2026112 T181500Z", "20261123T1815 0Z", "20261123 181500Z", "20261123T181500"]
        {
            assert_eq!(code(time(text), day, ""), "AccessDenied", "{text}");
        }
        let scope = "X-Amz-Credential=key%2F20261123%2Fus-east-1";
        assert_eq!(code(None, day, &format!("{scope}&X-Amz-Date=20261123T181500Z")), "");
        for query in ["X-Amz-Credential=key%2F2026-123%2Fa", "X-Amz-Date=2026%2F123T181500Z"] {
            assert_eq!(code(None, day, query), "AuthorizationQueryParametersError", "{query}");
        }
    }

    #[test]
    fn version_2_headers_and_long_lived_urls_are_refused() {
        let v4 = ("authorization", "AWS4-HMAC-SHA256 Credential=…");
        let v2 = ("authorization", "AWS key:signature");
        let code = |(name, value): (&'static str, &str), query: Option<&str>| {
            let value = hyper::header::HeaderValue::from_bytes(value.as_bytes()).unwrap();
            let headers = [(name.parse().unwrap(), value)].into_iter().collect();
            check_signature_kind(&headers, query).err().map(|e| e.code().as_str().to_owned())
        };
        assert_eq!(code(v4, None), None);
        assert_eq!(code(v4, Some("X-Amz-Expires=604800")), None);
        assert_eq!(code(v2, None).unwrap(), "InvalidRequest");
        let expires = |name: &str, seconds: &str| {
            let query = format!("a=b&{name}={seconds}");
            code(("x", "y"), Some(&query)).unwrap_or_default()
        };
        for seconds in ["604801", "-1", "x", ""] {
            let found = expires("X-Amz-Expires", seconds);
            assert_eq!(found, "AuthorizationQueryParametersError", "{seconds}");
        }
        assert_eq!(expires("Expires", "1"), "");
        assert_eq!(expires("Expires", "9999999999"), "AuthorizationQueryParametersError");
    }
}
