//! The access key that a request is signed with, for the logs.

use std::sync::Arc;

use form_urlencoded::parse;
use haul_http_engine::RequestBody;
use hyper::Request;
use hyper::header::{AUTHORIZATION, HeaderMap};

use crate::front::Front;

/// The longest access key that is logged.
const ACCESS_KEY_BYTES_MAX: usize = 128;

impl Front {
    /// Returns the access key that a request names; the signature is not verified yet. Without
    /// credentials signatures are ignored, so there is none.
    pub(crate) fn claimed_key(&self, request: &Request<RequestBody>) -> Option<Arc<str>> {
        let own = self.access_key.as_ref()?;
        let claimed = claimed(request.headers(), request.uri().query())?;
        Some(if claimed == **own { Arc::clone(own) } else { claimed.into() })
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
