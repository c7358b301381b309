//! `haul cache warm`.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use haul_disk::{Error, Op, first_extent, warm};
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, pread};
use serde_json::json;

use super::amount::{Cached, page_bytes};
use super::devices::Devices;
use super::files::{Found, Troubles, cached, each, open_quietly, words};
use super::plan::{Candidate, Place, Take, choose, threads};
use crate::args::WarmArgs;
use crate::output::Output;
use crate::progress::{Amount, Done, Progress};
use crate::report::{Failure, Result};
use crate::signals::Stop;
use crate::units::{Bytes, Count};

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
    let troubles = Troubles::default();
    let mut devices = Devices::default();
    let (mut files, mut candidates) = (Vec::new(), Vec::new());
    let mut all = Cached::default();
    each(&args.files, &troubles, |found| {
        match look(&found, &mut devices) {
            Ok((cached, place)) => {
                all += cached;
                let missing_bytes = cached.missing() * page_bytes();
                let index = files.len();
                candidates.push(Candidate { index, place, bytes: cached.bytes, missing_bytes });
                files.push(found);
            }
            Err(error) => troubles.tell(&words(&error)),
        }
        match stop.asked() {
            Some(exit) => Err(Failure::told().exit(exit)),
            None => Ok(()),
        }
    })?;
    let room = args.max_bytes.or_else(available_bytes).unwrap_or(u64::MAX);
    let takes = choose(&candidates, room);
    let done = carry_out(&takes, &files, &mut devices, &stop, &troubles);
    let after = again(&files);
    tell(args, &Told { before: all, after, done, room })?;
    match stop.asked() {
        Some(exit) => Err(Failure::new("stopped before all was read").exit(exit)),
        None => troubles.result(),
    }
}

/// What of a file is in memory already, and where the rest is.
fn look(found: &Found, devices: &mut Devices) -> haul_disk::Result<(Cached, Place)> {
    let fd = open_quietly(found)?;
    let cached = cached(&found.path, &fd)?;
    let rotates = devices.kind(found.device, &found.path).rotates;
    let extent =
        if rotates && cached.missing() > 0 { first_extent(&fd).ok().flatten() } else { None };
    let physical = extent.and_then(|extent| extent.place());
    Ok((cached, Place { device: found.device, physical, inode: found.inode }))
}

/// Reads what was chosen, one device after the other.
fn carry_out(
    takes: &[Take],
    files: &[Found],
    devices: &mut Devices,
    stop: &Stop,
    troubles: &Troubles,
) -> Done {
    let bytes = takes.iter().map(|take| take.bytes).sum();
    let progress = Progress::new("file", Amount { things: takes.len() as u64, bytes });
    let cores = available_parallelism().map_or(1, usize::from);
    for of_device in takes.chunk_by(|a, b| a.place.device == b.place.device) {
        let (device, next) = (of_device[0].place.device, AtomicUsize::new(0));
        let rotates = devices.kind(device, &files[of_device[0].index].path).rotates;
        std::thread::scope(|scope| {
            for _ in 0..threads(rotates, cores).min(of_device.len()) {
                scope.spawn(|| {
                    let mut reader = Reader::new(&progress, troubles);
                    while stop.asked().is_none()
                        && let Some(take) = of_device.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        reader.begin(&files[take.index], take.bytes);
                    }
                    reader.finish();
                });
            }
        });
    }
    progress.finish()
}

/// Has the kernel read ahead of what it waits for, across files.
struct Reader<'a> {
    progress: &'a Progress,
    troubles: &'a Troubles,
    under_way: VecDeque<Piece<'a>>,
    ahead_bytes: u64,
}

/// A part of a file the kernel was asked for.
struct Piece<'a> {
    found: &'a Found,
    fd: Rc<OwnedFd>,
    offset: u64,
    bytes: u64,
    /// The length of the file, with its last part.
    ends: Option<u64>,
}

impl<'a> Reader<'a> {
    fn new(progress: &'a Progress, troubles: &'a Troubles) -> Self {
        Self { progress, troubles, under_way: VecDeque::new(), ahead_bytes: 0 }
    }

    fn begin(&mut self, found: &'a Found, bytes: u64) {
        if let Err(error) = self.ask(found, bytes) {
            self.fail(&error);
        }
    }

    fn ask(&mut self, found: &'a Found, end: u64) -> haul_disk::Result<()> {
        let fd = Rc::new(open_quietly(found)?);
        // A read of the bytes that are waited for shall bring in nothing else.
        fadvise(&fd, 0, None, Advice::Random)
            .map_err(|errno| Error::new(Op::Cache, &found.path, errno))?;
        let mut offset = 0;
        while offset < end {
            let bytes = STEP_BYTES.min(end - offset);
            while self.ahead_bytes + bytes > AHEAD_BYTES || self.under_way.len() >= AHEAD_PIECES {
                self.wait_for_one();
            }
            warm(&*fd, offset, bytes)?;
            let ends = (offset + bytes == end).then_some(end);
            self.under_way.push_back(Piece { found, fd: Rc::clone(&fd), offset, bytes, ends });
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

impl Piece<'_> {
    /// Waits until it has been read.
    fn wait(&self) -> haul_disk::Result<()> {
        let mut at = self.offset;
        while at < self.offset + self.bytes {
            let end = (at + WAIT_BYTES).min(self.offset + self.bytes);
            match pread(&*self.fd, &mut [0], end - 1) {
                Ok(_) => at = end,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    return Err(Error::new(Op::Read, &self.found.path, errno).at(end - 1, 1));
                }
            }
        }
        Ok(())
    }
}

/// What really is in memory now. Files that cannot be asked any more were told of.
fn again(files: &[Found]) -> Cached {
    let mut sum = Cached::default();
    for found in files {
        if let Ok(cached) = open_quietly(found).and_then(|fd| cached(&found.path, &fd)) {
            sum += cached;
        }
    }
    sum
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
    done: Done,
    room: u64,
}

fn tell(args: &WarmArgs, told: &Told) -> Result {
    let Told { before, after, done, room } = told;
    let missing = after.missing() * page_bytes();
    let mut output = Output::new();
    if args.files.json {
        let mut summary = after.json();
        summary["kind"] = json!("summary");
        summary["resident_pages_before"] = json!(before.resident);
        summary["read_files"] = json!(done.amount.things);
        summary["read_bytes"] = json!(done.amount.bytes);
        summary["bytes_max"] = json!(room);
        output.line(summary)?;
    } else {
        output.line(format_args!("read {done}"))?;
        output.line(after)?;
        if missing > 0 {
            let why = match args.max_bytes {
                Some(_) => "--max-bytes",
                None => "the memory that was available",
            };
            output.line(format_args!(
                "{} are not in it: {why} had room for {}, or others needed it since",
                Bytes(missing),
                Bytes(*room)
            ))?;
        }
        if before.missing() == 0 {
            let (what, verb) =
                (Count(before.files, "file"), if before.files == 1 { "was" } else { "were" });
            output.line(format_args!("nothing to do: {what} {verb} there already"))?;
        }
    }
    output.finish()
}
