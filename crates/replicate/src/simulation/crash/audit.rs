//! Checks the objects in the remote store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use haul_disk::Disk;
use haul_disk_sim::MemoryDisk;
use haul_file_store::Store;
use haul_testing::Random;
use object_store::memory::InMemory;

use crate::manifest::names;
use crate::manifest::object::ManifestObject;
use crate::manifest::{HistoryEntry, Manifest, decode};
use crate::remote::Remote;
use crate::restore::Restored;
use crate::simulation::crash::machine::store_options;
use crate::simulation::crash::model::{Contents, Model, contents};
use crate::store::{Fetch, restore_store, restore_store_at};

/// Checks that the copy is complete and has a state of the model. Restores the newest state, and
/// one kept state or all of them.
pub(super) fn check(objects: InMemory, model: &mut Model, random: Option<&mut Random>) {
    let remote = Remote::new(Arc::new(objects), "copy").unwrap();
    let Some(object) = ManifestObject::load(&remote).unwrap() else { return };
    let manifest = object.current();
    check_references(&remote, manifest);
    if manifest.segments.is_empty() {
        return;
    }
    let (_, found) = restored(&|disk| restore_store(&remote, disk, Fetch::Everything).unwrap());
    model.check_copy(&found, Some((manifest.generation, manifest.epoch)));
    let mut history = manifest.history.clone();
    if let Some(random) = random
        && !history.is_empty()
    {
        history = vec![*random.pick(&history)];
    }
    let mut least = 0;
    for entry in history {
        check_references(&remote, &load(&remote, &entry));
        if entry.written_ms >= manifest.written_ms {
            continue;
        }
        let at = UNIX_EPOCH + Duration::from_millis(entry.written_ms);
        let (written_ms, found) = restored(&|disk| restore_store_at(&remote, disk, at).unwrap());
        assert_eq!(written_ms, entry.written_ms);
        let then = manifest.history_at(entry.written_ms).unwrap();
        least = model.check_history(&found, (then.generation, then.epoch), least);
    }
}

/// Restores a copy on an empty disk, and returns its time and content.
fn restored(restore: &dyn Fn(&Arc<dyn Disk>) -> Restored) -> (u64, Contents) {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::default());
    let written_ms = restore(&disk).written_ms;
    let (store, report) = Store::open_on(disk, store_options(None)).unwrap();
    assert!(report.damage.is_empty(), "{report:?}");
    (written_ms, contents(&store))
}

fn load(remote: &Remote, entry: &HistoryEntry) -> Manifest {
    let (bytes, _) = remote.get(&names::history(entry)).unwrap().unwrap();
    let manifest = decode(&bytes).unwrap();
    assert_eq!(HistoryEntry::of(&manifest), *entry);
    manifest
}

/// Returns the names of a manifest's chunks and index files.
fn references(manifest: &Manifest) -> BTreeSet<String> {
    let segments = manifest.segments.iter();
    let chunks = segments
        .flat_map(|segment| segment.chunks.iter().map(|chunk| names::chunk(segment, chunk)));
    chunks.chain(manifest.index.iter().map(names::index_file)).collect()
}

fn check_references(remote: &Remote, manifest: &Manifest) {
    for name in references(manifest) {
        assert!(remote.length(&name).unwrap().is_some(), "{name} is missing");
    }
}

/// Checks that the remote store has only the objects that a copy without kept states has.
pub(super) fn check_no_garbage(objects: InMemory, big_files: &[String]) {
    let remote = Remote::new(Arc::new(objects), "copy").unwrap();
    let object = ManifestObject::load(&remote).unwrap().unwrap();
    assert!(object.current().history.is_empty());
    let mut expected = references(object.current());
    expected.insert(names::MANIFEST.to_owned());
    expected.extend(big_files.iter().map(|name| names::file(name)));
    let found: BTreeSet<String> = remote.list("").unwrap().into_iter().collect();
    let garbage: Vec<_> = found.difference(&expected).collect();
    assert!(garbage.is_empty(), "not needed: {garbage:?}");
    let missing: Vec<_> = expected.difference(&found).collect();
    assert!(missing.is_empty(), "missing: {missing:?}");
}
