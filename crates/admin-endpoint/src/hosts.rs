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

    /// Accepts only `localhost`, names that end with `.localhost`, and IP addresses: no web page can
    /// get such a host by DNS rebinding.
    #[must_use]
    pub fn local() -> Self {
        Self { is_checked: true, names: Vec::new() }
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
        let Some(name) = without_port(host) else { return false };
        let is = |known: &String| absolute(name).eq_ignore_ascii_case(absolute(known));
        is_local(name) || self.names.iter().any(is)
    }
}

/// Returns a host without its port; `None` if the port is not a number.
fn without_port(host: &str) -> Option<&str> {
    match host.rsplit_once(':') {
        Some((name, port)) if !host.ends_with(']') => {
            port.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)
        }
        _ => Some(host),
    }
}

/// Returns `true` for IP addresses, `localhost`, and names that end with `.localhost`.
fn is_local(name: &str) -> bool {
    if let Some(address) = name.strip_prefix('[') {
        let address = address.strip_suffix(']').map(str::parse::<Ipv6Addr>);
        return address.is_some_and(|address| address.is_ok());
    }
    let name = absolute(name);
    let is_localhost = |name: &str| name.eq_ignore_ascii_case("localhost");
    match name.rsplit_once('.') {
        Some((label, top)) if is_localhost(top) => !label.is_empty(),
        _ => is_localhost(name) || name.parse::<IpAddr>().is_ok(),
    }
}

/// Returns a name without the final dot that marks it as absolute.
fn absolute(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
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
            "[2001:db8::1]",
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
            "localhost:evil",
            "localhost:80.evil.example",
            "127.0.0.1:80:evil",
            "[::1",
            "[::1]evil.example",
            "[::1]:80]",
            "[127.0.0.1]",
            "[localhost]",
        ] {
            assert!(!hosts.allows(Some(host)), "{host}");
        }
        assert!(hosts.allows(None));
        assert!(AllowedHosts::local().allows(Some("a.LOCALHOST:9000")));
        assert!(!AllowedHosts::local().allows(Some("files.example")));
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
