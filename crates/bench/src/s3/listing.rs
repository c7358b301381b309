//! Sends single requests, and lists a bucket page by page.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::net::http::s3::Requests;
use crate::net::socket::invalid;
use haul_measure::{Error, Result};

/// The time after which a response without another byte has failed.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// A response as text. Names and tokens of the benchmark are ASCII.
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: String,
}

/// Sends a request after whose response the server closes the connection.
pub(super) fn send(address: SocketAddr, request: &[u8]) -> Result<Response> {
    let what = || format!("send a request to {address}");
    let exchange = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.write_all(request)?;
        let mut response = Vec::new();
        stream.read_to_end(&mut response)?;
        Ok(response)
    };
    let response = exchange().map_err(Error::other(what()))?;
    parse(&String::from_utf8_lossy(&response))
        .ok_or_else(|| invalid(format!("{address} sent no valid response")))
}

fn parse(response: &str) -> Option<Response> {
    let (head, body) = response.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Response { status, body: body.to_owned() })
}

/// Lists all keys of a bucket, and calls `page` after each page. Returns the number of keys.
pub(super) fn list(
    (requests, address): (&Requests, SocketAddr),
    bucket: &str,
    mut page: impl FnMut() -> Result<()>,
) -> Result<u64> {
    let path = format!("/{bucket}");
    let (mut keys, mut query) = (0, query(None));
    loop {
        let response = send(address, &requests.get_once(&path, &query))?;
        if response.status != 200 {
            let Response { status, body } = response;
            return Err(invalid(format!("a listing has the status {status}: {body}")));
        }
        keys += response.body.matches("<Key>").count() as u64;
        page()?;
        let Some(token) = element(&response.body, "NextContinuationToken") else { return Ok(keys) };
        query = self::query(Some(token));
    }
}

/// Returns the query for the page after a token.
fn query(token: Option<&str>) -> String {
    let token = token.map(|token| format!("continuation-token={}&", encode(token)));
    format!("{}list-type=2&max-keys=1000", token.unwrap_or_default())
}

/// Returns the text of the first element with this name.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once("</").map(|(text, _)| text).filter(|text| !text.is_empty())
}

fn encode(text: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_of_a_page_is_in_the_next_query() {
        let page = "<Key>a</Key><NextContinuationToken>x/y=</NextContinuationToken>";
        let query = query(element(page, "NextContinuationToken"));
        assert_eq!(query, "continuation-token=x%2Fy%3D&list-type=2&max-keys=1000");
        assert_eq!(element("<NextContinuationToken></NextContinuationToken>", "Next"), None);
    }

    #[test]
    fn response_has_a_status_and_a_body() {
        let response = parse("HTTP/1.0 404 Not Found\r\nX: y\r\n\r\n<Error/>").unwrap();
        assert_eq!((response.status, &*response.body), (404, "<Error/>"));
        assert!(parse("HTTP/1.0 200 OK\r\n").is_none());
    }
}
