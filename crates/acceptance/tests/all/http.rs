//! The least HTTP client that can hold a server to its word: one connection, one request at a
//! time, no retries.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long a server may be silent before the test fails instead of hanging.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// An open connection.
pub(crate) struct Client {
    host: String,
    stream: BufReader<TcpStream>,
}

/// What the server said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Lines of the head, names in lower case.
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.0 == name).map(|header| header.1.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub(crate) fn connect(host: &str) -> Result<Self> {
        let stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.set_write_timeout(Some(SILENCE_MAX))?;
        Ok(Self { host: host.to_owned(), stream: BufReader::new(stream) })
    }

    /// Sends a request and reads the answer to its end.
    pub(crate) fn request(&mut self, method: &str, target: &str, body: &[u8]) -> Result<Answer> {
        let Self { host, stream } = self;
        let head = format!(
            "{method} {target} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.get_mut().write_all(&[head.as_bytes(), body].concat())?;

        let status = read_line(stream)?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(bad)?;
        let mut answer = Answer { status, headers: Vec::new(), body: Vec::new() };
        loop {
            let line = read_line(stream)?;
            let Some((name, value)) = line.split_once(':') else { break };
            answer.headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        if method == "HEAD" || matches!(status, 204 | 304) {
            return Ok(answer);
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            while let bytes @ 1.. = usize::from_str_radix(&read_line(stream)?, 16).or(Err(bad()))? {
                read_into(stream, bytes, &mut answer.body)?;
                read_line(stream)?;
            }
            read_line(stream)?;
        } else {
            let bytes = answer.header("content-length").and_then(|bytes| bytes.parse().ok());
            read_into(stream, bytes.ok_or_else(bad)?, &mut answer.body)?;
        }
        Ok(answer)
    }
}

fn bad() -> Error {
    Error::new(ErrorKind::InvalidData, "the server does not speak HTTP")
}

fn read_line(stream: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn read_into(stream: &mut impl Read, bytes: usize, body: &mut Vec<u8>) -> Result<()> {
    let start = body.len();
    body.resize(start + bytes, 0);
    stream.read_exact(&mut body[start..])
}
