//! Finds the client of a request: on the short paths its key, and for the logs the access key that
//! it names.

use std::sync::Arc;

use form_urlencoded::parse;
use haul_admin_endpoint::AllowedHosts;
use haul_http_engine::RequestBody;
use haul_http1::Request;
use hyper::header::{AUTHORIZATION, HeaderMap};

use crate::access::authorize::Principal;
use crate::access::caller::Caller;
use crate::front::Front;
use crate::front::signature::{is_plain_query, signer};

/// The longest access key that is logged.
const ACCESS_KEY_BYTES_MAX: usize = 128;

impl Front {
    /// Returns the client of a request whose query consists of a signature and the name of the
    /// operation only; `None` if the signature is not valid, or if the S3 service must decide.
    pub(super) fn requester(
        &self,
        request: &Request<'_>,
        path: &str,
        query: &str,
    ) -> Option<Caller> {
        let is_unsigned =
            || request.fields.first("authorization").is_none() && is_plain_query(request, query);
        let principal = if self.keys.is_empty() {
            let is_allowed =
                is_plain_query(request, query) && AllowedHosts::local().allows(request.host);
            is_allowed.then_some(Principal::Open)?
        } else if is_unsigned() {
            Principal::Anonymous(self.keys.of_file())
        } else {
            Principal::Key(signer(&self.keys, request, path, query)?)
        };
        Some(Caller::new(principal))
    }

    /// Returns the access key that a request names; the signature is not verified yet. Without
    /// credentials signatures are ignored, so there is none.
    pub(crate) fn claimed_key(&self, request: &hyper::Request<RequestBody>) -> Option<Arc<str>> {
        if self.keys.is_empty() {
            return None;
        }
        let claimed = claimed(request.headers(), request.uri().query())?;
        Some(self.keys.name(&claimed).unwrap_or_else(|| claimed.into()))
    }
}

fn claimed(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let key = match header {
        Some(header) => match header.split_once("Credential=") {
            Some((_, scope)) => before_slash(scope).to_owned(),
            None => header.strip_prefix("AWS ")?.split(':').next()?.to_owned(),
        },
        None => parse(query?.as_bytes()).find_map(|(name, value)| match name.as_ref() {
            "X-Amz-Credential" => Some(before_slash(&value).to_owned()),
            "AWSAccessKeyId" => Some(value.into_owned()),
            _ => None,
        })?,
    };
    (!key.is_empty() && key.len() <= ACCESS_KEY_BYTES_MAX).then_some(key)
}

fn before_slash(scope: &str) -> &str {
    scope.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn access_key_is_found_in_headers_and_queries() {
        for (header, query, key) in [
            (
                "AWS4-HMAC-SHA256 Credential=key/20261122/us-east-1/s3/aws4_request,x",
                "",
                Some("key"),
            ),
            ("AWS old:signature", "", Some("old")),
            ("Bearer x", "X-Amz-Credential=key%2F20261122", None),
            ("", "a=b&X-Amz-Credential=key%2F20261122%2Fus-east-1", Some("key")),
            ("", "AWSAccessKeyId=k%201&Signature=x", Some("k 1")),
            ("", "a=b", None),
        ] {
            let value = HeaderValue::from_static(header);
            let headers: HeaderMap = [(AUTHORIZATION, value)].into_iter().collect();
            let headers = if header.is_empty() { HeaderMap::new() } else { headers };
            assert_eq!(claimed(&headers, Some(query)).as_deref(), key, "{header} {query}");
        }
        let long = format!("AWSAccessKeyId={}", "k".repeat(ACCESS_KEY_BYTES_MAX + 1));
        assert_eq!(claimed(&HeaderMap::new(), Some(&long)), None);
    }
}
