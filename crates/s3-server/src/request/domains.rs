//! A server's domains, and the bucket in a host name. Pure.

use std::net::IpAddr;
use std::sync::Arc;

use crate::request::name::is_bucket_name;

/// The maximum length of a domain name that leaves space for a bucket name (RFC 1035, 2.3.4).
const DOMAIN_BYTES_MAX: usize = 253 - 4;

/// A server's domains. The host `BUCKET.DOMAIN` names the bucket.
#[derive(Debug, Clone, Default)]
pub(crate) struct Domains(Arc<[String]>);

impl Domains {
    pub(crate) fn new(names: &[String]) -> Self {
        Self(names.iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bucket that a host names, below the longest domain to which the host belongs.
    /// Case is ignored. A domain's own name names no bucket, even below another domain.
    pub(crate) fn bucket_of(&self, host: &str) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let name = host_name(host);
        if self.0.contains(&name) {
            return None;
        }
        let bucket = |domain: &String| {
            let bucket = name.strip_suffix(domain.as_str())?.strip_suffix('.')?;
            is_bucket_name(bucket).then_some(bucket)
        };
        // Below the longest domain, the bucket name is the shortest.
        self.0.iter().filter_map(bucket).min_by_key(|bucket| bucket.len()).map(str::to_owned)
    }

    /// Returns the bucket whose website has this host: the bucket that the host names below a
    /// domain, or else the bucket with the host's whole name.
    pub(crate) fn website_of(&self, host: &str) -> Option<String> {
        let whole = || Some(host_name(host)).filter(|name| is_bucket_name(name));
        self.bucket_of(host).or_else(whole)
    }
}

/// Returns a host's name in lower case, without its port.
fn host_name(host: &str) -> String {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.to_ascii_lowercase()
}

/// Returns the reason why a server cannot have a domain with this name; `None` if it can.
pub(crate) fn invalid(name: &str) -> Option<&'static str> {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.parse::<IpAddr>().is_ok() {
        return Some("an address has no names of buckets");
    }
    if name.len() > DOMAIN_BYTES_MAX || !name.split('.').all(is_label) {
        return Some("a domain consists of letters, digits and \"-\", separated by dots");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domains(names: &[&str]) -> Domains {
        Domains::new(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn bucket_is_the_name_before_the_longest_domain() {
        let all = domains(&["example.com", "S3.Example.com", "localhost"]);
        for (host, expected) in [
            ("photos.example.com", Some("photos")),
            ("Photos.Example.COM:9000", Some("photos")),
            ("a.b.example.com", Some("a.b")),
            ("photos.s3.example.com", Some("photos")),
            ("photos.localhost:80", Some("photos")),
            ("s3.example.com", None),
            ("example.com", None),
            ("example.com:9000", None),
            ("photosexample.com", None),
            (".example.com", None),
            ("x.example.com", None),
            ("photos.example.org", None),
            ("127.0.0.1:9000", None),
            ("[::1]:9000", None),
            ("", None),
        ] {
            assert_eq!(all.bucket_of(host).as_deref(), expected, "{host}");
        }
        assert_eq!(domains(&[]).bucket_of("photos.example.com"), None);
    }

    #[test]
    fn website_is_below_a_domain_or_has_the_whole_name() {
        let all = domains(&["example.com"]);
        for (host, expected) in [
            ("blog.example.com", Some("blog")),
            ("Blog.Example.com:8080", Some("blog")),
            ("a.b.example.com", Some("a.b")),
            ("example.com", Some("example.com")),
            ("WWW.example.org:80", Some("www.example.org")),
            ("no.example.com", Some("no.example.com")),
            ("under_score.example.org", None),
            ("127.0.0.1:80", None),
            ("[::1]", None),
            ("", None),
        ] {
            assert_eq!(all.website_of(host).as_deref(), expected, "{host}");
        }
        let whole = domains(&[]).website_of("blog.example.com");
        assert_eq!(whole.as_deref(), Some("blog.example.com"));
    }

    #[test]
    fn malformed_domains_are_found() {
        for name in ["example.com", "localhost", "s3-a.example.com"] {
            assert_eq!(invalid(name), None, "{name}");
        }
        let long = "a.".repeat(130);
        for name in ["", ".com", "a..b", "-a.com", "a_b.com", "10.0.0.1", "::1", "a.com:80", &long]
        {
            assert!(invalid(name).is_some(), "{name}");
        }
    }
}
