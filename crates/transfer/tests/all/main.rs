//! Tests of import and export on a real store and real directories.
#![expect(clippy::unwrap_used, reason = "test helpers may panic")]

mod tar;

use std::error::Error as StdError;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, UNIX_EPOCH};

use haul_disk::{Error as DiskError, OsDisk};
use haul_file_store::{ListEntry, ListRequest, ObjectInfo, Options};
use haul_store_pool::Pool;
use haul_transfer::{
    Export, ExportError, ExportEvents, ExportPlan, Import, ImportEvents, ImportPlan, Imported,
    Mtime, Source, sync_file_system,
};

/// Records failures, and requests a stop if `is_stopped` is set.
#[derive(Default)]
struct Log {
    failures: Mutex<Vec<String>>,
    is_stopped: bool,
}

impl Log {
    fn push(&self, text: &str) {
        self.failures.lock().unwrap().push(text.to_owned());
    }

    fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap().clone()
    }
}

impl ImportEvents for Log {
    fn is_stopped(&self) -> bool {
        self.is_stopped
    }
    fn progress(&self, _files: u64, _bytes: u64) {}
    fn failed(&self, path: &Path, _error: &(dyn StdError + 'static)) {
        self.push(&path.file_name().unwrap_or_default().to_string_lossy());
    }
}

impl ExportEvents for Log {
    fn is_stopped(&self) -> bool {
        self.is_stopped
    }
    fn progress(&self, _objects: u64, _bytes: u64) {}
    fn directory_failed(&self, error: DiskError) {
        self.push(&error.path.file_name().unwrap_or_default().to_string_lossy());
    }
    fn failed(&self, key: &str, _error: ExportError) {
        self.push(key);
    }
}

const BIG_OBJECT_BYTES: u64 = 1 << 20;

/// A store with the bucket `bucket`, and a tree with a small file, a big one and an empty one.
struct Case {
    dir: tempfile::TempDir,
    store: Pool,
}

impl Case {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            volume_bytes: 4 << 20,
            big_object_bytes: BIG_OBJECT_BYTES,
            ..Options::default()
        };
        let (store, _recovered) = Pool::open(&[dir.path().join("store")], &options).unwrap();
        store.create_bucket("bucket").unwrap();
        fs::create_dir_all(dir.path().join("tree/d")).unwrap();
        for (name, bytes) in [("small", 10), ("d/big", BIG_OBJECT_BYTES + 10), ("d/empty", 0)] {
            let path = dir.path().join("tree").join(name);
            fs::write(&path, vec![7; usize::try_from(bytes).unwrap()]).unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789))
                .unwrap();
        }
        Self { dir, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn import(&self, skip_existing: bool, log: &Log) -> (Imported, Vec<String>) {
        // The store is below the source, and must not be imported.
        let source = Source::open(self.dir.path(), false).unwrap();
        let plan = ImportPlan::new(&source, &[self.path("store")], "p/");
        assert_eq!(plan.stores, [self.path("store")]);
        let import = Import {
            store: &self.store,
            bucket: "bucket",
            source: &source,
            plan: &plan,
            big_object_bytes: BIG_OBJECT_BYTES,
            skip_existing,
            jobs: 3,
        };
        let (imported, result) = import.run(log);
        result.unwrap();
        (imported, log.failures())
    }

    fn objects(&self) -> Vec<ObjectInfo> {
        let request = ListRequest { prefix: "p/", delimiter: None, after: None, limit: 100 };
        let page = self.store.list("bucket", &request).unwrap();
        let object = |line| match line {
            ListEntry::Object(info) => Some(info),
            _ => None,
        };
        page.entries.into_iter().filter_map(object).collect()
    }
}

#[test]
fn exported_tree_equals_the_imported_one() {
    let case = Case::new();
    let log = Log::default();
    let (imported, failures) = case.import(false, &log);
    assert_eq!((imported.files, imported.bytes), (3, BIG_OBJECT_BYTES + 20));
    assert!(failures.is_empty(), "{failures:?}");

    let plan = ExportPlan::new(case.objects(), "p/");
    assert_eq!((plan.files(), plan.bytes), (3, BIG_OBJECT_BYTES + 20));
    let out = case.path("out");
    let root = OsDisk::open_or_create(out.clone()).unwrap();
    let export = Export { store: &case.store, bucket: "bucket", plan: &plan, root: &root, jobs: 2 };
    let exported = export.run(&log).unwrap();
    sync_file_system(&out).unwrap();
    assert_eq!((exported.objects, exported.bytes), (3, plan.bytes));
    for name in ["tree/small", "tree/d/big", "tree/d/empty"] {
        let (from, to) = (case.path(name), out.join(name));
        assert!(fs::read(&from).unwrap() == fs::read(&to).unwrap(), "{name}");
        let mtime = |path| Mtime::from(&fs::metadata(path).unwrap());
        assert_eq!(mtime(from), mtime(to), "{name}");
    }
    assert_eq!(fs::read_dir(out.join("tree/d")).unwrap().count(), 2, "no temporary files");
}

#[test]
fn stored_files_are_skipped_until_they_change() {
    let case = Case::new();
    case.import(false, &Log::default());
    let (again, _) = case.import(true, &Log::default());
    assert_eq!((again.files, again.same, again.processed()), (0, 3, 3));
    fs::write(case.path("tree/small"), "other").unwrap();
    let (changed, _) = case.import(true, &Log::default());
    assert_eq!((changed.files, changed.same), (1, 2));
}

#[test]
fn stopped_import_stores_nothing_more() {
    let case = Case::new();
    let (imported, _) = case.import(false, &Log { is_stopped: true, ..Log::default() });
    assert_eq!(imported, Imported::default());
}

#[test]
fn object_that_cannot_be_written_does_not_stop_the_others() {
    let case = Case::new();
    let log = Log::default();
    case.import(false, &log);
    let plan = ExportPlan::new(case.objects(), "p/");
    let out = case.path("out");
    let root = OsDisk::open_or_create(out.clone()).unwrap();
    // A directory has the path of an exported file, so the export of this file fails.
    fs::create_dir_all(out.join("tree/small/x")).unwrap();
    let export = Export { store: &case.store, bucket: "bucket", plan: &plan, root: &root, jobs: 2 };
    let exported = export.run(&log).unwrap();
    assert_eq!((exported.objects, exported.failed), (2, 1));
    assert_eq!(log.failures(), ["p/tree/small"]);
}
