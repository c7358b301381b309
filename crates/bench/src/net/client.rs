//! Sends single requests, to store objects and to compare files byte by byte. Load comes from wrk.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use haul_measure::{Error, Result};

/// The time after which a response without another byte has failed.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const CHUNK_BYTES: usize = 256 << 10;

/// A request in HTTP/1.0: the server closes the connection after the response, which has no chunks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) body: &'a [u8],
}

impl<'a> Request<'a> {
    pub(crate) fn get(address: SocketAddr, target: &'a str) -> Self {
        Self { address, method: "GET", target, body: &[] }
    }

    pub(crate) fn put(address: SocketAddr, target: &'a str, body: &'a [u8]) -> Self {
        Self { address, method: "PUT", target, body }
    }

    /// Sends the request; returns the body of the response.
    ///
    /// # Errors
    /// [`Error::Missing`] if the status is not 200.
    pub(crate) fn send(&self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        let read = self.exchange().and_then(|mut response| response.read_to_end(&mut body));
        read.map_err(Error::other(self.what())).map(|_| body)
    }

    /// Downloads the body of the response, and compares it with `file` if there is one. Returns its
    /// length.
    pub(crate) fn download(&self, file: Option<&Path>) -> Result<u64> {
        let download = || -> io::Result<u64> {
            let mut file = file.map(File::open).transpose()?;
            let mut response = self.exchange()?;
            let (mut chunk, mut expected) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
            let mut bytes = 0;
            loop {
                let count = response.read(&mut chunk)?;
                if let Some(file) = &mut file {
                    file.read_exact(&mut expected[..count])?;
                    let is_short = count == 0 && file.read(&mut expected[..1])? > 0;
                    if is_short || chunk[..count] != expected[..count] {
                        let what = format!("wrong or missing bytes after {bytes}");
                        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                    }
                }
                if count == 0 {
                    return Ok(bytes);
                }
                bytes += count as u64;
            }
        };
        download().map_err(Error::other(self.what()))
    }

    fn what(&self) -> String {
        format!("{} {} from {}", self.method, self.target, self.address)
    }

    /// Sends the request, and reads the head of the response.
    fn exchange(&self) -> io::Result<BufReader<TcpStream>> {
        let Self { address, method, target, body } = self;
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        let length = match *method {
            "PUT" => format!("Content-Length: {}\r\n", body.len()),
            _ => String::new(),
        };
        let head = format!("{method} {target} HTTP/1.0\r\nHost: {address}\r\n{length}\r\n");
        stream.write_all(&[head.as_bytes(), body].concat())?;
        let mut response = BufReader::with_capacity(CHUNK_BYTES, stream);
        let mut line = String::new();
        response.read_line(&mut line)?;
        let is_success = line.split(' ').nth(1) == Some("200");
        let mut field = String::new();
        while response.read_line(&mut field)? > 2 {
            field.clear();
        }
        if is_success { Ok(response) } else { Err(io::Error::other(line.trim().to_owned())) }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Serves one response.
    fn serve(response: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(&stream);
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap() > 2 {}
            (&stream).write_all(response.as_bytes()).unwrap();
        });
        address
    }

    #[test]
    fn wrong_missing_and_additional_bytes_are_noticed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "content").unwrap();
        for (response, expected) in [
            ("HTTP/1.1 200 OK\r\nX: y\r\n\r\ncontent", Some(7)),
            ("HTTP/1.1 200 OK\r\n\r\ncontenT", None),
            ("HTTP/1.1 200 OK\r\n\r\nconten", None),
            ("HTTP/1.1 200 OK\r\n\r\ncontent.", None),
            ("HTTP/1.1 404 Not Found\r\n\r\ncontent", None),
        ] {
            let downloaded = Request::get(serve(response), "/a").download(Some(file.path()));
            assert_eq!(downloaded.ok(), expected, "{response}");
        }
        let body = Request::put(serve("HTTP/1.0 200 OK\r\n\r\nx"), "/a", b"1").send();
        assert_eq!(body.unwrap(), b"x");
    }
}
