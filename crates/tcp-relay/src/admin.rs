//! The admin address: `/metrics` and `/health`, told by one thread, one client after the other.
//! Nothing can be changed here.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// How long a client may take for everything.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(2);
const HEAD_BYTES_MAX: usize = 8 << 10;

/// What can be told.
pub(crate) trait Told: Send + 'static {
    /// The text of `/metrics`.
    fn metrics(&self) -> String;
    /// Why connections cannot be served; `None` when they can.
    fn trouble(&self) -> Option<&'static str>;
}

/// The thread; dropped, it ends.
#[derive(Debug)]
pub(crate) struct Admin {
    address: SocketAddr,
    _alive: UnixStream,
}

impl Admin {
    pub(crate) fn start(address: SocketAddr, told: impl Told) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (alive, end) = UnixStream::pair()?;
        thread::Builder::new().name("admin".into()).spawn(move || serve(&listener, &end, &told))?;
        Ok(Self { address, _alive: alive })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Answers until the other side of `end` is gone.
fn serve(listener: &TcpListener, end: &UnixStream, told: &impl Told) {
    loop {
        let mut polls =
            [PollFd::new(listener, PollFlags::IN), PollFd::new(end, PollFlags::empty())];
        match poll(&mut polls, None) {
            Ok(_) | Err(Errno::INTR) if polls[1].revents().is_empty() => {}
            _ => return,
        }
        // Whoever leaves early is answered by nobody.
        match listener.accept() {
            Ok((client, _)) => answer(client, told).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // No descriptors, mostly: others may end meanwhile.
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn answer(mut client: TcpStream, told: &impl Told) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_write_timeout(Some(CLIENT_TIME_MAX))?;
    let head = head(&mut client)?;
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let (status, body) = response(line, told);
    let sent_body = if line.starts_with(b"HEAD ") { "" } else { &body };
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{sent_body}",
        body.len()
    );
    client.write_all(response.as_bytes())
}

/// The head of a request, in time.
fn head(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + CLIENT_TIME_MAX;
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() > HEAD_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => head.extend_from_slice(&buffer[..bytes]),
        }
    }
    Ok(head)
}

/// The status and the body for the first line of a request.
fn response(line: &[u8], told: &impl Told) -> (&'static str, String) {
    let line = String::from_utf8_lossy(line);
    let words: Vec<_> = line.split(' ').collect();
    let [method, path, "HTTP/1.1" | "HTTP/1.0"] = words[..] else {
        return ("400 Bad Request", "This is no request of HTTP/1.1\n".to_owned());
    };
    if !matches!(method, "GET" | "HEAD") {
        return ("405 Method Not Allowed", "Only GET and HEAD\n".to_owned());
    }
    match (path, told.trouble()) {
        ("/metrics", _) => ("200 OK", told.metrics()),
        ("/health", None) => ("200 OK", "ok\n".to_owned()),
        ("/health", Some(why)) => ("503 Service Unavailable", format!("{why}\n")),
        _ => ("404 Not Found", "There are /metrics and /health\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(Option<&'static str>);

    impl Told for Fixed {
        fn metrics(&self) -> String {
            "a 1\n".to_owned()
        }
        fn trouble(&self) -> Option<&'static str> {
            self.0
        }
    }

    #[test]
    fn each_line_has_its_answer() {
        for (line, trouble, status, body) in [
            ("GET /metrics HTTP/1.1", None, "200 OK", "a 1\n"),
            ("HEAD /metrics HTTP/1.0", Some("x"), "200 OK", "a 1\n"),
            ("GET /health HTTP/1.1", None, "200 OK", "ok\n"),
            ("GET /health HTTP/1.1", Some("x"), "503 Service Unavailable", "x\n"),
            ("GET / HTTP/1.1", None, "404 Not Found", "There are /metrics and /health\n"),
            ("POST /health HTTP/1.1", None, "405 Method Not Allowed", "Only GET and HEAD\n"),
            ("GET /health", None, "400 Bad Request", "This is no request of HTTP/1.1\n"),
            ("", None, "400 Bad Request", "This is no request of HTTP/1.1\n"),
        ] {
            let answer = response(line.as_bytes(), &Fixed(trouble));
            assert_eq!(answer, (status, body.to_owned()), "{line}");
        }
    }

    #[test]
    fn it_is_answered_until_the_thread_is_dropped() {
        let admin = Admin::start("127.0.0.1:0".parse().unwrap(), Fixed(None)).unwrap();
        let mut client = TcpStream::connect(admin.address()).unwrap();
        client.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nok\n"));
        let address = admin.address();
        drop(admin);
        // The thread notices it at its own pace.
        while TcpStream::connect(address).is_ok() {
            thread::yield_now();
        }
    }
}
