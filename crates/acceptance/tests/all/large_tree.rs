//! A tree as large as a system has: imported, listed, and every byte read back and compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use haul_test_image::skip;

use crate::keys::{list, target};
use crate::program::{self, files_below};
use crate::server::Server;

/// What makes a tree large.
const FILES_MIN: usize = 20_000;

/// How many connections read back at once.
const READERS: usize = 4;

/// The first tree of this machine that is large: mixed documents, else the system's libraries,
/// else the sources of this program's dependencies.
fn large_tree() -> Option<(PathBuf, Vec<PathBuf>)> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let sources = home.map(|home| home.join("registry/src"));
    let candidates = ["/usr/share", "/usr/lib"].into_iter().map(PathBuf::from).chain(sources);
    let mut trees = candidates.map(|folder| {
        let files = files_below(&folder);
        (folder, files)
    });
    trees.find(|tree| tree.1.len() >= FILES_MIN)
}

/// Reads objects back and gives the keys of those that are not what the files are.
fn different(server: &Server, objects: &[(&String, &PathBuf)]) -> Vec<String> {
    let mut client = server.client();
    let is_different = |(key, file): &&(&String, &PathBuf)| {
        let answer = client.request("GET", &target("tree", key), b"").unwrap();
        answer.status != 200 || answer.body != std::fs::read(file).unwrap()
    };
    objects.iter().filter(is_different).map(|object| object.0.clone()).collect()
}

#[test]
fn a_large_tree_is_imported_listed_and_read_back_the_same() {
    let Some((folder, files)) = large_tree() else {
        return skip("no tree here has 20,000 files");
    };
    let key = |file: &Path| Some(file.strip_prefix(&folder).ok()?.to_str()?.to_owned());
    let files: BTreeMap<_, _> = files.into_iter().filter_map(|f| Some((key(&f)?, f))).collect();
    let dir = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let tell = |what: &str| println!("{:6.1} s: {what}", start.elapsed().as_secs_f32());

    tell(&format!("{} files below {}", files.len(), folder.display()));
    let import = program::store("import", dir.path(), &["tree", folder.to_str().unwrap()]);
    program::assert_success(&import);
    tell("imported");

    let server = Server::start(dir.path());
    let listed = list(&mut server.client(), "tree");
    assert!(listed.iter().eq(files.keys()), "{} listed, not in the same order", listed.len());
    tell("listed");

    let objects: Vec<_> = files.iter().collect();
    let share = objects.len().div_ceil(READERS);
    let wrong: Vec<String> = thread::scope(|scope| {
        let read = |objects| {
            let server = &server;
            scope.spawn(move || different(server, objects))
        };
        let readers: Vec<_> = objects.chunks(share).map(read).collect();
        readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} objects differ, such as {:?}", wrong.len(), wrong.first());
    tell("read back");
    server.stop();
}
