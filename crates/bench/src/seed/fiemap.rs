//! Measures the cost of asking for the physical positions of many files with FIEMAP.
//!
//! Text 004 sorts 50,000 files by these positions, which takes less than a second and needs no
//! root.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haul_disk::{first_extent, probe};
use haul_measure::{Error, Result, Watcher};

use super::{compare, require_space};
use crate::contest::{Contest, Field, Outcome, Stage, columns};
use crate::guardian::Guardian;
use crate::host::Host;
use crate::named::named;
use crate::options::{count, rounds};
use crate::report::{Column, Report};

/// Options of `haul bench seed fiemap`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the files
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Number of files of 4 KiB; the text has 50,000
    #[arg(long, value_name = "N", default_value = "10000", value_parser = count(1..=10_000_000))]
    pub files: usize,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "3", value_parser = rounds())]
    pub rounds: usize,
}

/// The number of files in the text.
const TEXT_FILES: f64 = 50_000.0;

/// A shell script that waits for EOF on stdin, and then removes the directory `$1`.
const REMOVE: &str = r#"
cat > /dev/null
rm -rf -- "$1"
"#;

named! {
    /// The system calls for each file.
    enum Method {
        Open = "open",
        OpenFiemap = "open + FIEMAP",
    }
}

#[derive(Debug, Clone, Copy)]
struct Round {
    files: usize,
    time: Duration,
    /// The files whose position is known.
    found: usize,
}

const BAR: &str = "text_files_s";

const FIELDS: &[Field<Method, Round>] = &[
    Field::label("way", "method", |method| method.name().into()),
    Field::spread(Column::number("text_files_s", "s for 50,000 files", 3), 3, seconds),
    Field::median(Column::number("file_us", "µs a file", 2), |round| {
        Some(round.time.as_secs_f64() * 1e6 / round.files as f64)
    }),
    Field::median(Column::number("files", "files", 0), |round| Some(round.files as f64)),
    Field::median(Column::number("found", "positions", 0), |round| Some(round.found as f64)),
];

/// Returns the time for as many files as in the text.
fn seconds(round: &Round) -> Option<f64> {
    Some(round.time.as_secs_f64() * TEXT_FILES / round.files as f64)
}

/// Runs the experiment. The files are removed when this returns, and also when the process is
/// killed.
///
/// # Errors
/// Returns [`Error::Cancelled`] if the watcher cancels, and the errors of the disk.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    require_space(&options.dir, options.files as u64 * 4096)?;
    let host = Host::here().with_storage("", &probe(&options.dir)?);
    let mut report = Report::new("seed fiemap", host, columns(FIELDS), BAR);
    report.notes.push(format!(
        "{} files of 4 KiB in one directory, whose inodes are in memory; {} interleaved rounds; no \
         root. The text: less than a second for 50,000 files.",
        options.files, options.rounds
    ));
    report.notes.extend(haul_measure::load());
    watcher.step(0, 1, "writing the files");
    let dir = options.dir.join(format!("haul-bench-{}", std::process::id()));
    let _guardian = Guardian::with(REMOVE, &[dir.as_os_str()])?;
    let paths = create(&dir, options.files, watcher)?;
    let mut contest = Contest::new(FIELDS, Method::ALL);
    contest.run(&Stage::only(options.rounds, watcher), |method| {
        measure(&paths, *method).map(Outcome::Measured)
    })?;
    contest.report(&mut report, "", |_| String::new());
    report.amount("fiemap_s_50000", contest.samples(&Method::OpenFiemap, seconds));
    compare(&mut report, "", &[("fiemap_s_50000", 1.0)]);
    Ok(report)
}

fn create(dir: &Path, files: usize, watcher: &dyn Watcher) -> Result<Vec<PathBuf>> {
    let what = || format!("write the files in {}", dir.display());
    let failed = |source| Error::other(what())(source);
    std::fs::create_dir(dir).map_err(failed)?;
    let paths: Vec<_> = (0..files).map(|number| dir.join(number.to_string())).collect();
    for path in &paths {
        watcher.check()?;
        std::fs::write(path, [b'n'; 4096]).map_err(failed)?;
    }
    // Blocks are allocated, so that the files have positions.
    let top = File::open(dir).map_err(failed)?;
    rustix::fs::syncfs(&top).map_err(Error::other(what()))?;
    Ok(paths)
}

fn measure(paths: &[PathBuf], method: Method) -> Result<Round> {
    let mut positions = Vec::with_capacity(paths.len());
    let started = Instant::now();
    for path in paths {
        let file = File::open(path).map_err(Error::other("open a file"))?;
        if method == Method::OpenFiemap {
            let extent = first_extent(&OwnedFd::from(file))?;
            positions.extend(extent.and_then(|extent| extent.device_offset()));
        }
    }
    positions.sort_unstable();
    Ok(Round { files: paths.len(), time: started.elapsed(), found: positions.len() })
}
