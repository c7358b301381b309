//! Archives written by `TarExport`.

use std::fs;

use haul_file_store::{Attributes, Precondition};
use haul_transfer::{TarExport, TarExportError};

use super::{BUCKET, Case, extract, odd_objects};
use crate::Log;

#[test]
fn archive_restores_keys_contents_and_attributes_exactly() {
    let (from, to, log) = (Case::new(), Case::new(), Log::default());
    odd_objects(&from);
    let archive = from.export("");
    let (done, result) = to.import(&archive, &log);
    result.unwrap();
    assert_eq!(log.failures(), [""; 0]);
    let expected = from.dump();
    assert_eq!((done.imported.files, done.is_complete), (expected.len() as u64, true));
    assert!(to.dump() == expected);
    // Again, in place of the objects.
    to.import(&archive, &log).1.unwrap();
    assert!(to.dump() == expected);
}

#[test]
fn prefix_is_removed_up_to_its_last_slash_and_added_as_it_is() {
    let (from, to) = (Case::new(), Case::new());
    for key in ["a/b/1", "a/bc/2", "a/", "d"] {
        from.put(key, key.as_bytes(), &Attributes::new());
    }
    to.import_with(&from.export("a/b"), &Log::default(), "p-", false).1.unwrap();
    assert_eq!(to.keys(), ["p-b/1", "p-bc/2"]);
    to.import_with(&from.export("a/"), &Log::default(), "q/", false).1.unwrap();
    assert_eq!(to.keys(), ["p-b/1", "p-bc/2", "q/", "q/b/1", "q/bc/2"]);
}

#[test]
fn gnu_tar_extracts_an_exported_archive_below_its_directory() {
    let case = Case::new();
    odd_objects(&case);
    // Files that would have to be directories, too, and a name that is too long for ext4.
    for key in ["x", "x/", "..", &"k".repeat(1024)] {
        assert!(case.store.delete(BUCKET, key).unwrap());
    }
    let target = case.dir.path().join("in/target");
    fs::create_dir_all(&target).unwrap();
    let warnings = extract(&case.export(""), &target);
    assert!(warnings.lines().all(|line| line.contains("time stamp")), "{warnings}");
    let read = |name: &str| fs::read(target.join(name)).unwrap();
    assert_eq!(read("plain"), b"plain");
    assert_eq!(read("ü/é\u{301}/日本"), "ü/é\u{301}/日本".as_bytes());
    assert_eq!(read("%2E%2E/up"), b"../up", "the last one in key order");
    assert_eq!(read("%2F/absolute"), b"/absolute");
    assert_eq!(read(&format!("{}/{}", "long".repeat(60), "x".repeat(200))).len(), 441);
    assert_eq!(read("lengths/3145735").len(), (3 << 20) + 7);
    let status = fs::metadata(target.join("dir/nanoseconds")).unwrap();
    assert_eq!(haul_transfer::Mtime::from(&status).to_string(), "1700000000.123456789");
    assert!(!case.dir.path().join("in/up").exists());
}

#[test]
fn stopped_transfers_are_incomplete() {
    let case = Case::new();
    case.put("a", b"bytes", &Attributes::new());
    let archive = case.export("");
    let stopped = Log { is_stopped: true, ..Log::default() };
    let (done, result) = case.import(&archive, &stopped);
    result.unwrap();
    assert!(!done.is_complete);
    let export = TarExport { store: &case.store, bucket: BUCKET, prefix: "" };
    let mut out = Vec::new();
    assert!(matches!(export.run(&mut out, &stopped), Err(TarExportError::Stopped)));
    assert!(out.len() < 1024, "without an end");
}

#[test]
fn empty_bucket_gives_an_empty_archive() {
    let case = Case::new();
    let archive = case.export("");
    assert_eq!(archive, [0; 1024]);
    assert_eq!(extract(&archive, &case.dir.path().join("a/b")), "");
    let (done, result) = case.import(&archive, &Log::default());
    result.unwrap();
    assert!(done.is_complete);
}

#[test]
fn encrypted_object_is_reported_and_not_exported() {
    let from = Case::new();
    from.put("plain", b"as it is", &Attributes::new());
    let mut writer = from.store.object_writer(BUCKET, "encrypted", None).unwrap();
    writer.write(b"encrypted").unwrap();
    let written = writer.finish().unwrap().encoded([7; 16]);
    let none = (Attributes::new(), Precondition::None);
    from.store.put_written(BUCKET, "encrypted", written, &none.0, &none.1).unwrap();
    let (mut archive, log) = (Vec::new(), Log::default());
    let export = TarExport { store: &from.store, bucket: BUCKET, prefix: "" };
    let exported = export.run(&mut archive, &log).unwrap();
    assert_eq!((exported.objects, exported.failed), (1, 1));
    assert_eq!(log.failures(), ["encrypted"]);
}
