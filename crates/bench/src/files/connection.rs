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

/// How far an answer is.
#[derive(Debug)]
enum Phase {
    /// Nothing is asked for.
    Idle,
    /// It is known how long it is; its bytes are dropped, which costs the load next to nothing.
    Counted { left: u64 },
    /// It is looked at: the head is not all there.
    Head(Vec<u8>),
    /// It is looked at: so much of the body was right.
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

    /// Asks for a page. The answer is compared, byte by byte, if that is wanted, or the first one.
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
            _ => Phase::Head(Vec::new()),
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
            Phase::Idle | Phase::Head(_) | Phase::Body { .. } => room.len(),
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
            Phase::Head(bytes) => {
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
                let body = bytes.split_off(found.head_bytes);
                self.phase = Phase::Body { at: 0, head_bytes: found.head_bytes as u64 };
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
            return Err(wrong(site, self.page, "it is longer than it says".to_owned()));
        }
        if *at < page.bytes {
            return Ok(false);
        }
        lengths.0[self.page] = Some(*head_bytes + page.bytes);
        self.phase = Phase::Idle;
        Ok(true)
    }
}
