//! Reading one window of a file, on a thread that may wait.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use haul_pipe::{DrainOutcome, Filled, Lease};
use haul_reactor::IoStatus;
use haul_tls::Transport;
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

use crate::carrier::{Buffer, Carrier};
use crate::meta::OpenFile;
use crate::stream::SHARE_BYTES;
use crate::tier::{Source, Tier, aligned};

/// What direct reads are multiples of: enough for every disk with blocks of up to a page.
const BLOCK_BYTES: u64 = 4096;

/// The memory of one read where there is no carrier: however many clients are slow, each holds no
/// more.
const BUFFER_BYTES: u64 = 64 << 10;

/// Bytes of a file on their way to a socket.
#[derive(Debug)]
pub(crate) struct Window {
    holder: Holder,
    pub(crate) tier: Tier,
    pub(crate) bytes: u64,
    /// It was to be read directly into a pipe.
    pub(crate) is_fallback: bool,
}

#[derive(Debug)]
enum Holder {
    Pipe(Lease),
    /// A buffer of the pool, and where what is to be sent begins in it.
    Lent {
        buffer: Buffer,
        sent: usize,
    },
    Memory {
        buffer: Vec<u8>,
        sent: usize,
    },
}

/// Why there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The file is shorter than it was.
    Shorter,
    /// The file was rewritten in place after other bytes of it were sent.
    Rewritten,
    /// The disk failed.
    Failed,
}

impl Window {
    /// Whether it takes a carrier, of which there are so many, and not other memory.
    pub(crate) fn is_carried(&self) -> bool {
        matches!(self.holder, Holder::Pipe(_) | Holder::Lent { .. })
    }

    /// Moves to the socket what there is room for. After the last byte nothing is left inside.
    pub(crate) fn send_some(&mut self, socket: &mut Transport, more: bool) -> io::Result<IoStatus> {
        let share = self.bytes.min(SHARE_BYTES);
        let more = more || share < self.bytes;
        let bytes_max = usize::try_from(share).unwrap_or(usize::MAX);
        let moved = match &mut self.holder {
            Holder::Pipe(lease) => {
                // With TLS there are no pipes: see `Desk::new`.
                let socket = socket.plain().ok_or(io::ErrorKind::Unsupported)?;
                match lease.drain(&*socket, bytes_max, more) {
                    Ok(DrainOutcome::Bytes(bytes)) => IoStatus::Bytes(bytes),
                    Ok(DrainOutcome::TargetFull) => {
                        socket.clear_writable();
                        IoStatus::WouldBlock
                    }
                    Err(error) => return Err(error.source),
                }
            }
            Holder::Lent { buffer, sent } => {
                write(&buffer.bytes()[*sent..][..bytes_max], sent, socket, more)?
            }
            Holder::Memory { buffer, sent } => {
                write(&buffer[*sent..][..bytes_max], sent, socket, more)?
            }
        };
        if let IoStatus::Bytes(bytes) = moved {
            self.bytes -= bytes as u64;
        }
        if let (0, Holder::Pipe(lease)) = (self.bytes, &mut self.holder) {
            // The rest of a block of which only the beginning was wanted. A pipe that is not empty
            // afterwards is closed.
            lease.discard(lease.pending_bytes()).unwrap_or_default();
        }
        Ok(moved)
    }
}

fn write(
    bytes: &[u8],
    sent: &mut usize,
    socket: &mut Transport,
    more: bool,
) -> io::Result<IoStatus> {
    let moved = socket.write(&[IoSlice::new(bytes)], more)?;
    if let IoStatus::Bytes(bytes) = moved {
        *sent += bytes;
    }
    Ok(moved)
}

/// Reads from `offset` on, up to `end`: as much as comes at once, at least a byte. Without a
/// carrier, or where the file cannot be read so, it goes through other memory.
pub(crate) fn fill(
    file: &OpenFile,
    source: Source,
    offset: u64,
    end: u64,
    carrier: Option<Carrier>,
) -> Result<Window, Broken> {
    let (fd, tier) = match (source, direct(file, source)) {
        (Source::Direct, None) => return read(file, source, offset, end),
        (Source::Direct, Some(fd)) => (fd, Tier::Direct),
        (Source::Read | Source::PageCache, _) => (&file.fd, Tier::Read),
    };
    let (start, bytes, unwanted) = match tier {
        Tier::Direct => aligned(offset, end, BLOCK_BYTES),
        _ => (offset, end - offset, 0),
    };
    let wanted = unwanted..unwanted + (end - offset);
    let window = match carrier {
        None => None,
        Some(Carrier::Pipe(mut lease)) => splice(&mut lease, fd, start, bytes, wanted)?
            .map(|bytes| Window { holder: Holder::Pipe(lease), tier, bytes, is_fallback: false }),
        Some(Carrier::Buffer(mut buffer)) => {
            copy(&mut buffer, fd, start, bytes, wanted)?.map(|bytes| {
                let sent = usize::try_from(unwanted).unwrap_or(0);
                Window { holder: Holder::Lent { buffer, sent }, tier, bytes, is_fallback: false }
            })
        }
    };
    window.map_or_else(|| read(file, source, offset, end), Ok)
}

/// The descriptor for direct reads, opened when it is first wanted. It is a description of its
/// own: the flag of the first one would change what others do with it.
fn direct(file: &OpenFile, source: Source) -> Option<&OwnedFd> {
    if source != Source::Direct {
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
        // No descriptor just now: the next window may have one.
        Err(_) => None,
    }
}

/// Fills the pipe, and throws away what was not `wanted` of it, counted from where the read begins.
/// `None` when such a file cannot be spliced.
fn splice(
    lease: &mut Lease,
    fd: &OwnedFd,
    start: u64,
    bytes: u64,
    wanted: std::ops::Range<u64>,
) -> Result<Option<u64>, Broken> {
    let bytes_max = usize::try_from(bytes).unwrap_or(usize::MAX);
    let filled = match lease.fill_at(fd, start, bytes_max) {
        Ok(Filled::Bytes(filled)) => filled as u64,
        Ok(Filled::End) => return Err(Broken::Shorter),
        Ok(Filled::SourceEmpty | Filled::PipeFull) => return Ok(None),
        Err(error) if error.is_refusal() => return Ok(None),
        Err(_) => return Err(Broken::Failed),
    };
    if filled <= wanted.start {
        return Err(Broken::Shorter);
    }
    let discard = |lease: &mut Lease, bytes: u64| {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        lease.discard(bytes).map_err(|_error| Broken::Failed)
    };
    discard(lease, wanted.start)?;
    // What is too much at the end stays inside: it is thrown away after the last byte.
    Ok(Some(filled.min(wanted.end) - wanted.start))
}

/// Fills the buffer, and says how many of the `wanted` bytes are in it. `None` when such a file
/// cannot be read so.
fn copy(
    buffer: &mut Buffer,
    fd: &OwnedFd,
    start: u64,
    bytes: u64,
    wanted: std::ops::Range<u64>,
) -> Result<Option<u64>, Broken> {
    let filled = match buffer.read(fd, start, bytes) {
        Ok(filled) => filled as u64,
        Err(Errno::INVAL) => return Ok(None),
        Err(_errno) => return Err(Broken::Failed),
    };
    if filled <= wanted.start {
        return Err(Broken::Shorter);
    }
    Ok(Some(filled.min(wanted.end) - wanted.start))
}

/// Reads through memory: plainly, or so that the page cache is as before.
fn read(file: &OpenFile, source: Source, offset: u64, end: u64) -> Result<Window, Broken> {
    let bytes = (end - offset).min(BUFFER_BYTES);
    let mut buffer = vec![0; usize::try_from(bytes).unwrap_or(0)];
    let (tier, read) = match source {
        Source::Direct => {
            let read = haul_disk::read_uncached_fd(file.fd.as_fd(), &mut buffer, offset);
            (Tier::Uncached, read.map_err(|_error| Broken::Failed)?)
        }
        Source::Read | Source::PageCache => {
            let read =
                rustix::io::retry_on_intr(|| rustix::io::pread(&file.fd, &mut buffer[..], offset));
            (Tier::Read, read.map_err(|_errno| Broken::Failed)?)
        }
    };
    if read == 0 {
        return Err(Broken::Shorter);
    }
    buffer.truncate(read);
    let holder = Holder::Memory { buffer, sent: 0 };
    Ok(Window { bytes: read as u64, holder, tier, is_fallback: source == Source::Direct })
}

/// All of a small file, through the page cache.
pub(crate) fn load(file: &OpenFile) -> Result<Box<[u8]>, Broken> {
    let mut buffer = vec![0; usize::try_from(file.meta.version.bytes).unwrap_or(0)];
    let mut done = 0;
    while done < buffer.len() {
        let rest = &mut buffer[done..];
        match rustix::io::retry_on_intr(|| rustix::io::pread(&file.fd, &mut *rest, done as u64)) {
            Ok(0) => return Err(Broken::Shorter),
            Ok(read) => done += read,
            Err(_errno) => return Err(Broken::Failed),
        }
    }
    Ok(buffer.into_boxed_slice())
}
