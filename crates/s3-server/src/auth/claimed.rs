//! The access key that a request claims, for the logs. The request's signature may be invalid.

use std::sync::Arc;

use crate::access::keys::key_ring::AllKeys;
use crate::request::head::Head;

/// The longest access key that is logged, in bytes.
const ACCESS_KEY_BYTES_MAX: usize = 128;

/// Returns the access key that a request claims; `None` on a server without keys, which ignores
/// signatures.
pub(crate) fn claimed_key(keys: &AllKeys, head: &Head) -> Option<Arc<str>> {
    if keys.is_empty() {
        return None;
    }
    let claimed = claimed(head)?;
    Some(keys.name(claimed).unwrap_or_else(|| claimed.into()))
}

fn claimed(head: &Head) -> Option<&str> {
    let key = match head.fields.text("authorization") {
        Some(header) => match header.split_once("Credential=") {
            Some((_, scope)) => before_slash(scope),
            None => header.strip_prefix("AWS ")?.split(':').next()?,
        },
        None => {
            let v4_credential = head.query.get("X-Amz-Credential").map(before_slash);
            v4_credential.or_else(|| head.query.get("AWSAccessKeyId"))?
        }
    };
    (!key.is_empty() && key.len() <= ACCESS_KEY_BYTES_MAX).then_some(key)
}

fn before_slash(scope: &str) -> &str {
    scope.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::head::tests::head;

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
            let fields = [("authorization", header)];
            let fields = if header.is_empty() { &[][..] } else { &fields };
            let head = head(&format!("GET /?{query}"), fields);
            assert_eq!(claimed(&head), key, "{header} {query}");
        }
        let long = format!("GET /?AWSAccessKeyId={}", "k".repeat(ACCESS_KEY_BYTES_MAX + 1));
        assert_eq!(claimed(&head(&long, &[])), None);
    }
}
