//! Damage as it is reported.

use std::path::PathBuf;

use haul_append_log as log;

/// Bytes that are not what was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Damage {
    /// The bucket of the object they belong to, where that is known.
    pub bucket: Option<String>,
    /// Its key, where that is known.
    pub key: Option<String>,
    /// The file they are in.
    pub file: PathBuf,
    /// Where in the file.
    pub offset: u64,
    /// What does not fit.
    pub what: String,
}

impl From<log::Damage> for Damage {
    fn from(damage: log::Damage) -> Self {
        let log::Damage { file, offset, what, end: _ } = damage;
        Self { bucket: None, key: None, file, offset, what }
    }
}

impl Damage {
    /// Damage to something that belongs to no object.
    pub(crate) fn of_file(file: PathBuf, offset: u64, what: impl Into<String>) -> Self {
        Self { bucket: None, key: None, file, offset, what: what.into() }
    }
}
