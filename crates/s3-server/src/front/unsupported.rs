//! The features that do not exist.

use hyper::header::HeaderMap;
use s3s::{S3ErrorCode, S3Result};

use crate::errors::refuse;

/// The prefix of headers that request locks, which do not exist. They are refused, so that no
/// client assumes that its objects are locked.
const UNSUPPORTED: &str = "x-amz-object-lock-";

/// Refuses requests for features that do not exist.
pub(super) fn check_supported(headers: &HeaderMap) -> S3Result<()> {
    for name in headers.keys() {
        if name.as_str().starts_with(UNSUPPORTED) {
            let message = format!("{name}: locks are not supported");
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
        assert!(check("x-amz-server-side-encryption-customer-algorithm", "AES256"));
        assert!(!check("x-amz-object-lock-mode", "GOVERNANCE"));
        assert!(check("x-amz-acl", "private"));
    }
}
