//! Version 1: `PROXY TCP4 192.0.2.7 198.51.100.1 40000 443`, and the end of a line.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{BadHeader, Ends, Read, begins_as, one_family};

const BEGIN: &[u8] = b"PROXY ";
/// The longest line the protocol knows, its end included.
const LINE_BYTES_MAX: usize = 107;

pub(super) fn read(bytes: &[u8]) -> Result<Read, BadHeader> {
    if !begins_as(bytes, BEGIN) {
        return Err(BadHeader::NoSignature);
    }
    let window = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(end) = window.windows(2).position(|pair| pair == b"\r\n") else {
        let is_line = !window.contains(&b'\n');
        return match (is_line, window.len() < LINE_BYTES_MAX) {
            (true, true) => Ok(Read::Partial),
            (true, false) => Err(BadHeader::TooLong),
            (false, _) => Err(BadHeader::Line),
        };
    };
    let ends = line(&window[BEGIN.len().min(end)..end]).ok_or(BadHeader::Line)?;
    Ok(Read::Whole { ends, header_bytes: end + 2 })
}

/// What a line says after its first word.
fn line(rest: &[u8]) -> Option<Ends> {
    let rest = std::str::from_utf8(rest).ok()?;
    // Whatever follows this word is not looked at.
    if rest == "UNKNOWN" || rest.starts_with("UNKNOWN ") {
        return Some(Ends::Unknown);
    }
    let mut words = rest.split(' ');
    let family = words.next()?;
    let (from, to) = (address(family, words.next()?)?, address(family, words.next()?)?);
    let (from_port, to_port) = (port(words.next()?)?, port(words.next()?)?);
    words.next().is_none().then(|| Ends::Tcp {
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

pub(super) fn write(ends: &Ends) -> Vec<u8> {
    match *ends {
        Ends::Tcp { from, to } => {
            let (from, to) = one_family(from, to);
            let family = if from.is_ipv4() { 4 } else { 6 };
            let (a, b, a_port, b_port) = (from.ip(), to.ip(), from.port(), to.port());
            format!("PROXY TCP{family} {a} {b} {a_port} {b_port}\r\n").into_bytes()
        }
        Ends::Unknown | Ends::Unix { .. } => b"PROXY UNKNOWN\r\n".to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_protocol_are_read() {
        for (line, from) in [
            ("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255:65535"),
            ("PROXY TCP6 ::1 2001:db8::2 0 443\r\n", "[::1]:0"),
            ("PROXY TCP6 ::ffff:192.0.2.7 ::2 9 443\r\n", "[::ffff:192.0.2.7]:9"),
        ] {
            let Ok(Read::Whole { ends: Ends::Tcp { from: found, .. }, header_bytes }) =
                read(line.as_bytes())
            else {
                panic!("{line}")
            };
            assert_eq!((found.to_string().as_str(), header_bytes), (from, line.len()));
        }
        let longest = format!("PROXY UNKNOWN {0} {0} 65535 65535\r\n", "ffff:".repeat(7) + "ffff");
        assert_eq!(longest.len(), LINE_BYTES_MAX);
        let whole = Read::Whole { ends: Ends::Unknown, header_bytes: LINE_BYTES_MAX };
        assert_eq!(read(longest.as_bytes()), Ok(whole));
    }

    #[test]
    fn what_is_not_exactly_such_a_line_is_refused() {
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
        ] {
            assert_eq!(read(line.as_bytes()), Err(BadHeader::Line), "{line:?}");
        }
        for line in ["GET / HTTP/1.1\r\n", "proxy TCP4", "PROXYTCP4", "\n", "PX"] {
            assert_eq!(read(line.as_bytes()), Err(BadHeader::NoSignature), "{line:?}");
        }
        let long = [BEGIN, &[b'a'; 101]].concat();
        assert_eq!(read(&long[..LINE_BYTES_MAX - 1]), Ok(Read::Partial));
        assert_eq!(read(&long), Err(BadHeader::TooLong));
    }
}
