//! The features that do not exist.

use hyper::header::HeaderMap;
use s3s::{S3ErrorCode, S3Result};

use crate::errors::refuse;

/// Prefixes of headers that request encryption, which does not exist. They are refused, so that no
/// client assumes that its objects are encrypted.
const UNSUPPORTED: [&str; 2] = ["x-amz-server-side-encryption", "x-amz-copy-source-server-side-"];

/// Refuses requests for features that do not exist.
pub(super) fn check_supported(headers: &HeaderMap) -> S3Result<()> {
    for name in headers.keys() {
        if UNSUPPORTED.iter().any(|prefix| name.as_str().starts_with(prefix)) {
            let message = format!("{name}: encryption is not supported");
            return Err(refuse(S3ErrorCode::NotImplemented, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_features_are_refused_and_not_ignored() {
        let check = |name: &'static str, value: &'static str| {
            let headers = [(name.parse().unwrap(), value.parse().unwrap())].into_iter().collect();
            check_supported(&headers).is_ok()
        };
        assert!(!check("x-amz-server-side-encryption-customer-algorithm", "AES256"));
        assert!(check("x-amz-object-lock-mode", "GOVERNANCE"));
        assert!(check("x-amz-acl", "private"));
    }
}
