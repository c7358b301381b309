//! Directories that hold the same: files of the same names and contents, at the same places.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use haul_bulk_read::digest::{Digest, HashKind};
use haul_bulk_read::{DirId, Tree};

use crate::report::{Group, Member, Stats};
use crate::search::Found;

/// Directories that hold the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirGroup {
    /// How many files are below each.
    pub files: u64,
    /// How long those are together.
    pub bytes: u64,
    /// What stands for names and contents.
    pub hash: Digest,
    /// The directories, by path.
    pub dirs: Vec<PathBuf>,
}

/// What is known of a directory once all below it is.
#[derive(Debug, Clone, Copy)]
struct Known {
    hash: Digest,
    files: u64,
    bytes: u64,
}

/// Finds the directories that hold the same, by what a search found: one for duplicates, that left
/// out no file. Those in others that are told are not told themselves.
///
/// A directory in which anything stands that is no directory and was not looked at, such as a
/// symbolic link, is like no other, and so are empty ones.
#[must_use]
pub fn same_dirs(found: &Found) -> Vec<DirGroup> {
    let tree = found.tree();
    let known = known_dirs(found);
    let mut alike: BTreeMap<Digest, Vec<DirId>> = BTreeMap::new();
    for (dir, known) in (0..).map(DirId).zip(&known) {
        if let Some(known) = known.filter(|known| known.files > 0) {
            alike.entry(known.hash).or_default().push(dir);
        }
    }
    alike.retain(|_, dirs| dirs.len() > 1);
    let told: BTreeSet<DirId> = alike.values().flatten().copied().collect();
    let is_within = |dir: &DirId| tree.parent(*dir).is_some_and(|parent| told.contains(&parent));
    let mut groups: Vec<_> = alike
        .iter()
        .filter(|(_, dirs)| !dirs.iter().all(is_within))
        .filter_map(|(hash, dirs)| {
            let Known { files, bytes, .. } = known.get(dirs[0].0 as usize).copied().flatten()?;
            let mut dirs: Vec<_> = dirs.iter().map(|dir| path(tree, *dir)).collect();
            dirs.sort();
            Some(DirGroup { files, bytes, hash: *hash, dirs })
        })
        .collect();
    groups.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.dirs.cmp(&b.dirs)));
    groups
}

/// What each directory holds; nothing for those which cannot be like another.
fn known_dirs(found: &Found) -> Vec<Option<Known>> {
    let tree = found.tree();
    let mut classes: HashMap<u32, usize> = HashMap::new();
    for group in 0..found.len() {
        classes.extend(found.members(group).iter().map(|file| (file.0, group)));
    }
    // What is in each directory: its name, and what stands for its content.
    let mut entries: Vec<Option<BTreeMap<Vec<u8>, Known>>> =
        vec![Some(BTreeMap::new()); tree.dir_count()];
    for file in tree.ids() {
        let class = classes.get(&file.0).filter(|_| !tree.is_link(file));
        let entry = class.map(|class| {
            let hash = HashKind::Xxh3.of(format!("file {class}").as_bytes());
            Known { hash, files: 1, bytes: tree.meta(file).bytes }
        });
        add(&mut entries[tree.dir(file).0 as usize], tree.name(file).to_bytes(), entry);
    }
    let mut known = vec![None; entries.len()];
    // What is below comes later than what it is in.
    for number in (0..entries.len()).rev() {
        let dir = DirId(u32::try_from(number).unwrap_or(u32::MAX));
        let path = path(tree, dir);
        known[number] = entries[number].take().filter(|held| is_all(&path, held)).map(sum);
        if let Some(parent) = tree.parent(dir) {
            let name = path.file_name().unwrap_or_default().as_bytes();
            add(&mut entries[parent.0 as usize], name, known[number]);
        }
    }
    known
}

/// One entry more; with one that is like no other the directory is neither.
fn add(entries: &mut Option<BTreeMap<Vec<u8>, Known>>, name: &[u8], entry: Option<Known>) {
    match (&mut *entries, entry) {
        (Some(entries), Some(entry)) => drop(entries.insert(name.to_vec(), entry)),
        _ => *entries = None,
    }
}

/// Whether these are all entries the directory has.
fn is_all(path: &std::path::Path, entries: &BTreeMap<Vec<u8>, Known>) -> bool {
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

fn sum(entries: BTreeMap<Vec<u8>, Known>) -> Known {
    let mut hasher = HashKind::Xxh3.hasher();
    hasher.update(b"directory");
    let (mut files, mut bytes) = (0, 0);
    for (name, entry) in &entries {
        // No name holds a zero byte, and all digests are of one length.
        hasher.update(name);
        hasher.update(b"\0");
        hasher.update(entry.hash.as_bytes());
        files += entry.files;
        bytes += entry.bytes;
    }
    Known { hash: hasher.finish(), files, bytes }
}

fn path(tree: &Tree, dir: DirId) -> PathBuf {
    let mut path = Vec::new();
    tree.dir_path_into(dir, &mut path);
    PathBuf::from(OsString::from_vec(path))
}

impl DirGroup {
    /// The group as a report has it. No action touches what is no file.
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

/// The sums for the header of a report of directories.
#[must_use]
pub fn dir_stats(groups: &[DirGroup], found: &Found) -> Stats {
    let mut stats = Stats { groups: groups.len() as u64, ..found.stats() };
    let all = |group: &DirGroup| group.dirs.len() as u64;
    stats.files = groups.iter().map(|group| all(group) * group.files).sum();
    stats.bytes = groups.iter().map(|group| all(group) * group.bytes).sum();
    stats.redundant_files = groups.iter().map(|group| (all(group) - 1) * group.files).sum();
    stats.redundant_bytes = groups.iter().map(|group| (all(group) - 1) * group.bytes).sum();
    stats
}
