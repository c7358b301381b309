//! `haul health`: asks a server whether it is well, for health checks of containers and scripts.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::args::HealthArgs;
use crate::output::print_line;
use crate::report::{Exit, Failure, OrFail, Result};

/// The longest response that is read.
const RESPONSE_BYTES_MAX: u64 = 64 << 10;

/// Fails unless the server answers with 200.
pub(crate) fn run(args: &HealthArgs) -> Result {
    let (address, path) = parse(&args.url)?;
    let cannot = || format!("{} is not healthy", args.url);
    let response = ask(&address, &path, args.timeout).or_fail(cannot)?;
    let (status, text) = parsed(&response).ok_or_else(|| {
        Failure::new(cannot()).advise("the response is not HTTP: is this the admin address?")
    })?;
    let is_healthy = status == 200;
    if args.json {
        let lines: Vec<_> = text.lines().collect();
        print_line(json!({ "healthy": is_healthy, "status": status, "lines": lines }))?;
    } else if is_healthy {
        print_line(text.trim_end())?;
    }
    match is_healthy {
        true => Ok(()),
        false if args.json => Err(Failure::reported()),
        false => Err(Failure::new(format!("{}: {status}: {}", cannot(), text.trim_end()))),
    }
}

/// Returns the address and the path of a URL.
fn parse(url: &str) -> Result<(String, String)> {
    let invalid = |why: &str| Failure::new(format!("invalid URL {url}: {why}")).exit(Exit::Usage);
    let rest = match url.split_once("://") {
        Some(("http", rest)) => rest,
        Some(_) => return Err(invalid("only http:// is supported")),
        None => url,
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_valid = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if host.is_empty() || !is_valid(rest) {
        return Err(invalid("use http://HOST:PORT"));
    }
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port { host.to_owned() } else { format!("{host}:80") };
    let path = if matches!(path, "" | "/") { "/health" } else { path };
    Ok((address, path.to_owned()))
}

/// Sends one request, and returns the whole response.
fn ask(address: &str, path: &str, timeout: Duration) -> io::Result<Vec<u8>> {
    let end = Instant::now() + timeout;
    let left = || end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let mut stream = Err(io::ErrorKind::NotFound.into());
    for address in address.to_socket_addrs()? {
        stream = TcpStream::connect_timeout(&address, left());
        if stream.is_ok() {
            break;
        }
    }
    let mut stream = stream?;
    stream.set_write_timeout(Some(left()))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut response = Vec::new();
    let mut piece = [0; 4096];
    while (response.len() as u64) < RESPONSE_BYTES_MAX {
        if Instant::now() >= end {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left()))?;
        match stream.read(&mut piece)? {
            0 => break,
            bytes => response.extend_from_slice(&piece[..bytes]),
        }
    }
    Ok(response)
}

/// Returns the status and the body of a response.
fn parsed(response: &[u8]) -> Option<(u16, String)> {
    let text = String::from_utf8_lossy(response);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some((status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_has_an_address_and_a_path() {
        let parsed = |url: &str| parse(url).ok();
        let expected = |address: &str, path: &str| Some((address.to_owned(), path.to_owned()));
        assert_eq!(parsed("http://localhost:9001"), expected("localhost:9001", "/health"));
        assert_eq!(parsed("http://[::1]:9001/"), expected("[::1]:9001", "/health"));
        assert_eq!(parsed("haul/ready"), expected("haul:80", "/ready"));
        for url in ["https://a", "http://", "/health", "http://a b", "http://a\r\n"] {
            assert_eq!(parsed(url), None, "{url:?}");
        }
    }
}
