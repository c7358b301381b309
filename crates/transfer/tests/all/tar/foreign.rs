//! Archives written by GNU tar.

use std::fs;
use std::path::PathBuf;

use haul_transfer::{Import, ImportPlan, Source};

use super::{BUCKET, Case, Dump, gnu_tar};
use crate::{BIG_OBJECT_BYTES, Log};

#[test]
fn tree_gives_the_same_objects_by_tar_and_by_import() {
    let (by_tree, log) = (Case::new(), Log::default());
    let tree = by_tree.dir.path().join("tree");
    fs::create_dir_all(tree.join("empty")).unwrap();
    let deep = tree.join(format!("{}/{}", "d".repeat(150), "e".repeat(120)));
    fs::create_dir_all(&deep).unwrap();
    for (path, bytes) in [
        (tree.join("a"), 10),
        (tree.join("ü b"), 0),
        (tree.join("big"), 1_500_000),
        (deep.join("f".repeat(200)), 513),
        (tree.join("x".repeat(101)), 1),
    ] {
        fs::write(path, vec![9; bytes]).unwrap();
    }
    let source = Source::open(&tree, false).unwrap();
    let plan = ImportPlan::new(&source, &[PathBuf::from("/nowhere")], "p/");
    let (store, skip_existing, jobs) = (&by_tree.store, false, 2);
    let (bucket, big_object_bytes) = (BUCKET, BIG_OBJECT_BYTES);
    let import = Import {
        store,
        bucket,
        source: &source,
        plan: &plan,
        big_object_bytes,
        skip_existing,
        jobs,
    };
    import.run(&log).1.unwrap();
    let expected = by_tree.dump();
    assert_eq!(expected.len(), 5);
    for format in ["--format=pax", "--format=gnu"] {
        let case = Case::new();
        let archive = gnu_tar(&tree, &["-c", format, "."]);
        let (done, result) = case.import_with(&archive, &log, "p/", false);
        result.unwrap();
        assert_eq!((done.imported.files, done.imported.failed), (5, 0));
        let found = case.dump();
        if format == "--format=pax" {
            assert!(found == expected);
            let (again, result) = case.import_with(&archive, &log, "p/", true);
            result.unwrap();
            assert_eq!((again.imported.files, again.imported.same), (0, 5));
        }
        // The format of GNU tar has whole seconds.
        let contents = |dump: Dump| dump.into_iter().map(|(k, b, _)| (k, b)).collect::<Vec<_>>();
        assert!(contents(found) == contents(expected.clone()), "{format}");
    }
}

#[test]
fn ustar_and_v7_archives_are_read() {
    let case = Case::new();
    let tree = case.dir.path().join("tree");
    let deep = tree.join(format!("{}/{}", "d".repeat(80), "e".repeat(40)));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("f"), "deep").unwrap();
    fs::write(tree.join("a"), "short").unwrap();
    case.import(&gnu_tar(&tree, &["-c", "--format=ustar", "."]), &Log::default()).1.unwrap();
    let deep_key = format!("{}/{}/f", "d".repeat(80), "e".repeat(40));
    assert_eq!(case.keys(), ["a", &deep_key]);
    case.store.delete(BUCKET, "a").unwrap();
    case.import(&gnu_tar(&tree, &["-c", "--format=v7", "a"]), &Log::default()).1.unwrap();
    assert_eq!(case.keys(), ["a", &deep_key]);
}

#[test]
fn links_are_copied_or_skipped_and_sparse_files_refused() {
    let (case, log) = (Case::new(), Log::default());
    let tree = case.dir.path().join("tree");
    fs::create_dir_all(tree.join("d")).unwrap();
    fs::write(tree.join("d/1"), "content").unwrap();
    fs::hard_link(tree.join("d/1"), tree.join("d/2")).unwrap();
    std::os::unix::fs::symlink("d/1", tree.join("symlink")).unwrap();
    fs::File::create(tree.join("hole")).unwrap().set_len(1 << 20).unwrap();
    let names = ["d/1", "d/2", "symlink", "hole"];
    for format in ["--format=gnu", "--format=pax"] {
        let archive = gnu_tar(&tree, &[&["-c", format, "--sparse"][..], &names].concat());
        let (done, result) = case.import(&archive, &log);
        result.unwrap();
        assert_eq!((done.imported.files, done.imported.failed, done.links), (2, 1, 1));
    }
    assert_eq!(log.failures(), ["hole", "hole"]);
    let found = case.dump();
    assert_eq!(found.len(), 2);
    assert_eq!((&found[0].1, &found[0].2), (&found[1].1, &found[1].2));

    let case = Case::new();
    let archive = gnu_tar(&tree, &["-c", "d/1", "d/2"]);
    // Without its first member, which has a header and a block of content.
    let (done, result) = case.import(&archive[1024..], &log);
    result.unwrap();
    assert_eq!((done.imported.files, done.imported.failed), (0, 1));
}

#[test]
fn paths_that_cannot_be_keys_are_reported() {
    let (case, log) = (Case::new(), Log::default());
    let tree = case.dir.path().join("tree/inner");
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join("good"), "good").unwrap();
    fs::write(tree.join("../bad"), "bad").unwrap();
    let archive = gnu_tar(&tree, &["-c", "-P", "../bad", "good"]);
    let (done, result) = case.import(&archive, &log);
    result.unwrap();
    assert_eq!((done.imported.files, done.imported.failed), (1, 1));
    assert_eq!(case.keys(), ["good"]);
    // Too long for a key.
    let (done, result) = case.import_with(&archive, &log, &"p".repeat(1021), false);
    result.unwrap();
    assert_eq!((done.imported.files, done.imported.failed), (0, 2));
}

#[test]
fn last_member_of_a_path_wins() {
    let (case, log) = (Case::new(), Log::default());
    let tree = case.dir.path().join("tree");
    fs::create_dir_all(&tree).unwrap();
    let file = case.dir.path().join("archive.tar");
    for content in ["first", "second"] {
        fs::write(tree.join("a"), content).unwrap();
        gnu_tar(&tree, &["-rf", file.to_str().unwrap(), "a"]);
    }
    let archive = fs::read(&file).unwrap();
    let (done, result) = case.import(&archive, &log);
    result.unwrap();
    assert_eq!(done.imported.files, 2);
    assert_eq!(case.dump()[0].1, b"second");
}
