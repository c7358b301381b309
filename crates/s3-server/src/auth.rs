//! The one key pair, and what of signatures the `s3s` crate leaves to us.

use std::time::{SystemTime, UNIX_EPOCH};

use form_urlencoded::parse;
use hyper::header::{AUTHORIZATION, HeaderMap};
use s3s::auth::{S3Auth, SecretKey};
use s3s::{S3ErrorCode, S3Result};

use crate::config::Credentials;
use crate::errors::refuse;

/// The longest a presigned URL may be good for: seven days, as in S3.
const PRESIGNED_SECONDS_MAX: u64 = 7 * 24 * 60 * 60;

/// Knows the secret of one key.
pub(crate) struct OneKey(pub(crate) Credentials);

#[async_trait::async_trait]
impl S3Auth for OneKey {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        if access_key == self.0.access_key {
            return Ok(SecretKey::from(self.0.secret_key.as_str()));
        }
        let message = "The access key you provided is not the one of this server";
        Err(refuse(S3ErrorCode::InvalidAccessKeyId, message))
    }
}

/// The region of this server, as far as clients are concerned; signatures with any other name of a
/// region are good as well.
pub(crate) const REGION: &str = "us-east-1";

/// Refuses what is no name of a region, such as `US`, as S3 refuses the region of another bucket:
/// clients learn from that error which region to sign for.
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

/// The region in a scope, `key/date/region/service/aws4_request`, if it cannot be one.
fn wrong_region(scope: &str) -> Option<&str> {
    let region = scope.split('/').nth(2)?;
    let is_of_a_name =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (region.is_empty() || !region.bytes().all(is_of_a_name)).then_some(region)
}

/// Refuses signatures that nobody else looks at closely enough: those of version 2 in a header,
/// which are good for ever, and those of URLs meant to be good for longer than seven days. (URLs
/// are signed with version 2 to this day, by boto3 for one.)
pub(crate) fn check_signature_kind(headers: &HeaderMap, query: Option<&str>) -> S3Result<()> {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    if header.is_some_and(|value| value.starts_with("AWS ")) {
        let message = "Signatures of version 2 are for URLs only: use AWS4-HMAC-SHA256";
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
            let message = format!("{name} must be a number of seconds, and within seven days");
            return Err(refuse(S3ErrorCode::AuthorizationQueryParametersError, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_without_a_name_of_a_region_is_told_apart() {
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
    fn old_and_long_lived_signatures_are_refused() {
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
            let told = expires("X-Amz-Expires", seconds);
            assert_eq!(told, "AuthorizationQueryParametersError", "{seconds}");
        }
        assert_eq!(expires("Expires", "1"), "");
        assert_eq!(expires("Expires", "9999999999"), "AuthorizationQueryParametersError");
    }
}
