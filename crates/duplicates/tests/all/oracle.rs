//! Creates random trees, and computes the expected groups from the SHA-256 and inode of every file.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use haul_bulk_read::digest::{Digest, HashKind};
use haul_duplicates::Replication;
use haul_testing::Random;

use crate::Groups;

/// Lengths, in bytes, at which read plans change.
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

/// Unusual name prefixes; a number is appended.
const NAMES: [&[u8]; 8] =
    [b"plain", b"new\nline", b"\xff\xfe", b" ", b"-rf", b"q'uo\"te", b".hidden", "ä漢".as_bytes()];

/// Writes a random tree with copies, hard links, almost equal and sparse files.
pub(crate) fn plant(dir: &Path, random: &mut Random, files: usize) {
    let mut planted: Vec<PathBuf> = Vec::new();
    for number in 0..files {
        let mut name = random.pick(&NAMES).to_vec();
        name.extend_from_slice(number.to_string().as_bytes());
        let parent = dir.join(["", "a", "a/b", "c"][random.index(4)]);
        fs::create_dir_all(&parent).unwrap();
        let path = parent.join(OsString::from_vec(name));
        match (planted.is_empty(), random.index(8)) {
            (false, 0..3) => drop(fs::copy(random.pick(&planted), &path).unwrap()),
            (false, 3) => fs::hard_link(random.pick(&planted), &path).unwrap(),
            (false, 4..6) => {
                // A copy with one changed bit.
                let bytes = fs::copy(random.pick(&planted), &path).unwrap();
                let at = random.number() % bytes.max(1);
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

/// The files that count as one replica: names of an inode, single names, or all files of a root.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Count {
    Files,
    Names,
    Roots,
}

/// Returns the expected groups below disjoint roots.
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

/// Returns all non-empty files below a directory.
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
