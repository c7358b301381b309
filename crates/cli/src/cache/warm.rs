//! `haul cache warm`.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use haul_disk::{Error, Op, first_extent, warm};
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, pread};
use serde_json::json;

use super::amount::{Cached, in_bytes, page_bytes};
use super::devices::Devices;
use super::files::{Files, Found, Troubles, cached_if_told, open_quietly, words};
use super::plan::{Candidate, Place, Take, choose, threads};
use crate::args::WarmArgs;
use crate::output::Output;
use crate::progress::{Amount, Progress};
use crate::report::{Failure, Result};
use crate::signals::Stop;
use crate::units::{Bytes, Time};

/// The kernel is asked for this much in one go, ...
const STEP_BYTES: u64 = 1 << 20;
/// ... and a reader has this much under way at most, or so many pieces.
const AHEAD_BYTES: u64 = 16 << 20;
const AHEAD_PIECES: usize = 64;
/// One byte of each such stretch is read, to wait for it: the kernel reads no less in one request,
/// or all of a shorter piece.
const WAIT_BYTES: u64 = 128 << 10;

pub(super) fn run(args: &WarmArgs) -> Result {
    let stop = Stop::on_signals("the files under way")?;
    let started = Instant::now();
    let troubles = Troubles::default();
    let files = Files::of(&args.files, &troubles);
    let devices = Devices::of(args.disk_kind);
    let mut work = Work { files: &files, stop: &stop, troubles: &troubles, devices };
    let (before, candidates) = work.candidates();
    let room = args.max_bytes.or_else(available_bytes).unwrap_or(u64::MAX);
    let takes = choose(&candidates, room);
    work.carry_out(&takes);
    let after = work.again();
    Told { before, after, room, time: started.elapsed() }.tell(args)?;
    match stop.asked() {
        Some(exit) => Err(Failure::new("stopped before all was read").exit(exit)),
        None => troubles.result(),
    }
}

/// What is done, and for whom.
struct Work<'a> {
    files: &'a Files<'a>,
    stop: &'a Stop,
    troubles: &'a Troubles,
    devices: Devices,
}

impl Work<'_> {
    /// What is in memory already, and what could be read.
    fn candidates(&mut self) -> (Cached, Vec<Candidate>) {
        let (mut sum, mut candidates) = (Cached::default(), Vec::new());
        for (index, found) in self.files.iter().enumerate() {
            if self.stop.asked().is_some() {
                break;
            }
            match look(&found, &mut self.devices) {
                Ok((cached, place)) => {
                    sum += cached;
                    let missing_bytes = (cached.missing() + cached.untold) * page_bytes();
                    candidates.push(Candidate { index, place, bytes: cached.bytes, missing_bytes });
                }
                Err(error) => self.troubles.tell(&words(&error)),
            }
        }
        (sum, candidates)
    }

    /// Reads what was chosen, one device after the other.
    fn carry_out(&mut self, takes: &[Take]) {
        let bytes = takes.iter().map(|take| take.bytes).sum();
        let progress = Progress::new("file", Amount { things: takes.len() as u64, bytes });
        let cores = available_parallelism().map_or(1, usize::from);
        for of_device in takes.chunk_by(|a, b| a.place.device == b.place.device) {
            let first = self.files.get(of_device[0].index);
            let rotates = self.devices.kind(first.device, &first.path).rotates;
            let (files, stop, troubles) = (self.files, self.stop, self.troubles);
            let (progress, next) = (&progress, &AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..threads(rotates, cores).min(of_device.len()) {
                    scope.spawn(move || {
                        let mut reader = Reader::new(progress, troubles);
                        while stop.asked().is_none()
                            && let Some(take) = of_device.get(next.fetch_add(1, Ordering::Relaxed))
                        {
                            reader.begin(files.get(take.index), take.bytes);
                        }
                        reader.finish();
                    });
                }
            });
        }
        progress.finish();
    }

    /// What really is in memory now. Files that cannot be asked any more were told of.
    fn again(&self) -> Cached {
        let mut sum = Cached::default();
        for found in self.files.iter() {
            if let Ok(cached) = open_quietly(&found).and_then(|fd| cached_if_told(&found.path, &fd))
            {
                sum += cached;
            }
        }
        sum
    }
}

/// What of a file is in memory already, and where the rest is.
fn look(found: &Found, devices: &mut Devices) -> haul_disk::Result<(Cached, Place)> {
    let fd = open_quietly(found)?;
    let cached = cached_if_told(&found.path, &fd)?;
    let rotates = devices.kind(found.device, &found.path).rotates;
    let asks = rotates && cached.missing() + cached.untold > 0;
    let extent = asks.then(|| first_extent(&fd).ok().flatten()).flatten();
    let physical = extent.and_then(|extent| extent.place());
    Ok((cached, Place { device: found.device, physical, inode: found.inode }))
}

/// Has the kernel read ahead of what it waits for, across files.
struct Reader<'a> {
    progress: &'a Progress,
    troubles: &'a Troubles,
    under_way: VecDeque<Piece>,
    ahead_bytes: u64,
}

/// A part of a file the kernel was asked for.
struct Piece {
    file: Rc<(Found, OwnedFd)>,
    offset: u64,
    bytes: u64,
    /// The length of the file, with its last part.
    ends: Option<u64>,
}

impl<'a> Reader<'a> {
    fn new(progress: &'a Progress, troubles: &'a Troubles) -> Self {
        Self { progress, troubles, under_way: VecDeque::new(), ahead_bytes: 0 }
    }

    fn begin(&mut self, found: Found, bytes: u64) {
        if let Err(error) = self.ask(found, bytes) {
            self.fail(&error);
        }
    }

    fn ask(&mut self, found: Found, end: u64) -> haul_disk::Result<()> {
        let fd = open_quietly(&found)?;
        // A read of the bytes that are waited for shall bring in nothing else.
        fadvise(&fd, 0, None, Advice::Random)
            .map_err(|errno| Error::new(Op::Cache, &found.path, errno))?;
        let file = Rc::new((found, fd));
        let mut offset = 0;
        while offset < end {
            let bytes = STEP_BYTES.min(end - offset);
            while self.ahead_bytes + bytes > AHEAD_BYTES || self.under_way.len() >= AHEAD_PIECES {
                self.wait_for_one();
            }
            warm(&file.1, offset, bytes)?;
            let ends = (offset + bytes == end).then_some(end);
            self.under_way.push_back(Piece { file: Rc::clone(&file), offset, bytes, ends });
            self.ahead_bytes += bytes;
            offset += bytes;
        }
        Ok(())
    }

    fn finish(&mut self) {
        while !self.under_way.is_empty() {
            self.wait_for_one();
        }
    }

    fn wait_for_one(&mut self) {
        let Some(piece) = self.under_way.pop_front() else { return };
        self.ahead_bytes -= piece.bytes;
        if let Err(error) = piece.wait() {
            self.fail(&error);
        } else if let Some(bytes) = piece.ends {
            self.progress.add(bytes);
        }
    }

    fn fail(&self, error: &Error) {
        self.troubles.count();
        self.progress.say(&words(error));
    }
}

impl Piece {
    /// Waits until it has been read.
    fn wait(&self) -> haul_disk::Result<()> {
        let mut at = self.offset;
        while at < self.offset + self.bytes {
            let end = (at + WAIT_BYTES).min(self.offset + self.bytes);
            match pread(&self.file.1, &mut [0], end - 1) {
                Ok(_) => at = end,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    return Err(Error::new(Op::Read, &self.file.0.path, errno).at(end - 1, 1));
                }
            }
        }
        Ok(())
    }
}

/// The memory that can be had without swapping.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// What is told at the end.
struct Told {
    before: Cached,
    after: Cached,
    room: u64,
    time: Duration,
}

impl Told {
    fn tell(&self, args: &WarmArgs) -> Result {
        let Self { before, after, room, time } = self;
        let mut output = Output::new();
        if args.files.json {
            let mut summary = after.json();
            summary["kind"] = json!("summary");
            summary["resident_pages_before"] = json!(before.resident);
            summary["bytes_max"] = json!(room);
            summary["seconds"] = json!(time.as_secs_f64());
            output.line(summary)?;
            return output.finish();
        }
        let brought = after.resident.saturating_sub(before.resident);
        let (brought, time) = (in_bytes(brought), Time(*time));
        output.line(format_args!("brought in {brought} in {time}"))?;
        output.line(after)?;
        if after.missing() > 0 {
            let why = match args.max_bytes {
                Some(_) => "--max-bytes leaves",
                None => "the memory that is available leaves",
            };
            output.line(format_args!(
                "{} are missing: {why} room for {}, and what is read may be dropped again",
                in_bytes(after.missing()),
                Bytes(*room)
            ))?;
        }
        output.finish()
    }
}
