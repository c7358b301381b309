//! Checks the host of a request. Performs no I/O.
//!
//! A web page can resolve its own domain to a loopback address, and then read from this server in the
//! browser of a local user (DNS rebinding). A server on a loopback address therefore only accepts
//! hosts that no such page can have.

use std::net::{IpAddr, Ipv6Addr};

use haul_reactor::Address;

/// The hosts whose requests a server accepts at an address: on a loopback address, `localhost`, IP
/// addresses and given names; on any other address, all hosts.
#[derive(Debug)]
pub struct AllowedHosts {
    /// `false`: all hosts are accepted.
    is_checked: bool,
    /// Names accepted besides addresses and `localhost`.
    names: Vec<String>,
}

impl AllowedHosts {
    /// Returns the hosts accepted at `address`, which include `names`. Web pages cannot connect to
    /// unix sockets, and a public address has names of its own: these accept all hosts.
    #[must_use]
    pub fn at(address: &Address, names: Vec<String>) -> Self {
        let is_checked = matches!(address, Address::Tcp(_)) && address.is_local();
        Self { is_checked, names }
    }

    /// Accepts all hosts.
    #[must_use]
    pub fn all() -> Self {
        Self { is_checked: false, names: Vec::new() }
    }

    /// Returns `true` if requests for this `host` or `host:port` are accepted. Requests without a
    /// host are, because browsers always send one.
    #[must_use]
    pub fn allows(&self, host: Option<&str>) -> bool {
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
        let names = vec!["files.example".to_owned()];
        let hosts = AllowedHosts::at(&"127.0.0.1:80".parse().unwrap(), names);
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
        assert!(AllowedHosts::all().allows(Some("evil.example")));
    }

    #[test]
    fn only_loopback_addresses_restrict_hosts() {
        for (address, is_allowed) in [
            ("127.0.0.2:80", false),
            ("[::1]:80", false),
            ("[::ffff:127.0.0.1]:80", false),
            ("0.0.0.0:80", true),
            ("192.0.2.1:80", true),
            ("[::]:80", true),
            ("unix:/run/haul", true),
        ] {
            let hosts = AllowedHosts::at(&address.parse().unwrap(), Vec::new());
            assert_eq!(hosts.allows(Some("evil.example")), is_allowed, "{address}");
            assert!(hosts.allows(Some("localhost")), "{address}");
        }
    }
}
