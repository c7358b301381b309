//! The domains of a server, and the bucket in the name of a host. Pure.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use s3s::S3Result;
use s3s::host::{S3Host, VirtualHost};
use s3s::path::check_bucket_name;

/// The longest name of a domain that leaves space for that of a bucket (RFC 1035, 2.3.4).
const DOMAIN_BYTES_MAX: usize = 253 - 4;

/// The domains of a server. The host `BUCKET.DOMAIN` is that of a bucket.
#[derive(Debug, Clone, Default)]
pub(crate) struct Domains(Arc<[String]>);

/// The host of a bucket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BucketHost {
    pub(crate) bucket: String,
    /// The domain, with the port of the host.
    pub(crate) base: String,
}

impl Domains {
    pub(crate) fn new(names: &[String]) -> Self {
        Self(names.iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bucket of a host: that of the longest domain that the host belongs to. Names are
    /// compared without regard to case. The host of a domain itself is not that of a bucket of
    /// another domain.
    pub(crate) fn bucket_of(&self, host: &str) -> Option<BucketHost> {
        if self.is_empty() {
            return None;
        }
        let (name, port) = match host.rfind(':') {
            Some(at) if host[at + 1..].bytes().all(|byte| byte.is_ascii_digit()) => {
                host.split_at(at)
            }
            _ => (host, ""),
        };
        let name = name.to_ascii_lowercase();
        if self.0.contains(&name) {
            return None;
        }
        let of = |domain: &'_ String| {
            let bucket = name.strip_suffix(domain.as_str())?.strip_suffix('.')?;
            check_bucket_name(bucket)
                .then(|| BucketHost { bucket: bucket.to_owned(), base: format!("{domain}{port}") })
        };
        self.0.iter().filter_map(of).max_by_key(|found| found.base.len())
    }

    /// Returns the path of a request with the bucket of its host, if it has one.
    pub(crate) fn path_of<'a>(&self, host: Option<&[u8]>, path: Cow<'a, str>) -> Cow<'a, str> {
        if self.is_empty() {
            return path;
        }
        let host = host.and_then(|host| str::from_utf8(host).ok());
        match host.and_then(|host| self.bucket_of(host)) {
            Some(found) => format!("/{}{path}", found.bucket).into(),
            None => path,
        }
    }
}

impl S3Host for Domains {
    fn parse_host_header<'a>(&'a self, host: &'a str) -> S3Result<VirtualHost<'a>> {
        Ok(match self.bucket_of(host) {
            Some(found) => VirtualHost::new(found.base).with_bucket(found.bucket),
            // Any other host is that of the server.
            None => VirtualHost::new(host),
        })
    }
}

/// Returns the reason why a name is no domain of a server.
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
        let found = |host: &str| all.bucket_of(host).map(|found| (found.bucket, found.base));
        let is = |bucket: &str, base: &str| Some((bucket.to_owned(), base.to_owned()));
        for (host, expected) in [
            ("photos.example.com", is("photos", "example.com")),
            ("Photos.Example.COM:9000", is("photos", "example.com:9000")),
            ("a.b.example.com", is("a.b", "example.com")),
            ("photos.s3.example.com", is("photos", "s3.example.com")),
            ("photos.localhost:80", is("photos", "localhost:80")),
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
            assert_eq!(found(host), expected, "{host}");
        }
        assert_eq!(domains(&[]).bucket_of("photos.example.com"), None);
    }

    #[test]
    fn path_gets_the_bucket_of_the_host() {
        let all = domains(&["example.com"]);
        for (host, path, expected) in [
            (Some(&b"photos.example.com"[..]), "/a/b", "/photos/a/b"),
            (Some(b"photos.example.com"), "/", "/photos/"),
            (Some(b"example.com"), "/photos/a", "/photos/a"),
            (Some(b"\xff.example.com"), "/photos/a", "/photos/a"),
            (None, "/photos/a", "/photos/a"),
        ] {
            assert_eq!(all.path_of(host, path.into()), expected);
        }
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
