//! An open store's known damage.

use std::collections::BTreeSet;

use haul_sync::Mutex;

use crate::damage::report::Damage;
use crate::error::Error;
use crate::index::version_names::readable;

/// The maximum number of reports: a disk that fails completely must not fill the memory.
const REPORTS_MAX: usize = 10_000;

/// The damage found at opening and since then.
#[derive(Debug, Default)]
pub(crate) struct FoundDamage {
    reports: Mutex<BTreeSet<Damage>>,
    /// The reports of damage that may hide unknown keys.
    hidden: Mutex<Vec<Damage>>,
}

impl FoundDamage {
    /// Records the damage that opening the store found, and the part of it that may hide unknown
    /// keys.
    pub(crate) fn new(damage: &[Damage], hidden: &[Damage]) -> Self {
        let reports = damage.iter().take(REPORTS_MAX).cloned().collect();
        Self { reports: Mutex::new(reports), hidden: Mutex::new(hidden.to_vec()) }
    }

    /// Records the damage that reading an object found.
    pub(crate) fn note(&self, bucket: &str, key: &str, error: &Error) {
        if let Error::Damaged { file, offset, what } = error {
            let (bucket, key) = readable(bucket, key);
            let (bucket, key) = (Some(bucket), Some(key));
            let (file, what) = (file.clone(), what.clone());
            self.add(Damage { bucket, key, file, offset: *offset, what });
        }
    }

    /// Adds a report. Returns `false` if the damage is already known.
    pub(crate) fn add(&self, damage: Damage) -> bool {
        let mut reports = self.reports.lock();
        let is_known = reports.iter().any(|known| {
            (&known.file, known.offset, &known.key) == (&damage.file, damage.offset, &damage.key)
        });
        !is_known && reports.len() < REPORTS_MAX && reports.insert(damage)
    }

    pub(crate) fn reports(&self) -> Vec<Damage> {
        self.reports.lock().iter().cloned().collect()
    }

    /// Returns the reports of damage that may hide unknown keys.
    pub(crate) fn hidden(&self) -> Vec<Damage> {
        self.hidden.lock().clone()
    }

    /// Returns the number of reports, and the number of hidden ranges.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.reports.lock().len() as u64, self.hidden.lock().len() as u64)
    }

    /// Clears and returns the reports of damage that may hide unknown keys.
    pub(crate) fn accept_hidden(&self) -> Vec<Damage> {
        let hidden = std::mem::take(&mut *self.hidden.lock());
        let mut reports = self.reports.lock();
        for damage in &hidden {
            if let Some(mut accepted) = reports.take(damage) {
                accepted.what += "; the loss was accepted";
                reports.insert(accepted);
            }
        }
        hidden
    }
}
