//! Loads a checkpoint when a store is opened.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_append_log::Lsn;
use haul_disk::{Disk, File, Open, read_full};

use crate::catalog::chunks;
use crate::catalog::format::{Catalog, CatalogVolume, decode_changes, decode_state};
use crate::error::{Error, Result};
use crate::index::hash::KeyHash;
use crate::index::keys::Keys;
use crate::index::locations::Locations;
use crate::index::locations::dump::Loader;
use crate::index::runs::run::Run;
use crate::index::{Index, LocationChange};
use crate::names::{self, IndexFile};

/// The number of changes to the location table that are sorted and applied together.
const SORTED_CHANGES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) index: Index,
    pub(crate) catalog: Catalog,
    /// The nonces of the checkpoint's volumes, by volume number.
    pub(crate) nonces: BTreeMap<u32, u64>,
}

/// Loads the checkpoint; `None` if there is none. Rebuilds the location table from the runs if only
/// the table is damaged.
///
/// # Errors
/// [`Error::Damaged`] or [`Error::Invalid`] if the index must be rebuilt from the volumes: the
/// checkpoint is damaged, or older than `checkpoint_min`. A failed system call.
pub(crate) fn load(
    disk: &dyn Disk,
    volume_bytes: u64,
    checkpoint_min: Lsn,
) -> Result<Option<Loaded>> {
    let Some(catalog) = read_catalog(disk)? else { return Ok(None) };
    if catalog.applied < checkpoint_min {
        return Err(invalid("the checkpoint is older than the manifest"));
    }
    let runs = open_runs(disk, &catalog)?;
    let hash = KeyHash { secret: catalog.secret };
    let mut index = Index::new(Keys::new(runs), hash, volume_bytes);
    let volumes = decode_state(&catalog.state, &mut index)
        .ok_or_else(|| invalid("the catalog is malformed"))?;
    match load_locations(disk, &catalog) {
        Ok(locations) => index.locations = locations,
        Err(error) if is_unusable(&error) => {
            index.locations = locations_from_keys(&index)?;
            index.location_changes = None;
        }
        Err(other) => return Err(other),
    }
    let (located, counted) = (index.locations.len(), index.objects());
    if located != counted {
        return Err(invalid(format!(
            "the location table has {located} objects, the buckets have {counted}"
        )));
    }
    let nonce = |volume: CatalogVolume| (volume.number, volume.nonce);
    let nonces = volumes.into_iter().map(nonce).collect();
    Ok(Some(Loaded { index, catalog, nonces }))
}

/// Returns `true` if rebuilding the index repairs the cause of this load error.
pub(crate) fn is_unusable(error: &Error) -> bool {
    match error {
        Error::Damaged { .. } | Error::Invalid { .. } => true,
        Error::Disk(error) => error.is_not_found(),
        _ => false,
    }
}

fn invalid(what: impl Into<String>) -> Error {
    Error::Invalid { what: what.into() }
}

fn read_catalog(disk: &dyn Disk) -> Result<Option<Catalog>> {
    let file = match disk.open(names::CATALOG, Open { read_only: true, ..Open::default() }) {
        Ok(file) => file,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    decode_catalog(&*file).map(Some)
}

/// Reads and decodes an open catalog.
///
/// # Errors
/// [`Error::Invalid`] if it is damaged; a failed system call.
pub(crate) fn decode_catalog(file: &dyn File) -> Result<Catalog> {
    let mut bytes = vec![0; usize::try_from(file.bytes()?).unwrap_or(usize::MAX)];
    let read = read_full(file, &mut bytes, 0)?;
    let damaged = || invalid("the catalog does not match its checksum");
    Catalog::decode(&bytes[..read]).ok_or_else(damaged)
}

fn open_runs(disk: &dyn Disk, catalog: &Catalog) -> Result<Vec<Arc<Run>>> {
    let open = |number: &u64| {
        let name = names::index_file(IndexFile::Run, *number);
        let run = Run::open(disk, &name)?;
        match run.info().id == *number {
            true => Ok(Arc::new(run)),
            false => Err(invalid(format!("{name} is another run"))),
        }
    };
    catalog.runs.iter().map(open).collect()
}

fn load_locations(disk: &dyn Disk, catalog: &Catalog) -> Result<Locations> {
    let mut loader = Loader::new();
    let name = names::index_file(IndexFile::Locations, catalog.locations);
    chunks::read(disk, &name, catalog.locations, |chunk| loader.add(chunk).is_ok())?;
    let mut locations = loader.finish().map_err(|error| invalid(error.to_string()))?;
    let mut changes = Vec::new();
    for number in &catalog.changes {
        let name = names::index_file(IndexFile::Changes, *number);
        chunks::read(disk, &name, *number, |chunk| {
            let Some(decoded) = decode_changes(chunk) else { return false };
            changes.extend(decoded);
            if changes.len() >= SORTED_CHANGES {
                apply_changes(&mut locations, &mut changes);
            }
            true
        })?;
    }
    apply_changes(&mut locations, &mut changes);
    Ok(locations)
}

/// Applies changes in hash order, which is the page order, so that each page is loaded into the CPU
/// cache once. Changes with the same hash keep their order.
fn apply_changes(locations: &mut Locations, changes: &mut Vec<LocationChange>) {
    changes.sort_by_key(|change| change.hash);
    for change in changes.drain(..) {
        if let Some(removed) = change.removed {
            locations.remove(change.hash, removed.0);
        }
        if let Some(inserted) = change.inserted {
            locations.insert(change.hash, inserted.0);
        }
    }
}

fn locations_from_keys(index: &Index) -> Result<Locations> {
    let mut locations = Locations::new();
    index.keys.snapshot().scan(|bucket, key, entry| {
        if let Some(location) = index.addresses.locate(entry.at) {
            locations.insert(index.hash.of(bucket, key), location.0);
        }
        true
    })?;
    Ok(locations)
}
