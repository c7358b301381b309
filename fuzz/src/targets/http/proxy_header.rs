//! Parses a header of the PROXY protocol, whole and in parts, and encodes its addresses again. The
//! checksum of a header of version 2 is also set.

use crate::proxy::{has_right_checksums, set_checksum};
use haul_tcp_relay::proxy::{Endpoints, HEADER_BYTES_MAX, Parsed, Version, encode, parse};

/// Encodes addresses and parses the header.
fn round_trip(version: Version, endpoints: &Endpoints) -> Endpoints {
    let bytes = encode(version, endpoints);
    match parse(&bytes) {
        Ok(Parsed::Complete { endpoints, header_bytes }) if header_bytes == bytes.len() => {
            endpoints
        }
        other => panic!("{endpoints:?} is encoded as {bytes:?}: {other:?}"),
    }
}

fn check(bytes: &[u8]) {
    let whole = parse(bytes);
    for cut in 0..bytes.len().min(600) {
        match (parse(&bytes[..cut]), &whole) {
            (Ok(Parsed::Partial), Ok(Parsed::Complete { header_bytes, .. })) => {
                assert!(cut < *header_bytes, "{cut} bytes are a header");
            }
            (Ok(Parsed::Partial), _) | (Err(_), Err(_)) => {}
            (some, whole) => assert_eq!(some, *whole, "{cut} bytes"),
        }
    }
    let Ok(Parsed::Complete { endpoints, header_bytes }) = whole else { return };
    assert!(header_bytes <= bytes.len().min(HEADER_BYTES_MAX));
    assert!(has_right_checksums(&bytes[..header_bytes]), "a wrong checksum is accepted");
    for version in [Version::V1, Version::V2] {
        // IPv4 addresses that are mapped to IPv6 become IPv4 addresses.
        let once = round_trip(version, &endpoints);
        assert_eq!(round_trip(version, &once), once);
        let client = endpoints.client().map(|client| client.to_canonical());
        assert_eq!(once.client().map(|client| client.to_canonical()), client);
        if version == Version::V2 && matches!(endpoints, Endpoints::Unix { .. }) {
            assert_eq!(once, endpoints);
        }
    }
}

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    check(data);
    let mut bytes = data.to_vec();
    set_checksum(&mut bytes);
    check(&bytes);
}
