//! Selects the files that may have duplicates, grouped by length, with hard links adjacent.

use haul_bulk_read::{FileId, Tree};

use super::replication::ReplicaPolicy;

/// A file (one name of an inode) with its sort keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) bytes: u64,
    inode: u64,
    device: u32,
    pub(super) file: FileId,
}

/// An inode: the range of adjacent entries that are its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    first: u32,
    count: u32,
}

/// The candidate files and their inodes, sorted by descending length.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    entries: Vec<Entry>,
    contents: Vec<Content>,
}

impl Candidates {
    /// Selects those of `files` whose length occurs often enough for `policy`.
    pub(super) fn of(
        tree: &Tree,
        files: impl Iterator<Item = FileId>,
        policy: &ReplicaPolicy,
    ) -> Self {
        let mut devices = Vec::new();
        let mut entries: Vec<_> = files.map(|file| entry(tree, file, &mut devices)).collect();
        let is_link = |entry: &Entry| tree.is_link(entry.file);
        entries.sort_unstable_by(|a, b| {
            let key = |entry: &Entry| (entry.device, entry.inode, is_link(entry), entry.file);
            b.bytes.cmp(&a.bytes).then_with(|| key(a).cmp(&key(b)))
        });
        retain_runs(&mut entries, |run| may_report(run, tree, policy));
        entries.shrink_to_fit();
        let mut contents: Vec<Content> = Vec::new();
        for (index, entry) in (0..).zip(&entries) {
            match contents.last_mut() {
                Some(last) if is_same(&entries[last.first as usize], entry) => last.count += 1,
                _ => contents.push(Content { first: index, count: 1 }),
            }
        }
        Self { entries, contents }
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.contents.len()).unwrap_or(u32::MAX)
    }

    /// Returns the names of a content; regular files precede symbolic links.
    pub(super) fn names(&self, content: u32) -> &[Entry] {
        let Content { first, count } = self.contents[content as usize];
        &self.entries[first as usize..][..count as usize]
    }

    /// Returns the file through which a content is read.
    pub(super) fn file(&self, content: u32) -> FileId {
        self.names(content)[0].file
    }

    pub(super) fn bytes(&self, content: u32) -> u64 {
        self.names(content)[0].bytes
    }
}

fn entry(tree: &Tree, file: FileId, devices: &mut Vec<u64>) -> Entry {
    let meta = tree.meta(file);
    let known = devices.iter().position(|device| *device == meta.device);
    let device = known.unwrap_or_else(|| {
        devices.push(meta.device);
        devices.len() - 1
    });
    let device = u32::try_from(device).unwrap_or(u32::MAX);
    Entry { bytes: meta.bytes, inode: meta.inode, device, file }
}

fn is_same(a: &Entry, b: &Entry) -> bool {
    (a.bytes, a.device, a.inode) == (b.bytes, b.device, b.inode)
}

/// `true` if the files of one length would be reported if all of them were equal.
fn may_report(run: &[Entry], tree: &Tree, policy: &ReplicaPolicy) -> bool {
    if policy.reports_few() {
        return true;
    }
    let mut replicas = policy.counter();
    let mut previous: Option<&Entry> = None;
    for entry in run {
        let is_link = previous.is_some_and(|previous| is_same(previous, entry));
        replicas.add(tree.root(entry.file), is_link);
        previous = Some(entry);
    }
    policy.may_report(replicas.count())
}

/// Removes, in place, each run of entries of one length for which `keep` returns `false`.
fn retain_runs(entries: &mut Vec<Entry>, mut keep: impl FnMut(&[Entry]) -> bool) {
    let (mut end, mut start) = (0, 0);
    while start < entries.len() {
        let bytes = entries[start].bytes;
        let length = entries[start..].iter().take_while(|entry| entry.bytes == bytes).count();
        if keep(&entries[start..start + length]) {
            entries.copy_within(start..start + length, end);
            end += length;
        }
        start += length;
    }
    entries.truncate(end);
}
