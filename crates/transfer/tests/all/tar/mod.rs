//! Tests of imports from and exports to tar archives.

mod crafted;
mod damaged;
mod exported;
mod foreign;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use haul_file_store::{Attributes, ListEntry, ListRequest, Options, Precondition};
use haul_store_pool::Pool;
use haul_transfer::{MTIME_ATTRIBUTE, TarError, TarExport, TarImport, TarImported};
use tempfile::TempDir;

use crate::{BIG_OBJECT_BYTES, Log};

const BUCKET: &str = "bucket";

struct Case {
    dir: TempDir,
    store: Pool,
}

/// Keys, contents and attributes.
type Dump = Vec<(String, Vec<u8>, Attributes)>;

impl Case {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            volume_bytes: 4 << 20,
            big_object_bytes: BIG_OBJECT_BYTES,
            ..Options::default()
        };
        let (store, _recovered) = Pool::open(&[dir.path().join("store")], &options).unwrap();
        store.create_bucket(BUCKET).unwrap();
        Self { dir, store }
    }

    fn put(&self, key: &str, bytes: &[u8], attributes: &Attributes) {
        self.store.put(BUCKET, key, bytes, attributes, &Precondition::None).unwrap();
    }

    fn import(&self, archive: &[u8], log: &Log) -> (TarImported, Result<(), TarError>) {
        self.import_with(archive, log, "", false)
    }

    fn import_with(
        &self,
        mut archive: &[u8],
        log: &Log,
        prefix: &str,
        skip_existing: bool,
    ) -> (TarImported, Result<(), TarError>) {
        let (store, big_object_bytes) = (&self.store, BIG_OBJECT_BYTES);
        let import = TarImport { store, bucket: BUCKET, prefix, big_object_bytes, skip_existing };
        import.run(&mut archive, log)
    }

    fn export(&self, prefix: &str) -> Vec<u8> {
        let (mut archive, log) = (Vec::new(), Log::default());
        let export = TarExport { store: &self.store, bucket: BUCKET, prefix };
        export.run(&mut archive, &log).unwrap();
        assert_eq!(log.failures(), [""; 0]);
        archive
    }

    fn dump(&self) -> Dump {
        let request = ListRequest { limit: usize::MAX, ..ListRequest::default() };
        let object = |line: ListEntry| {
            let object = self.store.get(BUCKET, line.name()).unwrap();
            let pieces = haul_transfer::pieces(&object, 0..object.info.bytes);
            let bytes = pieces.flat_map(|piece| piece.unwrap().to_vec()).collect();
            (line.name().to_owned(), bytes, object.attributes.clone())
        };
        self.store.list(BUCKET, &request).unwrap().entries.into_iter().map(object).collect()
    }

    fn keys(&self) -> Vec<String> {
        self.dump().into_iter().map(|(key, ..)| key).collect()
    }
}

/// Returns the archive that `tar -c` creates of the directory `tree` with these arguments.
fn gnu_tar(tree: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("tar").arg("-C").arg(tree).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Extracts an archive with GNU tar, and returns its messages.
fn extract(archive: &[u8], to: &Path) -> String {
    fs::create_dir_all(to).unwrap();
    fs::write(to.join("../archive"), archive).unwrap();
    let tar = Command::new("tar")
        .args(["-x", "-f", "../archive"])
        .current_dir(to)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(tar.status.success(), "{tar:?}");
    String::from_utf8(tar.stderr).unwrap()
}

fn odd_objects(case: &Case) {
    let mtime = |time: &str| Attributes::from_iter([(MTIME_ATTRIBUTE, time)]);
    let long = format!("{}/{}", "long".repeat(60), "x".repeat(200));
    let longest = "k".repeat(1024);
    for (key, time) in [
        ("plain", "1700000000"),
        ("dir/nanoseconds", "1700000000.123456789"),
        ("dir/before", "-12345.5"),
        ("dir/far", "99999999999"),
        ("dir/not canonical", "1700000000.10"),
        ("dir/invalid", "yesterday"),
        ("dir/no time", ""),
        ("ü/é\u{301}/日本", "1"),
        ("new\nline = %", "1"),
        ("../up", "1"),
        ("a/../../up", "1"),
        ("/absolute", "1"),
        ("./dot", "1"),
        ("x//y", "1"),
        ("x/", "1"),
        ("x", "1"),
        ("..", "1"),
        ("nul\0", "1"),
        ("%2E%2E/up", "1"),
        (&long, "1"),
        (&longest, "1"),
    ] {
        case.put(key, key.as_bytes(), &mtime(time));
    }
    let s3 = Attributes::from_iter([
        ("content-type", "text/plain; charset=utf-8"),
        ("x-amz-meta-camera", "old\nand = rusty"),
        ("x-amz-meta-empty", ""),
        ("a=b%3D", "value"),
    ]);
    case.put("s3", b"bytes", &s3);
    case.put("s3 without attributes", b"bytes", &Attributes::new());
    for bytes in [0, 1, 511, 512, 513, BIG_OBJECT_BYTES - 1, BIG_OBJECT_BYTES, (3 << 20) + 7] {
        let content = vec![7; usize::try_from(bytes).unwrap()];
        case.put(&format!("lengths/{bytes}"), &content, &mtime("5"));
    }
}
