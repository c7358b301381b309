//! Parses and writes version 2 of the PROXY header, which is binary: a signature, the version and
//! command, the address family, a length, the addresses, and type-length-value (TLV) fields.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::header::{
    Endpoints, HEADER_BYTES_MAX, InvalidHeader, Parsed, is_prefix_compatible, to_common_family,
};

pub(super) const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// The length of the part present in every header: signature (12 bytes), version and command (1),
/// family (1), and the length of the remaining header (2).
const FIXED_BYTES: usize = 16;
/// The length in bytes of a unix socket name, padded with zeros.
const UNIX_BYTES: usize = 108;

const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;
const UNIX_STREAM: u8 = 0x31;
/// Address families that are valid but carry no stream addresses: unspecified, UDP and unix
/// datagrams.
const OTHER_FAMILIES: [u8; 4] = [0x00, 0x12, 0x22, 0x32];

/// The TLV type of the CRC-32C of the header.
const CHECKSUM_FIELD: u8 = 0x03;

pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, InvalidHeader> {
    if !is_prefix_compatible(bytes, SIGNATURE) {
        return Err(InvalidHeader::NoSignature);
    }
    if bytes.get(12).is_some_and(|command| ![LOCAL, PROXY].contains(command)) {
        return Err(InvalidHeader::Binary);
    }
    let Some(fixed) = bytes.get(..FIXED_BYTES) else { return Ok(Parsed::Partial) };
    let header_bytes = FIXED_BYTES + usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if header_bytes > HEADER_BYTES_MAX {
        return Err(InvalidHeader::TooLong);
    }
    let Some(header) = bytes.get(..header_bytes) else { return Ok(Parsed::Partial) };
    let (endpoints, rest) = parse_endpoints(fixed[13], &header[FIXED_BYTES..])?;
    check_fields(header, rest)?;
    let endpoints = if fixed[12] == LOCAL { Endpoints::Unknown } else { endpoints };
    Ok(Parsed::Complete { endpoints, header_bytes })
}

/// Parses the addresses at the beginning of `rest`; returns the addresses and the TLV fields behind
/// them.
fn parse_endpoints(family: u8, rest: &[u8]) -> Result<(Endpoints, &[u8]), InvalidHeader> {
    let split = |at: usize| rest.split_at_checked(at).ok_or(InvalidHeader::Binary);
    let port = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
    match family {
        TCP4 => {
            let (block, rest) = split(12)?;
            let ip = |at: usize| {
                IpAddr::V4(Ipv4Addr::new(block[at], block[at + 1], block[at + 2], block[at + 3]))
            };
            let from = SocketAddr::new(ip(0), port(&block[8..]));
            Ok((Endpoints::Tcp { from, to: SocketAddr::new(ip(4), port(&block[10..])) }, rest))
        }
        TCP6 => {
            let (block, rest) = split(36)?;
            let ip = |at: usize| {
                let mut octets = [0; 16];
                octets.copy_from_slice(&block[at..at + 16]);
                IpAddr::V6(Ipv6Addr::from(octets))
            };
            let from = SocketAddr::new(ip(0), port(&block[32..]));
            Ok((Endpoints::Tcp { from, to: SocketAddr::new(ip(16), port(&block[34..])) }, rest))
        }
        UNIX_STREAM => {
            let (block, rest) = split(2 * UNIX_BYTES)?;
            let name = |bytes: &[u8]| {
                let filled = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                bytes[..filled].to_vec()
            };
            let (from, to) = block.split_at(UNIX_BYTES);
            Ok((Endpoints::Unix { from: name(from), to: name(to) }, rest))
        }
        // The whole rest of the header is skipped: the length of the addresses, and so the
        // beginning of the TLV fields, is not defined for all of these families.
        family if OTHER_FAMILIES.contains(&family) => Ok((Endpoints::Unknown, &[])),
        _ => Err(InvalidHeader::Binary),
    }
}

/// Validates the TLV fields, which fill the header behind the addresses, and the checksum if one of
/// the fields contains it.
fn check_fields(header: &[u8], mut rest: &[u8]) -> Result<(), InvalidHeader> {
    while !rest.is_empty() {
        let (&[kind, high, low], behind) = rest.split_first_chunk().ok_or(InvalidHeader::Binary)?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (value, after) = behind.split_at_checked(length).ok_or(InvalidHeader::Binary)?;
        if kind == CHECKSUM_FIELD {
            let stated: [u8; 4] = value.try_into().map_err(|_length| InvalidHeader::Binary)?;
            let before = &header[..header.len() - after.len() - length];
            // The checksum is computed over the whole header with the checksum's own value set to
            // zero.
            let crc = haul_crc::crc32c_append(haul_crc::crc32c(before), &[0; 4]);
            if haul_crc::crc32c_append(crc, after) != u32::from_be_bytes(stated) {
                return Err(InvalidHeader::Checksum);
            }
        }
        rest = after;
    }
    Ok(())
}

pub(super) fn encode(endpoints: &Endpoints) -> Vec<u8> {
    let (command, family, block) = match endpoints {
        Endpoints::Unknown => (LOCAL, 0, Vec::new()),
        Endpoints::Tcp { from, to } => {
            let (from, to) = to_common_family(*from, *to);
            let mut block = Vec::with_capacity(36);
            for ip in [from.ip(), to.ip()] {
                match ip {
                    IpAddr::V4(ip) => block.extend_from_slice(&ip.octets()),
                    IpAddr::V6(ip) => block.extend_from_slice(&ip.octets()),
                }
            }
            block.extend_from_slice(&from.port().to_be_bytes());
            block.extend_from_slice(&to.port().to_be_bytes());
            (PROXY, if from.is_ipv4() { TCP4 } else { TCP6 }, block)
        }
        Endpoints::Unix { from, to } => {
            let mut block = Vec::with_capacity(2 * UNIX_BYTES);
            for name in [from, to] {
                let end = block.len() + UNIX_BYTES;
                block.extend_from_slice(&name[..name.len().min(UNIX_BYTES)]);
                block.resize(end, 0);
            }
            (PROXY, UNIX_STREAM, block)
        }
    };
    let mut header = SIGNATURE.to_vec();
    header.extend_from_slice(&[command, family]);
    // The conversion cannot fail: the longest block, two unix names, has 216 bytes.
    header.extend_from_slice(&u16::try_from(block.len()).unwrap_or(u16::MAX).to_be_bytes());
    header.extend_from_slice(&block);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [SIGNATURE.as_slice(), &[command, family], &length, rest].concat()
    }

    const BLOCK: [u8; 12] = [192, 0, 2, 7, 198, 51, 100, 1, 0x9c, 0x40, 1, 0xbb];

    fn field(kind: u8, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(value.len()).unwrap().to_be_bytes();
        [&[kind], length.as_slice(), value].concat()
    }

    #[test]
    fn commands_and_families_are_parsed() {
        let tcp = Endpoints::Tcp {
            from: "192.0.2.7:40000".parse().unwrap(),
            to: "198.51.100.1:443".parse().unwrap(),
        };
        let more = [BLOCK.as_slice(), &field(0x04, b"padding"), &field(0xea, b"")].concat();
        for (bytes, expected) in [
            (header(PROXY, TCP4, &BLOCK), tcp.clone()),
            (header(PROXY, TCP4, &more), tcp),
            (header(LOCAL, TCP4, &BLOCK), Endpoints::Unknown),
            (header(LOCAL, 0, b""), Endpoints::Unknown),
            (header(PROXY, 0, b"anything"), Endpoints::Unknown),
            (header(PROXY, 0x12, &BLOCK), Endpoints::Unknown),
        ] {
            let whole = Parsed::Complete { endpoints: expected, header_bytes: bytes.len() };
            assert_eq!(parse(&bytes), Ok(whole), "{bytes:?}");
        }
    }

    #[test]
    fn invalid_headers_are_refused() {
        let with = |rest: &[u8]| [BLOCK.as_slice(), rest].concat();
        for (bytes, why) in [
            (header(0x11, TCP4, &BLOCK), InvalidHeader::Binary),
            (header(0x22, TCP4, &BLOCK), InvalidHeader::Binary),
            (header(PROXY, 0x13, &BLOCK), InvalidHeader::Binary),
            (header(PROXY, 0x41, &BLOCK), InvalidHeader::Binary),
            (header(PROXY, TCP4, &BLOCK[..11]), InvalidHeader::Binary),
            (header(PROXY, TCP6, &BLOCK), InvalidHeader::Binary),
            (header(PROXY, UNIX_STREAM, &[0; 215]), InvalidHeader::Binary),
            (header(PROXY, TCP4, &with(&[4, 0])), InvalidHeader::Binary),
            (header(PROXY, TCP4, &with(&[4, 0, 2, 1])), InvalidHeader::Binary),
            (header(PROXY, TCP4, &with(&field(CHECKSUM_FIELD, b"abc"))), InvalidHeader::Binary),
            (header(PROXY, TCP4, &with(&field(CHECKSUM_FIELD, b"abcd"))), InvalidHeader::Checksum),
            (header(PROXY, TCP4, &[0; HEADER_BYTES_MAX]), InvalidHeader::TooLong),
            (b"\r\n\r\n\0\r\nQUIX\n".to_vec(), InvalidHeader::NoSignature),
        ] {
            assert_eq!(parse(&bytes), Err(why), "{bytes:?}");
        }
    }

    #[test]
    fn checksum_covers_the_header_with_its_field_zeroed() {
        let fields = [BLOCK.as_slice(), &field(CHECKSUM_FIELD, &[0; 4]), &field(4, b"x")].concat();
        let mut bytes = header(PROXY, TCP4, &fields);
        let crc = haul_crc::crc32c(&bytes);
        let at = FIXED_BYTES + BLOCK.len() + 3;
        bytes[at..at + 4].copy_from_slice(&crc.to_be_bytes());
        assert!(matches!(parse(&bytes), Ok(Parsed::Complete { .. })));
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert_eq!(parse(&bytes), Err(InvalidHeader::Checksum));
    }
}
