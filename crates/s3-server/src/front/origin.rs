//! Access without credentials: all requests are allowed, so they must come from this machine.

use haul_admin_endpoint::AllowedHosts;

use crate::errors::{S3ErrorCode, S3Result, refuse};
use crate::request::head::Head;

/// Rejects requests from web pages: requests for a host other than this machine (DNS rebinding),
/// and requests from a page with another origin, unless a CORS rule allows them. A host in the
/// request target replaces the `Host` header.
pub(super) fn check_origin(head: &Head, is_allowed_page: bool) -> S3Result<()> {
    let host = head.host.as_deref();
    if !AllowedHosts::local().allows(host) {
        let message = format!(
            "Without credentials this server accepts only localhost and addresses as a host, \
             not \"{}\"",
            host.unwrap_or_default()
        );
        return Err(refuse(S3ErrorCode::AccessDenied, message));
    }
    let host = host.unwrap_or_default();
    match head.fields.first("origin") {
        _ if is_allowed_page => Ok(()),
        Some(origin) if origin.strip_prefix(b"http://") != Some(host.as_bytes()) => {
            let message = "Without credentials this server accepts no requests of other web pages";
            Err(refuse(S3ErrorCode::AccessDenied, message))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::head::tests::head;

    #[test]
    fn host_must_be_this_machine() {
        let check = |line: &str, host: &str| check_origin(&head(line, &[("host", host)]), false);
        for host in ["localhost:9000", "bucket.localhost", "127.0.0.1:9000", "[::1]:9000"] {
            assert!(check("GET /", host).is_ok(), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:9000"] {
            assert!(check("GET /", host).is_err(), "{host}");
        }
        // The host in the request target replaces the `Host` header.
        assert!(check("GET http://evil.example/", "localhost").is_err());
        assert!(check("GET http://localhost/", "evil.example").is_ok());
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let check = |origin: &str| {
            let fields = [("host", "127.0.0.1:9000"), ("origin", origin)];
            check_origin(&head("GET /", &fields), false).is_ok()
        };
        assert!(check("http://127.0.0.1:9000"));
        for origin in ["http://evil.example", "null", "http://127.0.0.1:9001"] {
            assert!(!check(origin), "{origin}");
        }
    }
}
