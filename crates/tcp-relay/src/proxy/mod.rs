//! Parses and writes headers of the PROXY protocol, in which a proxy sends the client's addresses
//! before the client's first byte. Performs no I/O.
//!
//! The configuration either requires a header or expects none; the parser never guesses whether one
//! is present \[ProxyProtocol\].

mod header;
mod trust;
mod v1;
mod v2;

pub use header::{Endpoints, HEADER_BYTES_MAX, InvalidHeader, Parsed, Version};
pub use trust::{InvalidNetwork, Network, Trusted};

/// Parses a header of either version at the beginning of `bytes`.
///
/// # Errors
/// Returns [`InvalidHeader`] as soon as no continuation of `bytes` can be a header.
pub fn parse(bytes: &[u8]) -> Result<Parsed, InvalidHeader> {
    match bytes.first() {
        None => Ok(Parsed::Partial),
        Some(&first) if first == v2::SIGNATURE[0] => v2::parse(bytes),
        Some(_) => v1::parse(bytes),
    }
}

/// Returns a header with these addresses.
pub fn encode(version: Version, endpoints: &Endpoints) -> Vec<u8> {
    match version {
        Version::V1 => v1::encode(endpoints),
        Version::V2 => v2::encode(endpoints),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tcp(from: &str, to: &str) -> Endpoints {
        Endpoints::Tcp { from: from.parse().unwrap(), to: to.parse().unwrap() }
    }

    fn samples() -> Vec<Endpoints> {
        let unix =
            |from: &[u8], to: &[u8]| Endpoints::Unix { from: from.to_vec(), to: to.to_vec() };
        vec![
            Endpoints::Unknown,
            tcp("192.0.2.7:40000", "198.51.100.1:443"),
            tcp("[2001:db8::1]:1", "[2001:db8::2]:65535"),
            unix(b"", b"/run/haul.sock"),
        ]
    }

    #[test]
    fn encoded_header_is_parsed_at_every_cut() {
        for version in [Version::V1, Version::V2] {
            for endpoints in samples() {
                let mut bytes = encode(version, &endpoints);
                let header_bytes = bytes.len();
                bytes.extend_from_slice(b"\r\nPROXY");
                for cut in 0..=bytes.len() {
                    let expected = match (cut >= header_bytes, version, &endpoints) {
                        (false, ..) => Parsed::Partial,
                        // The header of version 1 has no form for unix sockets.
                        (true, Version::V1, Endpoints::Unix { .. }) => {
                            Parsed::Complete { endpoints: Endpoints::Unknown, header_bytes }
                        }
                        (true, ..) => {
                            Parsed::Complete { endpoints: endpoints.clone(), header_bytes }
                        }
                    };
                    assert_eq!(
                        parse(&bytes[..cut]),
                        Ok(expected),
                        "{version:?} {endpoints:?} at {cut}"
                    );
                }
            }
        }
    }

    #[test]
    fn mixed_address_families_are_encoded_as_ipv6() {
        let mixed = tcp("192.0.2.7:40000", "[2001:db8::2]:443");
        for version in [Version::V1, Version::V2] {
            let Ok(Parsed::Complete { endpoints, .. }) = parse(&encode(version, &mixed)) else {
                panic!("{version:?} is not parsed back")
            };
            assert_eq!(
                endpoints,
                tcp("[::ffff:192.0.2.7]:40000", "[2001:db8::2]:443"),
                "{version:?}"
            );
        }
        let line = encode(Version::V1, &tcp("[::ffff:192.0.2.7]:1", "[::ffff:192.0.2.8]:2"));
        assert_eq!(line, b"PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n", "a dual-stack socket");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut signed = v2::SIGNATURE.to_vec();
            signed.extend_from_slice(&bytes);
            for bytes in [bytes, signed] {
                if let Ok(Parsed::Complete { header_bytes, .. }) = parse(&bytes) {
                    prop_assert!(header_bytes <= bytes.len());
                }
            }
        }

        #[test]
        fn changed_byte_never_lengthens_the_header(
            at in 0_usize..60, value in any::<u8>(), which in 0_usize..4, second in any::<bool>(),
        ) {
            let version = if second { Version::V2 } else { Version::V1 };
            let mut bytes = encode(version, &samples()[which]);
            let length = bytes.len();
            if at < length && !(14..16).contains(&at) {
                bytes[at] = value;
                if let Ok(Parsed::Complete { header_bytes, .. }) = parse(&bytes) {
                    prop_assert!(header_bytes <= length);
                }
            }
        }
    }
}
