//! An open store's known damage.

use std::collections::BTreeSet;

use haul_sync::Mutex;

use crate::damage::place::Damage;
use crate::error::Error;
use crate::index::version_names::readable;

/// The maximum number of recorded places: a disk that fails completely must not fill the memory.
const PLACES_MAX: usize = 10_000;

/// The damage found at opening and since then.
#[derive(Debug, Default)]
pub(crate) struct FoundDamage {
    places: Mutex<BTreeSet<Damage>>,
    /// The places that may hide unknown keys.
    hidden: Mutex<Vec<Damage>>,
}

impl FoundDamage {
    /// Records what was found when the store was opened: damaged places, and places that may hide
    /// unknown keys.
    pub(crate) fn new(damage: &[Damage], hidden: &[Damage]) -> Self {
        let places = damage.iter().take(PLACES_MAX).cloned().collect();
        Self { places: Mutex::new(places), hidden: Mutex::new(hidden.to_vec()) }
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

    /// Records a damaged place. Returns `false` if it is already known.
    pub(crate) fn add(&self, damage: Damage) -> bool {
        let mut places = self.places.lock();
        let is_known = places.iter().any(|known| {
            (&known.file, known.offset, &known.key) == (&damage.file, damage.offset, &damage.key)
        });
        !is_known && places.len() < PLACES_MAX && places.insert(damage)
    }

    pub(crate) fn places(&self) -> Vec<Damage> {
        self.places.lock().iter().cloned().collect()
    }

    /// Returns the places that may hide unknown keys.
    pub(crate) fn hidden(&self) -> Vec<Damage> {
        self.hidden.lock().clone()
    }

    /// Returns the number of damaged places, and the number of places that may hide keys.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.places.lock().len() as u64, self.hidden.lock().len() as u64)
    }

    /// Clears and returns the list of hidden places.
    pub(crate) fn accept_hidden(&self) -> Vec<Damage> {
        let hidden = std::mem::take(&mut *self.hidden.lock());
        let mut places = self.places.lock();
        for damage in &hidden {
            if let Some(mut accepted) = places.take(damage) {
                accepted.what += "; the loss was accepted";
                places.insert(accepted);
            }
        }
        hidden
    }
}
