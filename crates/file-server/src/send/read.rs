//! Reads windows of files on disk threads.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use bytes::Bytes;
use haul_http_engine::{Piece, SplicedPiece};
use haul_pipe::{DrainOutcome, Filled, Lease};
use haul_reactor::{IoStatus, Socket};
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

use crate::buffers::{LeasedBuffer, MemoryLease};
use crate::file::description::OpenFile;
use crate::file::tier::{Tier, WindowSource, aligned};

/// The alignment of direct reads: sufficient for disks with blocks of up to a page.
const BLOCK_BYTES: u64 = 4096;

/// The memory of one read without a leased buffer, which limits the memory of each slow client.
const UNPOOLED_BYTES: u64 = 64 << 10;

/// A window that was read.
#[derive(Debug)]
pub(crate) struct ReadWindow {
    pub(crate) content: WindowContent,
    pub(crate) tier: Tier,
    pub(crate) bytes: u64,
    /// The window should have been read directly, and was not.
    pub(crate) is_fallback: bool,
}

/// The bytes of a window.
#[derive(Debug)]
pub(crate) enum WindowContent {
    Pipe(PipeContent),
    Leased(Bytes),
    Unpooled(Bytes),
}

/// The reason why a window cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("the file was truncated while it was sent")]
    Truncated,
    #[error("the file was rewritten while it was sent")]
    Rewritten,
    #[error("the file cannot be read")]
    Failed,
}

impl ReadWindow {
    /// Returns `true` if the window is in a leased buffer, the number of which is limited.
    pub(crate) fn is_leased(&self) -> bool {
        matches!(self.content, WindowContent::Pipe(_) | WindowContent::Leased(_))
    }

    pub(crate) fn into_piece(self) -> Piece {
        match self.content {
            WindowContent::Pipe(pipe) => Piece::Spliced(Box::new(pipe)),
            WindowContent::Leased(bytes) | WindowContent::Unpooled(bytes) => Piece::Bytes(bytes),
        }
    }
}

/// A window in a pipe.
#[derive(Debug)]
pub(crate) struct PipeContent {
    lease: Lease,
    bytes: u64,
}

impl SplicedPiece for PipeContent {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn send(&mut self, socket: &mut Socket, bytes_max: usize, more: bool) -> io::Result<IoStatus> {
        let bytes = usize::try_from(self.bytes).unwrap_or(usize::MAX).min(bytes_max);
        let sent = match self.lease.drain(&*socket, bytes, more) {
            Ok(DrainOutcome::Bytes(bytes)) => bytes,
            Ok(DrainOutcome::TargetFull) => {
                socket.clear_writable();
                return Ok(IoStatus::WouldBlock);
            }
            Err(error) => return Err(error.source),
        };
        self.bytes -= sent as u64;
        if self.bytes == 0 {
            // The rest of the last block. A pipe that is not empty afterwards is closed.
            self.lease.discard(self.lease.pending_bytes()).unwrap_or_default();
        }
        Ok(IoStatus::Bytes(sent))
    }
}

/// Reads the window from `offset` to `end`, or at least its first byte. Without a buffer, or if the
/// file cannot be read into it, reads into memory of its own.
pub(crate) fn read_window(
    file: &OpenFile,
    source: WindowSource,
    offset: u64,
    end: u64,
    buffer: Option<LeasedBuffer>,
) -> Result<ReadWindow, ReadError> {
    let (fd, tier) = match (source, direct(file, source)) {
        (WindowSource::Direct, None) => return read_unpooled(file, source, offset, end),
        (WindowSource::Direct, Some(fd)) => (fd, Tier::Direct),
        (WindowSource::Read | WindowSource::PageCache, _) => (&file.fd, Tier::Read),
    };
    let (start, bytes, skip) = match tier {
        Tier::Direct => aligned(offset, end, BLOCK_BYTES),
        _ => (offset, end - offset, 0),
    };
    let wanted = skip..skip + (end - offset);
    let content = match buffer {
        None => None,
        Some(LeasedBuffer::Pipe(lease)) => splice(lease, fd, start, bytes, wanted)?,
        Some(LeasedBuffer::Memory(buffer)) => copy(buffer, fd, start, bytes, wanted)?,
    };
    match content {
        Some(content) => {
            let bytes = content.bytes();
            Ok(ReadWindow { content, tier, bytes, is_fallback: false })
        }
        None => read_unpooled(file, source, offset, end),
    }
}

impl WindowContent {
    fn bytes(&self) -> u64 {
        match self {
            Self::Pipe(pipe) => pipe.bytes,
            Self::Leased(bytes) | Self::Unpooled(bytes) => bytes.len() as u64,
        }
    }
}

/// Returns the descriptor for direct reads, which is opened when it is first needed. It has a
/// description of its own: the flag would affect other readers of a shared one.
fn direct(file: &OpenFile, source: WindowSource) -> Option<&OwnedFd> {
    if source != WindowSource::Direct {
        return None;
    }
    if let Some(opened) = file.direct.get() {
        return opened.as_ref();
    }
    let path = format!("/proc/self/fd/{}", file.fd.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    match fs::open(path, flags, Mode::empty()) {
        Ok(fd) => file.direct.get_or_init(|| Some(fd)).as_ref(),
        Err(Errno::INVAL) => file.direct.get_or_init(|| None).as_ref(),
        // No descriptor is free now: the next window may have one.
        Err(_) => None,
    }
}

/// Fills a pipe, and discards the bytes before `wanted`, which counts from the start of the read.
/// Returns `None` if the file cannot be spliced.
fn splice(
    mut lease: Lease,
    fd: &OwnedFd,
    start: u64,
    bytes: u64,
    wanted: Range<u64>,
) -> Result<Option<WindowContent>, ReadError> {
    let bytes_max = usize::try_from(bytes).unwrap_or(usize::MAX);
    let filled = match lease.fill_at(fd, start, bytes_max) {
        Ok(Filled::Bytes(filled)) => filled as u64,
        Ok(Filled::End) => return Err(ReadError::Truncated),
        Ok(Filled::SourceEmpty | Filled::PipeFull) => return Ok(None),
        Err(error) if error.is_refusal() => return Ok(None),
        Err(_) => return Err(ReadError::Failed),
    };
    if filled <= wanted.start {
        return Err(ReadError::Truncated);
    }
    let skip = usize::try_from(wanted.start).unwrap_or(usize::MAX);
    lease.discard(skip).map_err(|_error| ReadError::Failed)?;
    // Bytes after the wanted ones stay in the pipe until the last wanted byte is sent.
    let bytes = filled.min(wanted.end) - wanted.start;
    Ok(Some(WindowContent::Pipe(PipeContent { lease, bytes })))
}

/// Fills a buffer; returns its `wanted` bytes, counted from the start of the read, or `None` if the
/// file cannot be read like this.
fn copy(
    mut buffer: MemoryLease,
    fd: &OwnedFd,
    start: u64,
    bytes: u64,
    wanted: Range<u64>,
) -> Result<Option<WindowContent>, ReadError> {
    let filled = match buffer.read(fd, start, bytes) {
        Ok(filled) => filled as u64,
        Err(Errno::INVAL) => return Ok(None),
        Err(_errno) => return Err(ReadError::Failed),
    };
    if filled <= wanted.start {
        return Err(ReadError::Truncated);
    }
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    let bytes = filled.min(wanted.end) - wanted.start;
    Ok(Some(WindowContent::Leased(buffer.into_bytes(at(wanted.start), at(bytes)))))
}

/// Reads into memory of its own, either through the page cache or without leaving pages there.
fn read_unpooled(
    file: &OpenFile,
    source: WindowSource,
    offset: u64,
    end: u64,
) -> Result<ReadWindow, ReadError> {
    let bytes = (end - offset).min(UNPOOLED_BYTES);
    let mut buffer = vec![0; usize::try_from(bytes).unwrap_or(0)];
    let (tier, read) = match source {
        WindowSource::Direct => {
            let read = haul_disk::read_uncached_fd(file.fd.as_fd(), &mut buffer, offset);
            (Tier::Uncached, read.map_err(|_error| ReadError::Failed)?)
        }
        WindowSource::Read | WindowSource::PageCache => {
            let read =
                rustix::io::retry_on_intr(|| rustix::io::pread(&file.fd, &mut buffer[..], offset));
            (Tier::Read, read.map_err(|_errno| ReadError::Failed)?)
        }
    };
    if read == 0 {
        return Err(ReadError::Truncated);
    }
    buffer.truncate(read);
    let content = WindowContent::Unpooled(Bytes::from(buffer));
    let is_fallback = source == WindowSource::Direct;
    Ok(ReadWindow { bytes: read as u64, content, tier, is_fallback })
}

/// Reads all of a small file, through the page cache.
pub(crate) fn load(file: &OpenFile) -> Result<Bytes, ReadError> {
    let mut buffer = vec![0; usize::try_from(file.meta.version.bytes).unwrap_or(0)];
    let mut done = 0;
    while done < buffer.len() {
        let rest = &mut buffer[done..];
        match rustix::io::retry_on_intr(|| rustix::io::pread(&file.fd, &mut *rest, done as u64)) {
            Ok(0) => return Err(ReadError::Truncated),
            Ok(read) => done += read,
            Err(_errno) => return Err(ReadError::Failed),
        }
    }
    Ok(Bytes::from(buffer))
}
