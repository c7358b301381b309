//! Measures relaying a file to a socket through a new pipe for each call, through one pipe that is
//! reused, and by copies.
//!
//! Text 002 finds that `splice` gains nothing for empty bodies, that it is 1.5 times as fast as
//! copies through a buffer of 1 KiB for bodies of 1 MiB, and that a pipe for each call is waste.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use haul_measure::{Error, Latencies, Result, Watcher};
use haul_units::parse_time;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use rustix::time::{ClockId, clock_gettime};

use crate::benchmark::Benchmark;
use crate::contest::{Contest, Field, Outcome, Stage, new_report, number};
use crate::named::named;
use crate::options::{rounds, size_in};
use crate::reads::joined;
use crate::report::Report;

/// The benchmark `splice`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct SpliceBench {
    /// Lengths of a body, 1 B to 64MiB
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1KiB,64KiB,1MiB")]
    #[arg(value_parser = size_in(1..=64 << 20, "1 B to 64MiB"))]
    pub sizes: Vec<u64>,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Duration of one measurement, such as 1s
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = parse_time)]
    pub seconds: Duration,
}

named! {
    /// The method by which a body moves from the file to the socket.
    enum Method {
        /// `splice` through a pipe that is created for the body.
        OwnPipe = "splice, a pipe per call",
        /// `splice` through one pipe.
        ReusedPipe = "splice, reused pipe",
        /// `pread` and `write` with a buffer of 1 KiB.
        ShortCopies = "read + write, 1 KiB",
        /// `pread` and `write` with a buffer of 64 KiB.
        LongCopies = "read + write, 64 KiB",
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Strategy {
    bytes: u64,
    method: Method,
}

/// The bodies of a round.
#[derive(Debug, Clone)]
struct Round {
    bodies: u64,
    time: Duration,
    latencies: Latencies,
    system_calls: u64,
    cpu: Duration,
}

const FIELDS: &[Field<Strategy, Round>] = &[
    number("bytes", "bytes", 0).label(|it| it.bytes.into()),
    Field::label("way", "method", |strategy| strategy.method.name().into()),
    number("bodies_per_s", "bodies/s", 0).spread(6, rate),
    number("median_us", "µs", 1).percentile_us(50.0, |round| &round.latencies),
    number("cpu_us", "CPU µs", 2).median(cpu_us),
    number("system_calls", "system calls", 1)
        .median(|it| Some(it.system_calls as f64 / it.bodies as f64)),
];

fn rate(round: &Round) -> Option<f64> {
    Some(round.bodies as f64 / round.time.as_secs_f64())
}

fn cpu_us(round: &Round) -> Option<f64> {
    Some(round.cpu.as_secs_f64() * 1e6 / round.bodies as f64)
}

impl Benchmark for SpliceBench {
    const NAME: &'static str = "splice";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let mut report = new_report(Self::NAME, FIELDS, self.note());
        report.notes.extend(haul_measure::load());
        let longest = self.sizes.iter().copied().max().unwrap_or(1);
        let file = file(longest)?;
        let of = |bytes: &u64| {
            let bytes = *bytes;
            Method::ALL.map(|method| Strategy { bytes, method })
        };
        let mut contest = Contest::new(FIELDS, self.sizes.iter().flat_map(of));
        contest.run(&Stage::only(self.rounds, watcher), |strategy| {
            let measured = measure(&file, *strategy, self.seconds);
            measured.map(Outcome::Measured).map_err(Error::other("relay a body"))
        })?;
        contest.report(&mut report, "", |strategy| strategy.bytes.to_string());
        for bytes in self.sizes.iter().copied() {
            let [own, reused, short, long] = Method::ALL.map(|method| Strategy { bytes, method });
            for (name, a, b) in [
                ("reused_vs_own_pipe", reused, own),
                ("reused_vs_copies_1k", reused, short),
                ("reused_vs_copies_64k", reused, long),
            ] {
                report.ratio(format!("{name}_{bytes}"), contest.ratio(&a, &b, rate));
                report.ratio(format!("{name}_{bytes}_cpu"), contest.ratio(&b, &a, cpu_us));
            }
        }
        Ok(report)
    }
}

/// Creates a file of `bytes` bytes in memory.
fn file(bytes: u64) -> Result<OwnedFd> {
    let failed = Error::other("create a file in memory");
    let create = || -> io::Result<OwnedFd> {
        let file = memfd_create("haul-bench", MemfdFlags::CLOEXEC)?;
        let chunk = vec![b'n'; 1 << 20];
        for at in (0..bytes).step_by(chunk.len()) {
            rustix::io::pwrite(&file, &chunk, at)?;
        }
        Ok(file)
    };
    create().map_err(failed)
}

/// Relays bodies for `time` to a socket, whose other end a thread reads.
fn measure(file: &OwnedFd, strategy: Strategy, time: Duration) -> io::Result<Round> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let to = TcpStream::connect(listener.local_addr()?)?;
    let (from, _) = listener.accept()?;
    let (round, received) = thread::scope(|scope| {
        let sink = scope.spawn(move || io::copy(&mut &from, &mut io::sink()));
        let round = relay(file, to, strategy, time);
        (round, joined(sink))
    });
    let (round, received) = (round?, received?);
    if received != round.bodies * strategy.bytes {
        let why = format!("{received} B arrived of {} bodies", round.bodies);
        return Err(io::Error::other(why));
    }
    Ok(round)
}

/// Relays bodies, and closes the socket.
fn relay(file: &OwnedFd, to: TcpStream, strategy: Strategy, time: Duration) -> io::Result<Round> {
    let Strategy { bytes, method } = strategy;
    let pipe = pipe_with(PipeFlags::CLOEXEC)?;
    let mut buffer = vec![0; if method == Method::ShortCopies { 1 << 10 } else { 64 << 10 }];
    let (mut bodies, mut system_calls, mut latencies) = (0, 0, Latencies::default());
    let (before, started) = (thread_cpu(), Instant::now());
    while bodies == 0 || started.elapsed() < time {
        let began = Instant::now();
        system_calls += match method {
            Method::OwnPipe => {
                let own = pipe_with(PipeFlags::CLOEXEC)?;
                // One call creates a pipe, and two close its ends.
                spliced(file, &own, &to, bytes)? + 3
            }
            Method::ReusedPipe => spliced(file, &pipe, &to, bytes)?,
            Method::ShortCopies | Method::LongCopies => copied(file, &mut buffer, &to, bytes)?,
        };
        latencies.record(began.elapsed());
        bodies += 1;
    }
    let time = started.elapsed();
    let cpu = thread_cpu().saturating_sub(before);
    Ok(Round { bodies, time, latencies, system_calls, cpu })
}

/// Returns the CPU time of this thread.
fn thread_cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Moves a body through a pipe; returns the number of system calls.
fn spliced(
    file: &OwnedFd,
    (reader, writer): &(OwnedFd, OwnedFd),
    to: &TcpStream,
    bytes: u64,
) -> io::Result<u64> {
    let (mut at, mut calls) = (0, 0);
    while at < bytes {
        let left = usize::try_from(bytes - at).unwrap_or(usize::MAX);
        let mut pending = splice(file, Some(&mut at), writer, None, left, SpliceFlags::MOVE)?;
        calls += 1;
        if pending == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        while pending > 0 {
            pending -= splice(reader, None, to, None, pending, SpliceFlags::MOVE)?;
            calls += 1;
        }
    }
    Ok(calls)
}

/// Copies a body through a buffer; returns the number of system calls.
fn copied(file: &OwnedFd, buffer: &mut [u8], to: &TcpStream, bytes: u64) -> io::Result<u64> {
    let (mut at, mut calls) = (0, 0);
    while at < bytes {
        let left = usize::try_from(bytes - at).unwrap_or(usize::MAX).min(buffer.len());
        let read = rustix::io::pread(file, &mut buffer[..left], at)?;
        calls += 1;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut rest = &buffer[..read];
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(to, rest)?..];
            calls += 1;
        }
        at += read as u64;
    }
    Ok(calls)
}

impl SpliceBench {
    fn note(&self) -> String {
        format!(
            "Bodies from a file in memory to a socket on loopback, whose other end a thread of \
             this program reads; {} interleaved rounds of {} ms. CPU and system calls are those of \
             the relaying thread per body; pipes have 64 KiB. A ratio \"a_vs_b_N\" is the rate of \
             a divided by that of b for bodies of N bytes, with \"_cpu\" the CPU time of b divided \
             by that of a.",
            self.rounds,
            self.seconds.as_millis(),
        )
    }
}
