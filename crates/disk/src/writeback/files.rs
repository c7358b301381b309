//! Reads the kernel's files in `/proc` and `/sys`, and changes settings in them.

use std::cell::RefCell;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::device::active_scheduler;
use crate::error::{Error, Op, Result};
use crate::units::PAGE_BYTES;

/// A file in `/proc` or `/sys` that is missing, unreadable or malformed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly {
    /// The file's path, such as `/proc/meminfo`.
    pub path: String,
    /// The problem, as a predicate for the path, such as "is missing".
    pub what: String,
}

/// The kernel's files in `/proc` and `/sys` below a root directory: `/`, or a directory that a test
/// lays out. Methods take paths without the root, such as `/proc/meminfo`.
#[derive(Debug)]
pub struct KernelFiles {
    root: PathBuf,
    page_bytes: u64,
    anomalies: RefCell<Vec<Anomaly>>,
}

impl Default for KernelFiles {
    fn default() -> Self {
        let page_bytes = rustix::param::page_size() as u64;
        Self { page_bytes, ..Self::below("/") }
    }
}

impl KernelFiles {
    /// Returns the kernel files below `root`, with a page size of 4 KiB.
    #[must_use]
    pub fn below(root: impl Into<PathBuf>) -> Self {
        let page_bytes = PAGE_BYTES as u64;
        Self { root: root.into(), page_bytes, anomalies: RefCell::default() }
    }

    /// Returns the anomalies found in the files read so far, at most one per file.
    #[must_use]
    pub fn anomalies(&self) -> Vec<Anomaly> {
        self.anomalies.borrow().clone()
    }

    /// Reads the setting at `path`: a single word, such as a number, or the word in brackets in a
    /// word list.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or contains neither a single word nor a word in brackets.
    pub fn setting(&self, path: &str) -> Result<String> {
        let at = self.at(path);
        let fail = |source| Error::new(Op::Read, &at, source);
        let text = fs::read_to_string(&at).map_err(fail)?;
        active_scheduler(&text).ok_or_else(|| {
            let why = format!("expected a number or a word in brackets, found {:?}", text.trim());
            fail(io::Error::new(io::ErrorKind::InvalidData, why))
        })
    }

    /// Checks that the setting at `path` may be changed, without changing it.
    ///
    /// # Errors
    /// Fails if the file cannot be opened for writing.
    pub fn may_set(&self, path: &str) -> Result<()> {
        let at = self.at(path);
        OpenOptions::new().write(true).open(&at).map_err(|why| Error::new(Op::Open, &at, why))?;
        Ok(())
    }

    /// Changes the setting at `path` and verifies that the kernel accepted the value.
    ///
    /// # Errors
    /// Fails if the file cannot be written, or if the kernel returns another value when the file is
    /// read after the write.
    ///
    /// # Durability
    /// None: the setting is lost at reboot.
    pub fn set(&self, path: &str, value: &str) -> Result<()> {
        let at = self.at(path);
        let fail = |source| Error::new(Op::Write, &at, source);
        let mut file = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&at)
            .map_err(|why| Error::new(Op::Open, &at, why))?;
        // The value is written in one call, since the kernel takes each write for a whole value.
        file.write_all(value.as_bytes()).map_err(fail)?;
        let now = self.setting(path)?;
        if now == value {
            return Ok(());
        }
        Err(fail(io::Error::other(format!("wrote {value}, but it reads back as {now}"))))
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Returns a kernel file's path below the root.
    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Reads a file that may be missing; `None` if it is. Any other problem is recorded as an
    /// [`Anomaly`].
    pub(super) fn text(&self, path: &str) -> Option<String> {
        match fs::read(self.at(path)) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            // InvalidInput: the file exists, but the device lacks the feature.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound
                        | io::ErrorKind::NotADirectory
                        | io::ErrorKind::InvalidInput
                ) =>
            {
                None
            }
            Err(error) => {
                self.report(path, format!("cannot be read: {error}"));
                None
            }
        }
    }

    /// Reads a file that every kernel has; records an [`Anomaly`] if it is missing.
    pub(super) fn required(&self, path: &str) -> Option<String> {
        let text = self.text(path);
        if text.is_none() {
            self.report(path, "is missing");
        }
        text
    }

    /// Reads the number in a file that may be missing.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.number_in(path, &self.text(path)?)
    }

    /// Reads the number in a file that every kernel has.
    pub(super) fn required_number(&self, path: &str) -> Option<u64> {
        self.number_in(path, &self.required(path)?)
    }

    fn number_in(&self, path: &str, text: &str) -> Option<u64> {
        let number = text.trim().parse().ok();
        if number.is_none() {
            self.report_malformed(path, text);
        }
        number
    }

    /// Records that `text`, the content of the file at `path`, is malformed.
    pub(super) fn report_malformed(&self, path: &str, text: &str) {
        const SHOWN_MAX: usize = 40;
        let mut shown: String = text.trim().chars().take(SHOWN_MAX).collect();
        if shown.len() < text.trim().len() {
            shown.push('…');
        }
        self.report(path, format!("contains {shown:?}, which cannot be parsed"));
    }

    fn report(&self, path: &str, what: impl Into<String>) {
        let anomaly = Anomaly { path: path.to_owned(), what: what.into() };
        let mut anomalies = self.anomalies.borrow_mut();
        if !anomalies.iter().any(|known| known.path == anomaly.path) {
            anomalies.push(anomaly);
        }
    }
}
