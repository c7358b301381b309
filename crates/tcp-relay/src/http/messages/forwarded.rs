//! Writes the header fields that send the client's address to targets. Performs no I/O.

use std::net::IpAddr;

use haul_http1::HeadWriter;

/// The values of `Forwarded` \[RFC7239\] and `X-Forwarded-For` for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forwarded {
    /// The element of `Forwarded`, such as `for=192.0.2.1;proto=http`.
    element: Box<str>,
    /// The element of `X-Forwarded-For`, such as `192.0.2.1`; `None` for a client on a unix socket.
    address: Option<Box<str>>,
    is_tls: bool,
}

impl Forwarded {
    /// Creates the values for a client with this address; `None` for a client on a unix socket.
    pub(crate) fn new(client: Option<IpAddr>, is_tls: bool) -> Self {
        let proto = if is_tls { "https" } else { "http" };
        let address = client.map(|client| client.to_canonical());
        let element = match address {
            Some(address) if address.is_ipv6() => format!("for=\"[{address}]\";proto={proto}"),
            Some(address) => format!("for={address};proto={proto}"),
            None => format!("for=unknown;proto={proto}"),
        };
        let address = address.map(|address| address.to_string().into());
        Self { element: element.into(), address, is_tls }
    }

    /// Writes the fields; `host` is the host named by the request.
    pub(crate) fn write(&self, head: &mut HeadWriter<'_>, host: Option<&str>) {
        let element = self.element.as_bytes();
        match host {
            // A validated host contains no quote and no backslash, so it needs no escaping.
            Some(host) => {
                head.field_parts("Forwarded", &[element, b";host=\"", host.as_bytes(), b"\""])
            }
            None => head.field("Forwarded", element),
        };
        if let Some(address) = &self.address {
            head.field("X-Forwarded-For", address.as_bytes());
        }
        if self.is_tls {
            head.field("X-Forwarded-Proto", b"https");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_address_is_written_in_both_fields() {
        for (client, host, expected) in [
            (Some("192.0.2.7"), Some("a:80"), "for=192.0.2.7;proto=http;host=\"a:80\"|192.0.2.7"),
            (Some("2001:db8::1"), None, "for=\"[2001:db8::1]\";proto=http|2001:db8::1"),
            (Some("::ffff:192.0.2.7"), None, "for=192.0.2.7;proto=http|192.0.2.7"),
            (None, None, "for=unknown;proto=http"),
        ] {
            let mut out = Vec::new();
            let mut head = HeadWriter::request(&mut out, "GET", &["/"]);
            Forwarded::new(client.map(|client| client.parse().unwrap()), false)
                .write(&mut head, host);
            head.end().unwrap();
            let head = String::from_utf8(out).unwrap();
            let values =
                head.trim_end().lines().skip(1).map(|line| line.split_once(": ").unwrap().1);
            assert_eq!(values.collect::<Vec<_>>().join("|"), expected);
        }
    }
}
