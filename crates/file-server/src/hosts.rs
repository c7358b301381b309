//! By which names the server may be called. Pure.
//!
//! A page from elsewhere can have its own name lead to this machine, and so have a browser here ask
//! this server in its name. A server for this machine alone answers to what cannot be such a name.

use std::net::{IpAddr, Ipv6Addr};

/// The names a server answers to.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// Otherwise it answers to all.
    pub(crate) is_checked: bool,
    /// Beside addresses and localhost.
    pub(crate) names: Vec<String>,
}

impl Hosts {
    /// Whether a request for this `host` or `host:port` is answered. Clients too old to say one are
    /// no browsers.
    pub(crate) fn allows(&self, host: Option<&str>) -> bool {
        let Some(host) = host.filter(|_| self.is_checked) else { return true };
        if let Some(rest) = host.strip_prefix('[') {
            let address = rest.split(']').next().unwrap_or_default();
            return address.parse::<Ipv6Addr>().is_ok();
        }
        let name = host.split(':').next().unwrap_or_default();
        // A dot at its end says that a name is whole.
        let whole = |name: &str| name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let name = &*whole(name);
        let is = |known: &str| name == whole(known);
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
    fn names_that_others_could_have_made_are_not_answered_to() {
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
