//! Line logs whose files a target edits, and checks of what reading and continuing them does.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use haul_disk::{Disk, File, Open, write_full};
use haul_disk_sim::{Medium, MemoryDisk, Survival};
use haul_line_log::{
    Clock, Compression, CopyReport, Environment, LineLog, Options, Result, Retention, StampFormat,
    Stamper, SyncMode, TimeRange, copy_lines_on,
};

use crate::edit::Editable;

/// The number of lines of a log.
const LINES: u64 = 200;

/// The time of the first line in microseconds.
const START_US: u64 = 1_795_245_794_500_000;

/// A log before it is edited.
#[derive(Debug)]
pub(crate) struct LineLogBase {
    /// The disk of the log.
    pub(crate) medium: Medium,
    /// The files with lines.
    pub(crate) files: Vec<Editable>,
    options: Options,
}

/// A log with closed files, and one whose closed files are compressed.
pub(crate) static LINE_LOGS: LazyLock<Vec<LineLogBase>> =
    LazyLock::new(|| [None, Some(Compression::ZSTD)].into_iter().map(LineLogBase::new).collect());

/// A clock that shows the same time whenever it is read.
#[derive(Debug)]
struct FixedClock;

impl Clock for FixedClock {
    fn now_us(&self) -> u64 {
        START_US + 1_000_000 * LINES
    }

    fn modified_us(&self, _file: &dyn File) -> Option<u64> {
        Some(self.now_us())
    }

    fn local_offset(&self, _utc: i64) -> i64 {
        3600
    }
}

fn line(number: u64) -> Vec<u8> {
    let time = std::time::UNIX_EPOCH + Duration::from_micros(START_US + number * 1_000_000);
    let text = format!("line {number:04} {}\n", "x".repeat(60));
    Stamper::new(StampFormat::Utc).stamp(text.as_bytes(), time).to_vec()
}

fn open(disk: &MemoryDisk, options: &Options) -> Result<LineLog> {
    let environment = Environment { clock: Arc::new(FixedClock), ..Environment::default() };
    LineLog::open_on(Arc::new(disk.clone()), options.clone(), environment)
}

/// Reads the lines of a log, at most as many as the edits of a log can make.
fn read(disk: &dyn Disk, range: TimeRange) -> (Vec<u8>, Result<CopyReport>) {
    const BYTES_MAX: usize = 16 << 20;
    let mut lines = Vec::new();
    let mut sink = |_file: &str, bytes: &[u8]| {
        lines.extend_from_slice(bytes);
        lines.len() < BYTES_MAX
    };
    let report = copy_lines_on(disk, range, &FixedClock, &mut sink);
    (lines, report)
}

impl LineLogBase {
    fn new(compress: Option<Compression>) -> Self {
        let options = Options {
            buffer_bytes: 4 << 10,
            buffers: 2,
            file_bytes_max: Some(4096),
            compress,
            sync: SyncMode::Never,
            keep: Retention { files_max: None, ..Retention::default() },
            ..Options::default()
        };
        let disk = MemoryDisk::default();
        let log = open(&disk, &options).unwrap();
        let lines: Vec<_> = (0..LINES).map(line).collect();
        for line in &lines {
            log.append(line).unwrap();
            log.write_out().unwrap();
        }
        log.wait_for_compression();
        log.close().unwrap();
        let (found, report) = read(&disk, TimeRange::default());
        assert!(report.unwrap().failures.is_empty() && found == lines.concat());
        let mut medium = disk.medium().cut(Survival::Everything);
        let names: Vec<String> = medium.file_names().map(str::to_owned).collect();
        let with_lines = names.iter().filter(|name| *name != "LOCK");
        let files: Vec<_> =
            with_lines.map(|name| Editable::by_sectors(name, &medium.file(name))).collect();
        assert!(files.len() > 3, "{names:?}");
        Self { medium, files, options }
    }

    /// Reads an edited log, to which a file with this name was added; then continues it, and checks
    /// that the new line is the last.
    ///
    /// # Panics
    /// If that is not so.
    pub(crate) fn check(&self, medium: &Medium, name: &str, range: TimeRange) {
        let disk = MemoryDisk::on(medium);
        let is_name = !name.is_empty() && !name.contains(['/', '\0']) && name.len() < 256;
        if is_name && !matches!(name, "." | "..") && disk.open(name, Open::default()).is_err() {
            let file = disk.create(name, Open::default()).unwrap();
            write_full(&*file, b"a line of another file\n", 0).unwrap();
        }
        let (some, report) = read(&disk, range);
        let (all, _) = read(&disk, TimeRange::default());
        if let Ok(report) = report {
            assert!(report.bytes <= some.len() as u64, "{report:?}, {} bytes", some.len());
        }
        assert!(some.len() <= all.len(), "a range has more lines than the log");
        let Ok(log) = open(&disk, &self.options) else { return };
        let is_appended = log.append(b"the newest line\n").is_ok() && log.close().is_ok();
        if is_appended {
            let (lines, _) = read(&disk, TimeRange::default());
            assert!(lines.ends_with(b"the newest line\n"), "it is not the last");
        }
    }
}
