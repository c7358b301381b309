//! Random trees, and what is equal in them: by SHA-256 of every file and its inode.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use haul_bulk_read::digest::{Digest, HashKind};
use haul_duplicates::Replication;

use crate::Groups;
use crate::random::Random;

/// Lengths around which plans change what they do.
const LENGTHS: [usize; 12] = [
    1,
    2,
    4095,
    4096,
    8193,
    (64 << 10) - 1,
    64 << 10,
    (64 << 10) + 1,
    100_000,
    (1 << 20) + 1,
    (1 << 20) + (600 << 10),
    9 << 20,
];

/// Names nobody expects. They are short: a number comes behind each.
const NAMES: [&[u8]; 8] =
    [b"plain", b"new\nline", b"\xff\xfe", b" ", b"-rf", b"q'uo\"te", b".hidden", "ä漢".as_bytes()];

/// Writes a tree of some files of few contents, in all the ways files can be alike.
pub(crate) fn plant(dir: &Path, random: &mut Random, files: usize) {
    let mut planted: Vec<PathBuf> = Vec::new();
    for number in 0..files {
        let mut name = random.pick(&NAMES).to_vec();
        name.extend_from_slice(number.to_string().as_bytes());
        let parent = dir.join(["", "a", "a/b", "c"][random.below(4)]);
        fs::create_dir_all(&parent).unwrap();
        let path = parent.join(OsString::from_vec(name));
        match (planted.is_empty(), random.below(8)) {
            (false, 0..3) => drop(fs::copy(random.pick(&planted), &path).unwrap()),
            (false, 3) => fs::hard_link(random.pick(&planted), &path).unwrap(),
            (false, 4..6) => {
                // A copy but for one byte.
                let bytes = fs::copy(random.pick(&planted), &path).unwrap();
                let at = random.next() % bytes.max(1);
                let file = File::options().read(true).write(true).open(&path).unwrap();
                let mut byte = [0];
                file.read_exact_at(&mut byte, at).unwrap();
                file.write_all_at(&[byte[0] ^ 1], at).unwrap();
            }
            (_, 6) => {
                let file = File::create(&path).unwrap();
                file.set_len(*random.pick(&LENGTHS) as u64).unwrap();
            }
            _ => {
                let bytes = *random.pick(&LENGTHS);
                fs::write(&path, random.bytes(bytes)).unwrap();
            }
        }
        planted.push(path);
    }
}

/// What counts as a replica.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Count {
    Files,
    Names,
    Roots,
}

/// The groups a search should find below these roots, none of which is in another.
pub(crate) fn groups(roots: &[&Path], replication: Replication, count: Count) -> Groups {
    let mut contents: BTreeMap<(u64, Digest), Vec<(PathBuf, usize)>> = BTreeMap::new();
    for (root, dir) in roots.iter().enumerate() {
        for path in files(dir) {
            let bytes = fs::read(&path).unwrap();
            let key = (bytes.len() as u64, HashKind::Sha256.of(&bytes));
            contents.entry(key).or_default().push((path, root));
        }
    }
    let is_reported = |files: &&Vec<(PathBuf, usize)>| {
        let replicas: BTreeSet<_> = files
            .iter()
            .map(|(path, root)| {
                let inode = fs::metadata(path).unwrap().ino();
                match count {
                    Count::Files => (inode, PathBuf::new()),
                    Count::Names => (0, path.clone()),
                    Count::Roots => (*root as u64, PathBuf::new()),
                }
            })
            .collect();
        match replication {
            Replication::Over(over) => replicas.len() > over,
            Replication::Under(under) => replicas.len() < under,
        }
    };
    let paths = |files: &Vec<(PathBuf, usize)>| files.iter().map(|file| file.0.clone()).collect();
    contents.values().filter(is_reported).map(paths).collect()
}

/// All files below a directory that are not empty.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files.extend(self::files(&entry.path()));
        } else if kind.is_file() && entry.metadata().unwrap().len() > 0 {
            files.push(entry.path());
        }
    }
    files
}
