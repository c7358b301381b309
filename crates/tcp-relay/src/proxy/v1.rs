//! Parses and writes version 1 of the PROXY header, one line of text that ends with CRLF:
//!
//! `PROXY TCP4 192.0.2.7 198.51.100.1 40000 443`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::header::{Endpoints, InvalidHeader, Parsed, is_prefix_compatible, to_common_family};

const BEGIN: &[u8] = b"PROXY ";
/// The length in bytes of the longest line that the protocol allows, CRLF included.
const LINE_BYTES_MAX: usize = 107;

pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, InvalidHeader> {
    if !is_prefix_compatible(bytes, BEGIN) {
        return Err(InvalidHeader::NoSignature);
    }
    let window = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(end) = window.iter().position(|byte| *byte == b'\n') else {
        let is_too_long = window.len() == LINE_BYTES_MAX;
        return if is_too_long { Err(InvalidHeader::TooLong) } else { Ok(Parsed::Partial) };
    };
    // A line that ends with LF only is invalid, even if CRLF follows later: the result must not
    // depend on how many bytes were received.
    let line = window[..end].strip_suffix(b"\r").ok_or(InvalidHeader::Line)?;
    let rest = line.get(BEGIN.len()..).ok_or(InvalidHeader::Line)?;
    let endpoints = parse_line(rest).ok_or(InvalidHeader::Line)?;
    Ok(Parsed::Complete { endpoints, header_bytes: end + 1 })
}

/// Parses the part of a line after `PROXY `.
fn parse_line(rest: &[u8]) -> Option<Endpoints> {
    let rest = std::str::from_utf8(rest).ok()?;
    // The protocol requires receivers to ignore everything after `UNKNOWN`.
    if rest == "UNKNOWN" || rest.starts_with("UNKNOWN ") {
        return Some(Endpoints::Unknown);
    }
    let mut words = rest.split(' ');
    let family = words.next()?;
    let (from, to) = (address(family, words.next()?)?, address(family, words.next()?)?);
    let (from_port, to_port) = (port(words.next()?)?, port(words.next()?)?);
    words.next().is_none().then(|| Endpoints::Tcp {
        from: SocketAddr::new(from, from_port),
        to: SocketAddr::new(to, to_port),
    })
}

fn address(family: &str, word: &str) -> Option<IpAddr> {
    match family {
        "TCP4" => word.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        "TCP6" => word.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        _ => None,
    }
}

fn port(word: &str) -> Option<u16> {
    let is_plain = word == "0" || word.bytes().all(|byte| byte.is_ascii_digit());
    let has_zeros = word.len() > 1 && word.starts_with('0');
    if is_plain && !has_zeros { word.parse().ok() } else { None }
}

pub(super) fn encode(endpoints: &Endpoints) -> Vec<u8> {
    match *endpoints {
        Endpoints::Tcp { from, to } => {
            let (from, to) = to_common_family(from, to);
            let family = if from.is_ipv4() { 4 } else { 6 };
            let (a, b, a_port, b_port) = (from.ip(), to.ip(), from.port(), to.port());
            format!("PROXY TCP{family} {a} {b} {a_port} {b_port}\r\n").into_bytes()
        }
        Endpoints::Unknown | Endpoints::Unix { .. } => b"PROXY UNKNOWN\r\n".to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_lines_are_parsed() {
        for (line, from) in [
            ("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255:65535"),
            ("PROXY TCP6 ::1 2001:db8::2 0 443\r\n", "[::1]:0"),
            ("PROXY TCP6 ::ffff:192.0.2.7 ::2 9 443\r\n", "[::ffff:192.0.2.7]:9"),
        ] {
            let Ok(Parsed::Complete {
                endpoints: Endpoints::Tcp { from: found, .. },
                header_bytes,
            }) = parse(line.as_bytes())
            else {
                panic!("{line}")
            };
            assert_eq!((found.to_string().as_str(), header_bytes), (from, line.len()));
        }
        let longest = format!("PROXY UNKNOWN {0} {0} 65535 65535\r\n", "ffff:".repeat(7) + "ffff");
        assert_eq!(longest.len(), LINE_BYTES_MAX);
        let whole =
            Parsed::Complete { endpoints: Endpoints::Unknown, header_bytes: LINE_BYTES_MAX };
        assert_eq!(parse(longest.as_bytes()), Ok(whole));
    }

    #[test]
    fn invalid_lines_are_refused() {
        for line in [
            "PROXY TCP4 192.0.2.7 192.0.2.8 1\r\n",
            "PROXY TCP4 192.0.2.7 192.0.2.8 1 2 3\r\n",
            "PROXY TCP4 192.0.2.7 192.0.2.8 1 2 \r\n",
            "PROXY  TCP4 192.0.2.7 192.0.2.8 1 2\r\n",
            "PROXY TCP4 192.0.2.7  192.0.2.8 1 2\r\n",
            "PROXY TCP4\t192.0.2.7 192.0.2.8 1 2\r\n",
            "PROXY TCP4 ::1 ::2 1 2\r\n",
            "PROXY TCP6 192.0.2.7 192.0.2.8 1 2\r\n",
            "PROXY TCP4 192.0.2.07 192.0.2.8 1 2\r\n",
            "PROXY TCP4 192.0.2.7 192.0.2.8 01 2\r\n",
            "PROXY TCP4 192.0.2.7 192.0.2.8 +1 2\r\n",
            "PROXY TCP4 192.0.2.7 192.0.2.8 65536 2\r\n",
            "PROXY UDP4 192.0.2.7 192.0.2.8 1 2\r\n",
            "PROXY UNKNOWNS\r\n",
            "PROXY \r\n",
            "PROXY TCP4 192.0.2.7 192.0.2.8 1 2\n",
            "PROXY TCP4 192.0.2.7 192.0.2.8 1 2\n\r\n",
            "PROXY UNKNOWN \n\r\n",
        ] {
            assert_eq!(parse(line.as_bytes()), Err(InvalidHeader::Line), "{line:?}");
        }
        let with_lf = b"PROXY UNKNOWN a\nb\r\n";
        for received in 0..=with_lf.len() {
            let is_refused = parse(&with_lf[..received]).is_err();
            assert_eq!(is_refused, received > 15, "{received} bytes");
        }
        for line in ["GET / HTTP/1.1\r\n", "proxy TCP4", "PROXYTCP4", "\n", "PX"] {
            assert_eq!(parse(line.as_bytes()), Err(InvalidHeader::NoSignature), "{line:?}");
        }
        let long = [BEGIN, &[b'a'; 101]].concat();
        assert_eq!(parse(&long[..LINE_BYTES_MAX - 1]), Ok(Parsed::Partial));
        assert_eq!(parse(&long), Err(InvalidHeader::TooLong));
    }
}
