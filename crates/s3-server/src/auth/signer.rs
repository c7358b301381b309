//! Finds the key that signs requests with an access key and a session token.

use std::sync::Arc;

use crate::access::keys::key_ring::{ActiveKey, AllKeys, NoSigner};
use crate::errors::{S3ErrorCode, S3Result, refuse, unknown_key};

/// Returns the key that signs requests with this access key and session token.
///
/// # Errors
/// `InvalidAccessKeyId`, `InvalidToken` or `ExpiredToken`.
pub(crate) fn signer(
    keys: &AllKeys,
    access_key: &str,
    token: Option<&str>,
    now_s: i64,
) -> S3Result<Arc<ActiveKey>> {
    keys.signer(access_key, token, now_s).map_err(|why| match why {
        NoSigner::Unknown => unknown_key(access_key),
        NoSigner::InvalidToken => {
            let message = "The provided token is malformed or otherwise invalid";
            refuse(S3ErrorCode::InvalidToken, message)
        }
        NoSigner::ExpiredToken => {
            refuse(S3ErrorCode::ExpiredToken, "The provided token has expired")
        }
    })
}
