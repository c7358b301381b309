//! A copy of a log in an object store in memory, whose objects a target edits.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};

use haul_append_log::{Log, Options, Position, SpacePriority, SyncMethod};
use haul_disk::Disk;
use haul_disk_sim::MemoryDisk;
use haul_replicate::{PlainLog, Remote, Replica, restore_log};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

/// The number of records of the log.
const RECORDS: usize = 30;

/// An object of a copy.
#[derive(Debug, Clone)]
pub(crate) struct CopyObject {
    path: Path,
    /// The content.
    pub(crate) bytes: Vec<u8>,
}

/// A copy with several chunks, and the records of its log.
#[derive(Debug)]
pub(crate) struct RemoteCopy {
    /// The objects. The manifest is the first.
    pub(crate) objects: Vec<CopyObject>,
    store: Arc<InMemory>,
    remote: Remote,
    records: BTreeSet<Vec<u8>>,
}

/// The copy that a target edits.
pub(crate) static COPY: LazyLock<RemoteCopy> = LazyLock::new(RemoteCopy::new);

fn log_options() -> Options {
    Options {
        segment_bytes: 1 << 20,
        buffer_bytes: 64 << 10,
        reserve_bytes: 0,
        sync_method: Some(SyncMethod::Buffered),
        idle_watermark_ms: 0,
        recovery_threads: 1,
        ..Options::default()
    }
}

/// Runs a future of an object store in memory, which never waits.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("an object store in memory waits"),
    }
}

/// Returns all objects of a store.
fn objects(store: &InMemory) -> Vec<CopyObject> {
    let listed = run(store.list_with_delimiter(Some(&Path::from("copy")))).unwrap();
    let mut folders = listed.common_prefixes;
    let mut paths: Vec<Path> = listed.objects.into_iter().map(|object| object.location).collect();
    while let Some(folder) = folders.pop() {
        let listed = run(store.list_with_delimiter(Some(&folder))).unwrap();
        folders.extend(listed.common_prefixes);
        paths.extend(listed.objects.into_iter().map(|object| object.location));
    }
    paths.sort_by_key(|path| (path.filename() != Some("manifest"), path.to_string()));
    let read = |path: Path| {
        let found = run(store.get(&path)).unwrap();
        let bytes = run(found.bytes()).unwrap().to_vec();
        CopyObject { path, bytes }
    };
    paths.into_iter().map(read).collect()
}

impl RemoteCopy {
    fn new() -> Self {
        let store = Arc::new(InMemory::new());
        let remote = Remote::new(Arc::clone(&store) as Arc<dyn ObjectStore>, "copy").unwrap();
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::default());
        let mut replay = |_: Position, _: &[u8]| {};
        let (log, _) = Log::open(Arc::clone(&disk), log_options(), &mut replay).unwrap();
        let log = Arc::new(log);
        let options = haul_replicate::Options {
            chunk_bytes: 64 << 10,
            tail_bytes_max: 4 << 10,
            ..haul_replicate::Options::default()
        };
        let source = PlainLog::new(Arc::clone(&log), disk);
        let replica = Replica::follow(source, &remote, options).unwrap();
        let mut records = BTreeSet::new();
        for number in 0..u8::try_from(RECORDS).unwrap() {
            let bytes = if number < 25 { 50_000 } else { 100 };
            let record = vec![number; bytes];
            log.append(&[&record], SpacePriority::Ordinary).unwrap().wait().unwrap();
            records.insert(record);
            if number % 10 == 7 {
                replica.wait().unwrap();
            }
        }
        replica.stop().unwrap();
        let objects = objects(&store);
        let mut again = objects[0].bytes.clone();
        set_checksum(&mut again);
        assert!(again == objects[0].bytes, "the checksum of a manifest is computed otherwise");
        let copy = Self { objects, store, remote, records };
        assert!(copy.objects.len() > 3, "{} objects", copy.objects.len());
        assert_eq!(copy.restored(&[]).map(|records| records.len()), Some(RECORDS));
        copy
    }

    fn put(&self, object: &CopyObject, bytes: Vec<u8>) {
        run(self.store.put(&object.path, bytes.into())).unwrap();
    }

    /// Restores the copy with other contents of some objects, each with its number. Returns the
    /// records of the log; `None` if the copy is refused.
    ///
    /// # Panics
    /// If the restored log has a record that was not appended.
    fn restored(&self, edited: &[(usize, Vec<u8>)]) -> Option<Vec<Vec<u8>>> {
        for (number, bytes) in edited {
            self.put(&self.objects[*number], bytes.clone());
        }
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::default());
        let result = restore_log(&self.remote, &disk);
        for (number, _) in edited {
            let object = &self.objects[*number];
            self.put(object, object.bytes.clone());
        }
        result.ok()?;
        let mut records = Vec::new();
        let mut each = |_: Position, payload: &[u8]| records.push(payload.to_vec());
        drop(Log::open(disk, log_options(), &mut each));
        let is_known = |record: &Vec<u8>| self.records.contains(record);
        assert!(records.iter().all(is_known), "a record was never appended");
        Some(records)
    }

    /// Restores the copy with edited objects. Unless the manifest is edited and its checksum set,
    /// all records are restored, or the copy is refused.
    ///
    /// # Panics
    /// If that is not so.
    pub(crate) fn check(&self, edited: &[(usize, Vec<u8>)], has_checksum: bool) {
        let restored = self.restored(edited);
        let is_forged = has_checksum && edited.iter().any(|(number, _)| *number == 0);
        if let Some(records) = restored.filter(|_| !is_forged) {
            assert_eq!(records.len(), RECORDS, "a damaged copy lacks records");
        }
    }
}

/// Sets the checksum of a manifest.
pub(crate) fn set_checksum(manifest: &mut [u8]) {
    if let Some((head, body)) = manifest.split_at_mut_checked(12) {
        head[8..].copy_from_slice(&haul_crc::crc32c(body).to_le_bytes());
    }
}
