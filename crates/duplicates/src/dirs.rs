//! Finds directories with equal content: the same relative paths with equal files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use haul_bulk_read::digest::{Digest, HashKind};
use haul_bulk_read::{DirId, Tree};

use crate::report::{Group, Member, Stats};
use crate::search::SearchResult;

/// Directories with equal content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirGroup {
    /// The number of files below each directory.
    pub files: u64,
    /// The total length of the files below each directory, in bytes.
    pub bytes: u64,
    /// A digest of the names and contents below each directory.
    pub hash: Digest,
    /// The directories, sorted by path.
    pub dirs: Vec<PathBuf>,
}

/// The digest and the totals of a file, or of a directory and everything below it.
#[derive(Debug, Clone, Copy)]
struct ContentDigest {
    hash: Digest,
    files: u64,
    bytes: u64,
}

/// Finds directories with equal content in the result of a search for duplicates that excluded no
/// file. A group is omitted if every directory in it has a parent that is in a group: the groups of
/// the parents then cover these directories.
///
/// A directory with an entry that was not searched, such as a symbolic link, equals no other
/// directory. A directory without files is in no group.
#[must_use]
pub fn duplicate_dirs(found: &SearchResult) -> Vec<DirGroup> {
    let tree = found.tree();
    let digests = dir_digests(found);
    let mut equal: BTreeMap<Digest, Vec<DirId>> = BTreeMap::new();
    for (dir, digest) in (0..).map(DirId).zip(&digests) {
        if let Some(digest) = digest.filter(|digest| digest.files > 0) {
            equal.entry(digest.hash).or_default().push(dir);
        }
    }
    equal.retain(|_, dirs| dirs.len() > 1);
    let reported: BTreeSet<DirId> = equal.values().flatten().copied().collect();
    let is_within =
        |dir: &DirId| tree.parent(*dir).is_some_and(|parent| reported.contains(&parent));
    let mut groups: Vec<_> = equal
        .iter()
        .filter(|(_, dirs)| !dirs.iter().all(is_within))
        .filter_map(|(hash, dirs)| {
            let ContentDigest { files, bytes, .. } =
                digests.get(dirs[0].0 as usize).copied().flatten()?;
            let mut dirs: Vec<_> = dirs.iter().map(|dir| path(tree, *dir)).collect();
            dirs.sort();
            Some(DirGroup { files, bytes, hash: *hash, dirs })
        })
        .collect();
    groups.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.dirs.cmp(&b.dirs)));
    groups
}

/// Computes the digest of each directory; `None` for a directory that cannot equal another one.
fn dir_digests(found: &SearchResult) -> Vec<Option<ContentDigest>> {
    let tree = found.tree();
    let mut classes: HashMap<u32, usize> = HashMap::new();
    for group in 0..found.len() {
        classes.extend(found.members(group).iter().map(|file| (file.0, group)));
    }
    // For each directory, the name and the digest of each entry found so far; `None` if an entry
    // has no digest.
    let mut entries: Vec<Option<BTreeMap<Vec<u8>, ContentDigest>>> =
        vec![Some(BTreeMap::new()); tree.dir_count()];
    for file in tree.ids() {
        let class = classes.get(&file.0).filter(|_| !tree.is_link(file));
        let entry = class.map(|class| {
            let hash = HashKind::Xxh3.of(format!("file {class}").as_bytes());
            ContentDigest { hash, files: 1, bytes: tree.meta(file).bytes }
        });
        add(&mut entries[tree.dir(file).0 as usize], tree.name(file).to_bytes(), entry);
    }
    let mut digests = vec![None; entries.len()];
    // A subdirectory has a larger number than its parent. The reverse order thus computes its
    // digest before that of the parent.
    for number in (0..entries.len()).rev() {
        let dir = DirId(u32::try_from(number).unwrap_or(u32::MAX));
        let path = path(tree, dir);
        digests[number] =
            entries[number].take().filter(|entries| is_complete(&path, entries)).map(combine);
        if let Some(parent) = tree.parent(dir) {
            let name = path.file_name().unwrap_or_default().as_bytes();
            add(&mut entries[parent.0 as usize], name, digests[number]);
        }
    }
    digests
}

/// Adds an entry to the entries of a directory. An entry without a digest sets them to `None`,
/// because the directory then cannot be compared.
fn add(
    entries: &mut Option<BTreeMap<Vec<u8>, ContentDigest>>,
    name: &[u8],
    entry: Option<ContentDigest>,
) {
    match (&mut *entries, entry) {
        (Some(entries), Some(entry)) => drop(entries.insert(name.to_vec(), entry)),
        _ => *entries = None,
    }
}

/// `true` if `entries` are all entries of the directory at `path`.
fn is_complete(path: &std::path::Path, entries: &BTreeMap<Vec<u8>, ContentDigest>) -> bool {
    let Ok(listed) = fs::read_dir(path) else { return false };
    let mut count = 0;
    for entry in listed {
        let Ok(entry) = entry else { return false };
        if !entries.contains_key(entry.file_name().as_bytes()) {
            return false;
        }
        count += 1;
    }
    count == entries.len()
}

fn combine(entries: BTreeMap<Vec<u8>, ContentDigest>) -> ContentDigest {
    let mut hasher = HashKind::Xxh3.hasher();
    hasher.update(b"directory");
    let (mut files, mut bytes) = (0, 0);
    for (name, entry) in &entries {
        // The input is unambiguous: names contain no NUL, and all digests have the same length.
        hasher.update(name);
        hasher.update(b"\0");
        hasher.update(entry.hash.as_bytes());
        files += entry.files;
        bytes += entry.bytes;
    }
    ContentDigest { hash: hasher.finish(), files, bytes }
}

fn path(tree: &Tree, dir: DirId) -> PathBuf {
    let mut path = Vec::new();
    tree.dir_path_into(dir, &mut path);
    PathBuf::from(OsString::from_vec(path))
}

impl DirGroup {
    /// Converts the group to a group of a report. Actions on the report skip directories.
    #[must_use]
    pub fn group(&self) -> Group {
        let member = |dir: &PathBuf| Member { path: dir.clone(), identity: None };
        Group {
            bytes: self.bytes,
            hash: self.hash.to_string(),
            members: self.dirs.iter().map(member).collect(),
        }
    }
}

/// Returns the statistics for the header of a report of directories.
#[must_use]
pub fn dir_stats(groups: &[DirGroup], found: &SearchResult) -> Stats {
    let mut stats = Stats { groups: groups.len() as u64, ..found.stats() };
    let count = |group: &DirGroup| group.dirs.len() as u64;
    stats.files = groups.iter().map(|group| count(group) * group.files).sum();
    stats.bytes = groups.iter().map(|group| count(group) * group.bytes).sum();
    stats.redundant_files = groups.iter().map(|group| (count(group) - 1) * group.files).sum();
    stats.redundant_bytes = groups.iter().map(|group| (count(group) - 1) * group.bytes).sum();
    stats
}
