//! Measures small writes and reads by system calls against those through a buffer of the program,
//! as `fwrite` and `fread` have one.
//!
//! Text 000 recommends such a buffer, which turns many small writes into few system calls.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use haul_disk::{Disk, Open};
use haul_measure::{Error, Result, Watcher};

use super::require_space;
use crate::contest::{Contest, Field, Outcome, Stage, columns};
use crate::host::Host;
use crate::named::named;
use crate::options::{file_size, rounds, size};
use crate::report::{Column, Report};
use crate::write_modes::target_fs::TargetFs;

/// Options of `haul bench seed stdio`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the test file
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Lengths of a record, 1 B to 1MiB
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "16,64,256,1KiB,4KiB")]
    #[arg(value_parser = record_size)]
    pub sizes: Vec<u64>,
    /// Length of the file, which is in the page cache
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = file_size)]
    pub file_size: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
}

fn record_size(text: &str) -> Result<u64, String> {
    size(text, 1..=1 << 20, "1 B to 1MiB")
}

/// The length of the buffer, which is that of `fwrite` and `fread` for a file on Linux.
const BUFFER_BYTES: usize = 4096;

const NAME: &str = "data";
const MIB: f64 = 1024.0 * 1024.0;

named! {
    /// The method of a small write or read.
    enum Method {
        Write = "write",
        BufWriter = "write, buffered",
        Read = "read",
        BufReader = "read, buffered",
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Strategy {
    record_bytes: u64,
    method: Method,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} B", self.method, self.record_bytes)
    }
}

#[derive(Debug, Clone, Copy)]
struct Round {
    records: u64,
    bytes: u64,
    system_calls: u64,
    time: Duration,
}

const BAR: &str = "mib_per_s";

const FIELDS: &[Field<Strategy, Round>] = &[
    Field::parameter(Column::number("record_bytes", "bytes", 0), |strategy| {
        (strategy.record_bytes as f64).into()
    }),
    Field::label("way", "method", |strategy| strategy.method.name().into()),
    Field::spread(Column::number("mib_per_s", "MiB/s", 1), 3, rate),
    Field::median(Column::number("record_ns", "ns a record", 0).ranked(1), |round| {
        Some(round.time.as_secs_f64() * 1e9 / round.records as f64)
    }),
    Field::median(Column::number("calls_per_mib", "system calls/MiB", 0), |round| {
        Some(round.system_calls as f64 * MIB / round.bytes as f64)
    }),
];

fn rate(round: &Round) -> Option<f64> {
    Some(round.bytes as f64 / MIB / round.time.as_secs_f64())
}

/// A file with the number of its reads and writes, each of which is one system call.
struct Counted<'a> {
    file: &'a File,
    calls: &'a mut u64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        *self.calls += 1;
        self.file.read(buffer)
    }
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        *self.calls += 1;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs the experiment. The file is removed when this returns, and also when the process is killed.
///
/// # Errors
/// Returns [`Error::Cancelled`] if the watcher cancels, and the errors of the disk.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    require_space(&options.dir, options.file_size)?;
    let place = TargetFs::below(&options.dir, &[NAME])?;
    let mut report = Report::new("seed stdio", Host::here(), columns(FIELDS), BAR);
    report.host.storage.push(place.facts.clone());
    report.notes.push(options.note());
    report.notes.extend(haul_measure::load());
    let file = open(&place)?;
    let of = |bytes: &u64| {
        let record_bytes = *bytes;
        Method::ALL.map(|method| Strategy { record_bytes, method })
    };
    let mut contest = Contest::new(FIELDS, options.sizes.iter().flat_map(of));
    // Later rounds overwrite the pages that this first write puts into the page cache.
    measure(&file, 1 << 20, Method::Write, options.file_size)?;
    contest.run(&Stage::only(options.rounds, watcher), |strategy| {
        let Strategy { record_bytes, method } = *strategy;
        measure(&file, record_bytes, method, options.file_size).map(Outcome::Measured)
    })?;
    contest.report(&mut report, "", |strategy| strategy.record_bytes.to_string());
    for record_bytes in options.sizes.iter().copied() {
        let [write, buffered_write, read, buffered_read] =
            Method::ALL.map(|method| Strategy { record_bytes, method });
        for (name, a, b) in [("write", buffered_write, write), ("read", buffered_read, read)] {
            let name = format!("buffered_vs_{name}_{record_bytes}");
            report.ratio(name, contest.ratio(&a, &b, rate));
        }
    }
    Ok(report)
}

fn open(place: &TargetFs) -> Result<File> {
    let file = place.disk.create(NAME, Open::default())?;
    let missing = || Error::Missing("the file has no descriptor".to_owned());
    let copy = file.descriptor().ok_or_else(missing)?.as_fd().try_clone_to_owned();
    Ok(File::from(copy.map_err(Error::other("copy the descriptor of the test file"))?))
}

/// Writes or reads the whole file in records.
fn measure(file: &File, record_bytes: u64, method: Method, file_bytes: u64) -> Result<Round> {
    let what = || format!("{method} records of {record_bytes} B");
    let round = || -> io::Result<Round> {
        let mut record = vec![b'n'; usize::try_from(record_bytes).map_err(io::Error::other)?];
        let records = file_bytes / record_bytes;
        let mut position = file;
        position.rewind()?;
        let (mut system_calls, started) = (0, Instant::now());
        let mut counted = Counted { file, calls: &mut system_calls };
        match method {
            Method::Write => (0..records).try_for_each(|_| counted.write_all(&record))?,
            Method::BufWriter => {
                let mut writer = BufWriter::with_capacity(BUFFER_BYTES, counted);
                (0..records).try_for_each(|_| writer.write_all(&record))?;
                writer.flush()?;
            }
            Method::Read => (0..records).try_for_each(|_| counted.read_exact(&mut record))?,
            Method::BufReader => {
                let mut reader = BufReader::with_capacity(BUFFER_BYTES, counted);
                (0..records).try_for_each(|_| reader.read_exact(&mut record))?;
            }
        }
        let time = started.elapsed();
        Ok(Round { records, bytes: records * record_bytes, system_calls, time })
    };
    round().map_err(|source| Error::other(what())(source))
}

impl Options {
    fn note(&self) -> String {
        format!(
            "A file of {} MiB in the page cache, written or read in small records, without a sync; \
             {} interleaved rounds. \"buffered\" has a buffer of {BUFFER_BYTES} B in the program, \
             as fwrite and fread have. A ratio \"buffered_vs_b_N\" is the rate with the buffer \
             divided by the rate without it, for records of N bytes. The text has no figure.",
            self.file_size >> 20,
            self.rounds,
        )
    }
}
