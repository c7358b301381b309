//! A damage report.

use std::path::PathBuf;

use haul_append_log as log;

/// Bytes that fail their checksum, or are missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Damage {
    /// The bucket of the affected object, if known.
    pub bucket: Option<String>,
    /// The key of the affected object, if known.
    pub key: Option<String>,
    /// The path of the corrupt file.
    pub file: PathBuf,
    /// The offset of the first corrupt or missing byte.
    pub offset: u64,
    /// The check that failed.
    pub what: String,
}

impl From<log::Damage> for Damage {
    fn from(damage: log::Damage) -> Self {
        let log::Damage { file, offset, what, end: _ } = damage;
        Self { bucket: None, key: None, file, offset, what }
    }
}

impl Damage {
    /// Creates a report for damage that affects no known object.
    pub(crate) fn in_file(file: PathBuf, offset: u64, what: impl Into<String>) -> Self {
        Self { bucket: None, key: None, file, offset, what: what.into() }
    }
}
