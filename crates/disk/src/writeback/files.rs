//! `/proc` and `/sys`: read, and where they are settings, written.

use std::cell::RefCell;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Op, Result};
use crate::probe::queue::active_scheduler;
use crate::units::PAGE_BYTES;

/// Something in `/proc` or `/sys` that is not there, or is not what the kernel writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oddity {
    /// The file, such as `/proc/meminfo`.
    pub path: String,
    /// What is wrong with it.
    pub what: String,
}

/// The kernel's own files, `/proc` and `/sys`, below a root: `/`, or wherever a test laid
/// them out. Paths are given without the root, as in `/proc/meminfo`.
#[derive(Debug)]
pub struct KernelFiles {
    root: PathBuf,
    page_bytes: u64,
    oddities: RefCell<Vec<Oddity>>,
}

impl Default for KernelFiles {
    fn default() -> Self {
        let page_bytes = rustix::param::page_size() as u64;
        Self { page_bytes, ..Self::below("/") }
    }
}

impl KernelFiles {
    /// Those laid out below `root`, by a machine with pages of 4 KiB.
    #[must_use]
    pub fn below(root: impl Into<PathBuf>) -> Self {
        let page_bytes = PAGE_BYTES as u64;
        Self { root: root.into(), page_bytes, oddities: RefCell::default() }
    }

    /// What was strange in all that was read so far, each once.
    #[must_use]
    pub fn oddities(&self) -> Vec<Oddity> {
        self.oddities.borrow().clone()
    }

    /// What the setting at `path` is: a number, or the word in brackets among others.
    ///
    /// # Errors
    /// When it cannot be read, or is none of these.
    pub fn setting(&self, path: &str) -> Result<String> {
        let at = self.at(path);
        let fail = |source| Error::new(Op::Read, &at, source);
        let text = fs::read_to_string(&at).map_err(fail)?;
        active_scheduler(&text).ok_or_else(|| {
            let why = format!("{:?} is no setting", text.trim());
            fail(io::Error::new(io::ErrorKind::InvalidData, why))
        })
    }

    /// Finds out whether the setting at `path` may be changed, without changing it.
    ///
    /// # Errors
    /// When it may not.
    pub fn may_set(&self, path: &str) -> Result<()> {
        let at = self.at(path);
        OpenOptions::new().write(true).open(&at).map_err(|why| Error::new(Op::Open, &at, why))?;
        Ok(())
    }

    /// Changes the setting at `path`, and makes sure that the kernel took it.
    ///
    /// # Errors
    /// When it cannot be written, or is something else afterwards.
    ///
    /// # Durability
    /// None: it lasts until the machine is started again.
    pub fn set(&self, path: &str, value: &str) -> Result<()> {
        let at = self.at(path);
        let fail = |source| Error::new(Op::Write, &at, source);
        let mut file = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&at)
            .map_err(|why| Error::new(Op::Open, &at, why))?;
        // In one call: what the kernel gets is what it takes for the whole value.
        file.write_all(value.as_bytes()).map_err(fail)?;
        let now = self.setting(path)?;
        if now == value {
            return Ok(());
        }
        Err(fail(io::Error::other(format!("{value} was written, and it is {now} now"))))
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Where the file is.
    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The text of a file that may well not be there.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        match fs::read(self.at(path)) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            // A device without the feature has the file, and refuses to be asked.
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
                self.strange(path, format!("cannot be read: {error}"));
                None
            }
        }
    }

    /// The text of a file every kernel has.
    pub(super) fn needed(&self, path: &str) -> Option<String> {
        let text = self.text(path);
        if text.is_none() {
            self.strange(path, "is not there");
        }
        text
    }

    /// The number in a file that may well not be there.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.number_in(path, &self.text(path)?)
    }

    /// The number in a file every kernel has.
    pub(super) fn needed_number(&self, path: &str) -> Option<u64> {
        self.number_in(path, &self.needed(path)?)
    }

    fn number_in(&self, path: &str, text: &str) -> Option<u64> {
        let number = text.trim().parse().ok();
        if number.is_none() {
            self.not_understood(path, text);
        }
        number
    }

    /// Notes that `text` of the file at `path` could not be understood.
    pub(super) fn not_understood(&self, path: &str, text: &str) {
        const SHOWN_MAX: usize = 40;
        let mut shown: String = text.trim().chars().take(SHOWN_MAX).collect();
        if shown.len() < text.trim().len() {
            shown.push('…');
        }
        self.strange(path, format!("says {shown:?}, which is not understood"));
    }

    fn strange(&self, path: &str, what: impl Into<String>) {
        let oddity = Oddity { path: path.to_owned(), what: what.into() };
        let mut oddities = self.oddities.borrow_mut();
        if !oddities.iter().any(|known| known.path == oddity.path) {
            oddities.push(oddity);
        }
    }
}
