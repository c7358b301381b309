//! Checks the host of a request. Performs no I/O.
//!
//! A web page can resolve its own domain to a loopback address, and then read from this server in the
//! browser of a local user (DNS rebinding). A server on a loopback address therefore only accepts
//! hosts that no such page can have.

use std::net::{IpAddr, Ipv6Addr};

/// The hosts whose requests are accepted.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// `false`: all hosts are accepted.
    pub(crate) is_checked: bool,
    /// Names accepted besides addresses and `localhost`.
    pub(crate) names: Vec<String>,
}

impl Hosts {
    /// Returns `true` if requests for this `host` or `host:port` are accepted. Requests without a
    /// host are, because browsers always send one.
    pub(crate) fn allows(&self, host: Option<&str>) -> bool {
        let Some(host) = host.filter(|_| self.is_checked) else { return true };
        if let Some(rest) = host.strip_prefix('[') {
            let address = rest.split(']').next().unwrap_or_default();
            return address.parse::<Ipv6Addr>().is_ok();
        }
        let name = host.split(':').next().unwrap_or_default();
        // A name with a final dot is absolute.
        let absolute = |name: &str| name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let name = &*absolute(name);
        let is = |known: &str| name == absolute(known);
        name.parse::<IpAddr>().is_ok()
            || is("localhost")
            || name.len() > 10 && name.ends_with(".localhost")
            || self.names.iter().any(|known| is(known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_others_could_have_registered_are_refused() {
        let hosts = Hosts { is_checked: true, names: vec!["files.example".to_owned()] };
        for host in [
            "127.0.0.1",
            "127.0.0.1:8080",
            "192.0.2.1",
            "[::1]:80",
            "[::1]",
            "localhost",
            "LOCALHOST:1",
            "localhost.",
            "localhost.:80",
            "files.example.",
            "a.localhost:80",
            "files.example",
            "Files.Example:80",
        ] {
            assert!(hosts.allows(Some(host)), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "notlocalhost",
            "x.files.example",
            "evil.example.",
            "localhost..",
            ".localhost",
            ".",
            "",
        ] {
            assert!(!hosts.allows(Some(host)), "{host}");
        }
        assert!(hosts.allows(None));
        assert!(Hosts { is_checked: false, ..hosts }.allows(Some("evil.example")));
    }
}
