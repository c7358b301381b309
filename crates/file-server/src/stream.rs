//! A range of a file on its way to a socket.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_reactor::{IoStatus, MessageSender};
use haul_tls::Transport;
use rustix::io::{Errno, retry_on_intr};

use crate::connection::Message;
use crate::fill::{Broken, Window, fill};
use crate::meta::{OpenFile, Version};
use crate::resident;
use crate::shared::Desk;
use crate::tier::{self, Source, Tier, choose, window_end};

/// How many bytes one connection may move before it is the next one's turn: some tenths of a
/// millisecond, which is what a small answer waits behind each download. Less means more turns.
pub(crate) const SHARE_BYTES: u64 = 1 << 20;

/// The time for which bytes that were in the page cache are assumed to stay there.
const RESIDENT_FOR: Duration = Duration::from_millis(10);

/// The minimal time between two comparisons of the version of a file while it is sent.
const COMPARED_EVERY: Duration = Duration::from_millis(10);

/// A file is longer this long after an append has changed its time.
const REWRITTEN_AFTER: Duration = Duration::from_millis(10);

/// Who takes longer for a window gets the next one read only when this one is gone: then a slow
/// client holds one carrier, not two.
const SLOW: Duration = Duration::from_secs(1);

/// The window that a connection counted last as asked for, by device, inode and place, and how often
/// it was.
pub(crate) type Counted = Option<((u64, u64, u64), u32)>;

/// What one step came to.
#[derive(Debug)]
pub(crate) enum Step {
    /// The kernel took so many bytes.
    Sent(u64, Tier),
    /// The socket is full.
    Full,
    /// The next bytes are being read.
    Reading,
    /// All were sent.
    Done,
}

/// A range of a file.
#[derive(Debug)]
pub(crate) struct Stream {
    file: Arc<OpenFile>,
    at: u64,
    end: u64,
    /// What is being sent.
    window: Option<Window>,
    window_since: Option<Instant>,
    is_slow: bool,
    ahead: Ahead,
    /// Up to where the page cache had it, and when it was asked.
    resident: Option<(u64, Instant)>,
    /// The file cannot be sent by `sendfile`.
    is_unsendable: bool,
    /// The kernel waits until segments are full.
    is_corked: bool,
    /// Reads leave the page cache as it was, but for what the kernel reads ahead of them, which is
    /// gone again once it was read the same way.
    is_uncached: bool,
    /// The version of the file when its first bytes were sent, if they were not all, and the time
    /// of the last comparison with it.
    first: Option<(Version, Instant)>,
    /// Since when the file seems to be rewritten.
    suspected: Option<Instant>,
    /// Gone when the stream is: what was not begun for it is not begun any more.
    is_wanted: Arc<()>,
}

/// What another thread does for it.
#[derive(Debug)]
enum Ahead {
    Nothing,
    Asked,
    Ready(Result<Window, Broken>),
}

impl Stream {
    pub(crate) fn new(file: Arc<OpenFile>, range: std::ops::Range<u64>) -> Self {
        Self {
            file,
            at: range.start,
            end: range.end,
            window: None,
            window_since: None,
            is_slow: false,
            ahead: Ahead::Nothing,
            resident: None,
            is_unsendable: false,
            is_corked: false,
            is_uncached: false,
            first: None,
            suspected: None,
            is_wanted: Arc::new(()),
        }
    }

    /// Another thread has read something.
    pub(crate) fn filled(&mut self, window: Result<Window, Broken>) {
        self.ahead = Ahead::Ready(window);
    }

    /// Sends once, or has the next bytes read.
    ///
    /// # Errors
    /// The socket's, or that the file is not what it was: the connection is to be closed.
    pub(crate) fn step(
        &mut self,
        socket: &mut Transport,
        desk: &Desk,
        now: Instant,
        counted: &mut Counted,
        remote: impl Fn() -> MessageSender<Message>,
    ) -> io::Result<Step> {
        if self.window.is_none() {
            match std::mem::replace(&mut self.ahead, Ahead::Nothing) {
                Ahead::Ready(window) => {
                    let window = window.map_err(Broken::into_io)?;
                    self.check_version(window.bytes, now).map_err(Broken::into_io)?;
                    self.is_uncached |= window.tier == Tier::Uncached;
                    desk.counts.fallbacks.add(u64::from(window.is_fallback));
                    if window.is_carried() {
                        self.look_ahead(self.at + window.bytes, desk, now, counted, &remote);
                    }
                    self.window = Some(window);
                    self.window_since = Some(now);
                }
                Ahead::Asked => {
                    self.ahead = Ahead::Asked;
                    return Ok(Step::Reading);
                }
                Ahead::Nothing if self.at == self.end => return Ok(Step::Done),
                Ahead::Nothing => {}
            }
        }
        if let Some(window) = &mut self.window {
            let step = window.send(socket, self.at + window.bytes < self.end)?;
            if let Step::Sent(bytes, _) = step {
                self.at += bytes;
                if window.bytes == 0 {
                    self.window = None;
                    self.is_slow = self.window_since.is_some_and(|since| now - since > SLOW);
                }
            }
            return Ok(step);
        }
        match self.source(self.at, desk, now, counted) {
            Source::PageCache if socket.is_tls() => self.send_encrypted(socket, desk, now),
            Source::PageCache => self.send_file(socket, now),
            source => {
                self.cork(socket, false);
                self.ask(self.at, source, desk, remote());
                Ok(Step::Reading)
            }
        }
    }

    /// Has what follows read while this window is sent, if it must be read at all.
    fn look_ahead(
        &mut self,
        from: u64,
        desk: &Desk,
        now: Instant,
        counted: &mut Counted,
        remote: &impl Fn() -> MessageSender<Message>,
    ) {
        if from < self.end && !self.is_slow {
            let source = self.source(from, desk, now, counted);
            if source != Source::PageCache {
                self.ask(from, source, desk, remote());
            }
        }
    }

    fn ask(&mut self, from: u64, source: Source, desk: &Desk, remote: MessageSender<Message>) {
        self.ahead = Ahead::Asked;
        desk.counts.disk_jobs.add(1);
        let carrier = desk.carriers.lend();
        let (file, end) = (Arc::clone(&self.file), window_end(from, self.end));
        desk.shared.disk.hand_big(Arc::downgrade(&self.is_wanted), move || {
            remote.send(Message::Filled(fill(&file, source, from, end, carrier)));
        });
    }

    /// Where the window from `from` on is to come from.
    fn source(&mut self, from: u64, desk: &Desk, now: Instant, counted: &mut Counted) -> Source {
        if self.is_uncached {
            return Source::Direct;
        }
        let end = window_end(from, self.end);
        let is_known = |&(until, at): &(u64, Instant)| end <= until && now - at < RESIDENT_FOR;
        let now_ms = desk.shared.ms(now);
        let is_whole_known = !self.is_unsendable && self.file.resident.contains(from, now_ms);
        if is_whole_known || self.resident.as_ref().is_some_and(is_known) {
            return Source::PageCache;
        }
        let seed = u64::from(now.saturating_duration_since(desk.shared.started).subsec_nanos());
        let resident_bytes = if self.is_unsendable {
            0
        } else {
            resident::resident_bytes(&self.file.fd, from, end, seed)
        };
        let mut window = tier::Window {
            file_bytes: self.file.meta.version.bytes,
            window_bytes: resident::page_span(from, end),
            resident_bytes,
            asked: 0,
        };
        if resident_bytes < window.window_bytes {
            window.asked = self.count(from, desk, counted);
        }
        let source = choose(window, desk.shared.rules);
        if source == Source::PageCache {
            self.resident = Some((end, now));
            let window_end = window_end(from, self.file.meta.version.bytes);
            if from.is_multiple_of(tier::WINDOW_BYTES) && end == window_end {
                self.file.resident.insert(from, now_ms);
            }
        }
        source
    }

    /// How often the window was asked for lately. Each connection counts it once in a row: who
    /// fetches a file in pieces asks for it once.
    fn count(&self, from: u64, desk: &Desk, counted: &mut Counted) -> u32 {
        let version = &self.file.meta.version;
        let window = (version.device, version.inode, from / tier::WINDOW_BYTES);
        match *counted {
            Some((last, asked)) if last == window => asked,
            _ => {
                let asked = desk.shared.sketch.count(window);
                *counted = Some((window, asked));
                asked
            }
        }
    }

    /// Has the kernel hold back what fills no segment, for as long as more follows at once: each
    /// `sendfile` would end with a short one.
    fn cork(&mut self, socket: &mut Transport, follows: bool) {
        if follows != self.is_corked {
            self.is_corked = follows;
            socket.socket_mut().cork(follows);
        }
    }

    /// Ends a response that would consist of two versions of the file.
    ///
    /// A file rewritten in place has another time of modification. A file that became longer passes:
    /// most often its old bytes are the same, as those of a log. `bytes` are to be sent next: before
    /// the last ones the file is always compared, before others from time to time.
    fn check_version(&mut self, bytes: u64, now: Instant) -> Result<(), Broken> {
        let is_last = self.at + bytes >= self.end;
        match self.first {
            // If not all bytes can be sent, `send_file` takes the version.
            None if is_last => return Ok(()),
            Some((_, checked)) if !is_last && now - checked < COMPARED_EVERY => return Ok(()),
            None | Some(_) => {}
        }
        let version = version(&self.file)?;
        let first = self.first.map_or(version, |(first, _)| first);
        self.first = Some((first, now));
        if !first.may_be_rewritten(&version) {
            self.suspected = None;
            return Ok(());
        }
        // A write that appends changes the time before the length: a later comparison decides,
        // unless these are the last bytes.
        let since = *self.suspected.get_or_insert_with(Instant::now);
        let is_certain = is_last || since.elapsed() >= REWRITTEN_AFTER;
        if is_certain { Err(Broken::Rewritten) } else { Ok(()) }
    }

    /// Reads bytes of the page cache, and sends them encrypted, which `sendfile(2)` cannot do.
    fn send_encrypted(
        &mut self,
        socket: &mut Transport,
        desk: &Desk,
        now: Instant,
    ) -> io::Result<Step> {
        let mut buffer = desk.buffer.borrow_mut();
        let bytes = (window_end(self.at, self.end) - self.at).min(buffer.len() as u64);
        self.check_version(bytes, now).map_err(Broken::into_io)?;
        let buffer = &mut buffer[..usize::try_from(bytes).unwrap_or(0)];
        let read = retry_on_intr(|| rustix::io::pread(&self.file.fd, &mut *buffer, self.at))?;
        if read == 0 {
            return Err(Broken::Shorter.into_io());
        }
        // Bytes that are not sent now are read again: the transport requires the same bytes.
        let more = self.at + (read as u64) < self.end;
        match socket.write(&[IoSlice::new(&buffer[..read])], more)? {
            IoStatus::Bytes(bytes) => {
                self.at += bytes as u64;
                Ok(Step::Sent(bytes as u64, Tier::Resident))
            }
            IoStatus::WouldBlock => Ok(Step::Full),
        }
    }

    fn send_file(&mut self, socket: &mut Transport, now: Instant) -> io::Result<Step> {
        let wanted = (window_end(self.at, self.end) - self.at).min(SHARE_BYTES);
        self.check_version(wanted, now).map_err(Broken::into_io)?;
        let mut offset = self.at;
        let count = usize::try_from(wanted).unwrap_or(usize::MAX);
        self.cork(socket, self.at + wanted < self.end);
        let socket = socket.socket_mut();
        let sent = retry_on_intr(|| {
            rustix::fs::sendfile(&*socket, &self.file.fd, Some(&mut offset), count)
        });
        match sent {
            Ok(0) => Err(Broken::Shorter.into_io()),
            Ok(sent) => {
                self.at += sent as u64;
                if self.first.is_none() && self.at < self.end {
                    let version = version(&self.file).map_err(Broken::into_io)?;
                    self.first = Some((version, now));
                }
                Ok(Step::Sent(sent as u64, Tier::Resident))
            }
            Err(Errno::AGAIN) => {
                socket.clear_writable();
                Ok(Step::Full)
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::PERM | Errno::OPNOTSUPP) => {
                self.is_unsendable = true;
                self.resident = None;
                Ok(Step::Sent(0, Tier::Resident))
            }
            Err(errno) => Err(errno.into()),
        }
    }
}

fn version(file: &OpenFile) -> Result<Version, Broken> {
    let stat = rustix::fs::fstat(&file.fd).map_err(|_failed| Broken::Failed)?;
    Ok(Version::of(&stat))
}

impl Broken {
    fn into_io(self) -> io::Error {
        io::Error::other(self.words())
    }

    fn words(self) -> &'static str {
        match self {
            Self::Shorter => "the file got shorter while it was sent",
            Self::Rewritten => "the file was rewritten while it was sent",
            Self::Failed => "the disk failed",
        }
    }
}

impl Window {
    /// Sends what there is room for.
    fn send(&mut self, socket: &mut Transport, more: bool) -> io::Result<Step> {
        let tier = self.tier;
        match self.send_some(socket, more)? {
            IoStatus::Bytes(bytes) => Ok(Step::Sent(bytes as u64, tier)),
            IoStatus::WouldBlock => Ok(Step::Full),
        }
    }
}
