//! One connection of a load: it asks for a page, and takes what comes.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::site::Site;
use crate::error::{Error, Result};
use crate::net::answer::head;

/// The longest head that is read.
const HEAD_MAX: usize = 16 << 10;
/// How much is read at a time for the sake of a head alone.
const HEAD_ROOM_BYTES: usize = 4 << 10;

/// How far an answer is.
#[derive(Debug)]
enum Phase {
    /// Nothing is asked for.
    Idle,
    /// It is known how long it is; its bytes are dropped, which costs the load next to nothing.
    Counted { left: u64 },
    /// The head is looked at, which is not all there.
    Head { bytes: Vec<u8>, compare: bool },
    /// All is looked at; so much of the body was right.
    Body { at: u64, head_bytes: u64 },
}

/// A connection, and the page it asked for last.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) page: usize,
    phase: Phase,
}

/// What a look brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) bytes: u64,
    /// Whether that is the end of the answer.
    pub(super) is_all: bool,
}

/// How long the answer for each page is, as soon as one was looked at.
#[derive(Debug, Clone)]
pub(super) struct Lengths(Vec<Option<u64>>);

impl Lengths {
    pub(super) fn of(site: &Site) -> Self {
        Self(vec![None; site.pages.len()])
    }
}

fn wrong(site: &Site, page: usize, why: String) -> Error {
    let asked = String::from_utf8_lossy(&site.pages[page].request);
    let asked = asked.lines().next().unwrap_or_default();
    Error::other(format!("trust the answer to {asked:?}"))(io::Error::other(why))
}

fn too_long(site: &Site, page: usize) -> Error {
    wrong(site, page, "it is longer than it says".to_owned())
}

impl Connection {
    pub(super) fn new(address: SocketAddr) -> Result<Self> {
        let what = || format!("connect to {address}");
        let stream = TcpStream::connect(address).map_err(Error::other(what()))?;
        stream.set_nodelay(true).map_err(Error::other(what()))?;
        stream.set_nonblocking(true).map_err(Error::other(what()))?;
        Ok(Self { stream, page: 0, phase: Phase::Idle })
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    /// Asks for a page. The answer is compared, byte by byte, if that is wanted; otherwise the head
    /// of the first one for a page is looked at, and others are counted.
    pub(super) fn ask(
        &mut self,
        site: &Site,
        page: usize,
        lengths: &Lengths,
        compare: bool,
    ) -> Result<()> {
        self.page = page;
        self.phase = match lengths.0[page] {
            Some(left) if !compare => Phase::Counted { left },
            _ => Phase::Head { bytes: Vec::new(), compare },
        };
        // A request is short, and nothing else of ours is on its way: there is room for all of it.
        let sent = self.stream.write_all(&site.pages[page].request);
        sent.map_err(|why| wrong(site, page, format!("it could not be asked: {why}")))
    }

    /// Takes what has come, as much as there is room in `room`.
    pub(super) fn look(
        &mut self,
        site: &Site,
        lengths: &mut Lengths,
        room: &mut [u8],
    ) -> Result<Look> {
        let length = match &self.phase {
            Phase::Idle | Phase::Body { .. } | Phase::Head { compare: true, .. } => room.len(),
            Phase::Head { compare: false, .. } => room.len().min(HEAD_ROOM_BYTES),
            Phase::Counted { left } => usize::try_from(*left).unwrap_or(usize::MAX).min(room.len()),
        };
        let flags = match &self.phase {
            Phase::Counted { .. } => RecvFlags::TRUNC,
            _ => RecvFlags::empty(),
        };
        let got = match recv(&self.stream, &mut room[..length], flags) {
            Ok((_, got)) => got,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(Look::default()),
            Err(errno) => return Err(wrong(site, self.page, io::Error::from(errno).to_string())),
        };
        if got == 0 {
            return Err(wrong(site, self.page, "the connection was closed".to_owned()));
        }
        let is_all = self.took(site, lengths, &room[..got.min(length)])?;
        Ok(Look { bytes: got as u64, is_all })
    }

    /// Whether the answer has ended.
    fn took(&mut self, site: &Site, lengths: &mut Lengths, got: &[u8]) -> Result<bool> {
        let page = &site.pages[self.page];
        match &mut self.phase {
            Phase::Idle => {
                let why = format!("{} bytes that nobody asked for", got.len());
                return Err(wrong(site, self.page, why));
            }
            Phase::Counted { left } => {
                *left -= got.len() as u64;
                if *left == 0 {
                    self.phase = Phase::Idle;
                    return Ok(true);
                }
            }
            Phase::Head { bytes, compare } => {
                bytes.extend_from_slice(got);
                let Some(found) = head(bytes) else {
                    if bytes.len() > HEAD_MAX {
                        return Err(wrong(site, self.page, "its head does not end".to_owned()));
                    }
                    return Ok(false);
                };
                let found = found.map_err(|why| wrong(site, self.page, why))?;
                if (found.status, found.body_bytes) != (200, page.bytes) {
                    let why = format!("status {}, {} bytes", found.status, found.body_bytes);
                    return Err(wrong(site, self.page, why));
                }
                let head_bytes = found.head_bytes as u64;
                if !*compare {
                    let all = head_bytes + page.bytes;
                    lengths.0[self.page] = Some(all);
                    let left = all.checked_sub(bytes.len() as u64);
                    let left = left.ok_or_else(|| too_long(site, self.page))?;
                    self.phase = if left == 0 { Phase::Idle } else { Phase::Counted { left } };
                    return Ok(left == 0);
                }
                let body = bytes.split_off(found.head_bytes);
                self.phase = Phase::Body { at: 0, head_bytes };
                return self.compared(site, lengths, &body);
            }
            Phase::Body { .. } => return self.compared(site, lengths, got),
        }
        Ok(false)
    }

    fn compared(&mut self, site: &Site, lengths: &mut Lengths, got: &[u8]) -> Result<bool> {
        let page = &site.pages[self.page];
        let Phase::Body { at, head_bytes } = &mut self.phase else { return Ok(false) };
        if let Some(place) = page.content.differs(*at, got) {
            let why = format!("byte {} of the body is wrong", *at + place as u64);
            return Err(wrong(site, self.page, why));
        }
        *at += got.len() as u64;
        if *at > page.bytes {
            return Err(too_long(site, self.page));
        }
        if *at < page.bytes {
            return Ok(false);
        }
        lengths.0[self.page] = Some(*head_bytes + page.bytes);
        self.phase = Phase::Idle;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;
    use crate::net::cores::Cores;
    use crate::watch::Silent;

    /// What a client says to `answers`, each of which comes in pieces, one after the other.
    fn heard(answers: &[(&[u8], bool)]) -> Result<Vec<u64>> {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut site = Site::new(dir.path(), Cores { server: 0, load: 0 });
        site.add("a", 1, 1000, &Silent).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = Connection::new(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let (mut lengths, mut room) = (Lengths::of(&site), vec![0; 64 << 10]);
        let mut all = Vec::new();
        for (answer, compare) in answers {
            client.ask(&site, 0, &lengths, *compare)?;
            let mut asked = vec![0; site.pages[0].request.len()];
            server.read_exact(&mut asked).unwrap();
            assert_eq!(asked, site.pages[0].request);
            let mut bytes = 0;
            for piece in answer.chunks(100) {
                server.write_all(piece).unwrap();
                let (mut got, mut look) = (0, Look::default());
                while got < piece.len() as u64 {
                    look = client.look(&site, &mut lengths, &mut room)?;
                    got += look.bytes;
                }
                bytes += got;
                assert_eq!(look.is_all, bytes == answer.len() as u64);
            }
            assert!(client.is_idle());
            all.push(bytes);
        }
        Ok(all)
    }

    fn answer(status: &str, body: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    }

    #[test]
    fn right_answers_are_taken_whether_they_are_compared_or_counted() {
        let mut body = vec![0; 1000];
        crate::net::content::Content(0).fill(0, &mut body);
        let right = answer("200 OK", &body);
        let all = [(&right[..], true), (&right, false), (&right, false), (&right, true)];
        assert_eq!(heard(&all).unwrap(), [right.len() as u64; 4]);
        assert_eq!(heard(&all[1..]).unwrap(), [right.len() as u64; 3], "the first is not compared");
    }

    #[test]
    fn wrong_answers_are_told() {
        let mut body = vec![0; 1000];
        crate::net::content::Content(0).fill(0, &mut body);
        let mut changed = body.clone();
        changed[700] ^= 1;
        for (answer, compare, expected) in [
            (answer("200 OK", &changed), true, "byte 700 of the body is wrong"),
            (answer("404 Not Found", &body), false, "status 404"),
            (answer("200 OK", &body[..999]), false, "999 bytes"),
            (b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), true, "it answered"),
        ] {
            let error = heard(&[(&answer, compare)]).unwrap_err();
            let told = crate::error::chain(&error);
            assert!(told.contains("GET /a/000000") && told.contains(expected), "{told}");
        }
    }
}
