//! Tests that a large directory tree of the system is unchanged after it was imported, listed and
//! read back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use haul_testing::skip;

use crate::keys::{list, target};
use crate::program::{self, files_below};
use crate::server::Server;

/// The minimum number of files of a large tree.
const FILES_MIN: usize = 20_000;

/// The number of concurrent connections that read the objects back.
const READERS: usize = 4;

/// `true` if this user may read everything below a directory.
fn is_readable(folder: &Path) -> bool {
    let unreadable = ["!", "-readable", "!", "-type", "l", "-print", "-quit"];
    let found = Command::new("find").arg(folder).args(unreadable).output();
    found.is_ok_and(|found| found.status.success() && found.stdout.is_empty())
}

/// Returns the first large tree of this machine that can be read: shared data, libraries, or the
/// sources in cargo's registry.
fn large_tree() -> Option<(PathBuf, Vec<PathBuf>)> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let sources = home.map(|home| home.join("registry/src"));
    let candidates = ["/usr/share", "/usr/lib"].into_iter().map(PathBuf::from).chain(sources);
    let mut trees = candidates.map(|folder| {
        let files = files_below(&folder);
        (folder, files)
    });
    trees.find(|tree| tree.1.len() >= FILES_MIN && is_readable(&tree.0))
}

/// Reads objects back and returns the keys of those that differ from their files.
fn differing_keys(server: &Server, objects: &[(&String, &PathBuf)]) -> Vec<String> {
    let mut client = server.client();
    let is_different = |(key, file): &&(&String, &PathBuf)| {
        let response = client.request("GET", &target("tree", key), b"").unwrap();
        response.status != 200 || response.body != std::fs::read(file).unwrap()
    };
    objects.iter().filter(is_different).map(|object| object.0.clone()).collect()
}

#[test]
#[ignore = "full: it reads at least 20,000 files of this machine back"]
fn imported_large_tree_is_read_back_identical() {
    let Some((folder, files)) = large_tree() else {
        return skip("no directory tree with 20,000 files was found");
    };
    let key = |file: &Path| Some(file.strip_prefix(&folder).ok()?.to_str()?.to_owned());
    let files: BTreeMap<_, _> = files.into_iter().filter_map(|f| Some((key(&f)?, f))).collect();
    let dir = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let log = |text: &str| println!("{:6.1} s: {text}", start.elapsed().as_secs_f32());

    log(&format!("{} files below {}", files.len(), folder.display()));
    let import = program::store("import", dir.path(), &["tree", folder.to_str().unwrap()]);
    program::assert_success(&import);
    log("imported");

    let server = Server::start(dir.path());
    let listed = list(&mut server.client(), "tree");
    assert!(
        listed.iter().eq(files.keys()),
        "{} keys listed, different or in another order",
        listed.len()
    );
    log("listed");

    let objects: Vec<_> = files.iter().collect();
    let share = objects.len().div_ceil(READERS);
    let differing: Vec<String> = thread::scope(|scope| {
        let read = |objects| {
            let server = &server;
            scope.spawn(move || differing_keys(server, objects))
        };
        let readers: Vec<_> = objects.chunks(share).map(read).collect();
        readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
    });
    assert!(differing.is_empty(), "{} objects differ: {differing:?}", differing.len());
    log("read back");
    server.stop();
}
