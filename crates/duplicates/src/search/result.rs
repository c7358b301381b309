//! Holds the groups found by a search as ranges of file numbers. Paths are built only when a group
//! is requested.

use haul_bulk_read::digest::to_hex;
use haul_bulk_read::{FileId, Tree};

use super::replication::ReplicaPolicy;
use crate::replicas::replicas;
use crate::report::{Group, Identity, Member, Replication, Stats};

/// The groups found so far; the members and digests of all groups are in two shared vectors.
#[derive(Debug, Default)]
pub(super) struct Groups {
    members: Vec<FileId>,
    groups: Vec<GroupRange>,
    digests: Vec<u8>,
    digest_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct GroupRange {
    start: u32,
    length: u32,
    bytes: u64,
    digest: Option<(usize, u8)>,
}

impl Groups {
    pub(super) fn new(digest_bytes: usize) -> Self {
        Self { digest_bytes, ..Self::default() }
    }

    pub(super) fn add(&mut self, bytes: u64, digest: Option<&[u8]>, mut members: Vec<FileId>) {
        members.sort_unstable();
        let number = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let (start, length) = (number(self.members.len()), number(members.len()));
        self.members.extend(members);
        let digest = digest.map(|digest| {
            self.digests.extend_from_slice(digest);
            (self.digests.len() - digest.len(), u8::try_from(digest.len()).unwrap_or(0))
        });
        self.groups.push(GroupRange { start, length, bytes, digest });
    }

    /// Sorts the groups by descending file length, then by path, and computes the statistics.
    pub(super) fn into_result(mut self, tree: Tree, policy: &ReplicaPolicy) -> SearchResult {
        let members = &self.members;
        self.groups.sort_unstable_by_key(|group| {
            (std::cmp::Reverse(group.bytes), members.get(group.start as usize).copied())
        });
        let mut result = SearchResult { tree, groups: self, stats: Stats::default() };
        result.stats = result.compute_stats(policy);
        result
    }
}

/// The groups found by a search, and the tree that it searched.
#[derive(Debug)]
pub struct SearchResult {
    tree: Tree,
    groups: Groups,
    stats: Stats,
}

impl SearchResult {
    /// Returns the statistics for the header of a report.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Returns the files searched.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the number of groups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.groups.len()
    }

    /// `true` if there are no groups.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.groups.is_empty()
    }

    /// Returns the files of a group, sorted by root and path.
    #[must_use]
    pub fn members(&self, group: usize) -> &[FileId] {
        let GroupRange { start, length, .. } = self.groups.groups[group];
        &self.groups.members[start as usize..][..length as usize]
    }

    /// Returns the groups by descending file length, then by path.
    pub fn groups(&self) -> impl Iterator<Item = Group> + '_ {
        (0..self.len()).map(|group| self.group(group))
    }

    fn group(&self, number: usize) -> Group {
        let range = self.groups.groups[number];
        let hash = match range.digest {
            Some((at, length)) => to_hex(&self.groups.digests[at..at + usize::from(length)]),
            None => "0".repeat(2 * self.groups.digest_bytes),
        };
        let member = |file: &FileId| {
            let meta = self.tree.meta(*file);
            let identity = Identity {
                device: meta.device,
                inode: meta.inode,
                bytes: meta.bytes,
                modified_ns: meta.modified_ns,
                changed_ns: meta.changed_ns,
            };
            Member { path: self.tree.path(*file), identity: Some(identity) }
        };
        let members = self.members(number).iter().map(member).collect();
        Group { bytes: range.bytes, hash, members }
    }

    fn compute_stats(&self, policy: &ReplicaPolicy) -> Stats {
        let mut stats = Stats { groups: self.len() as u64, ..Stats::default() };
        stats.scanned_files = self.tree.len() as u64;
        stats.scanned_bytes = self.tree.ids().map(|file| self.tree.meta(file).bytes).sum();
        for (number, range) in self.groups.groups.iter().enumerate() {
            let members = self.members(number);
            stats.files += members.len() as u64;
            stats.bytes += range.bytes * members.len() as u64;
            let key = |(index, file): (usize, &FileId)| {
                let meta = self.tree.meta(*file);
                match (policy.isolate, policy.match_links) {
                    (true, _) => (self.tree.root(*file) as u64, 0),
                    (_, true) => (index as u64, 0),
                    _ => (meta.device, meta.inode),
                }
            };
            let replicas = replicas(members.iter().enumerate().map(key));
            match policy.replication {
                Replication::Over(over) => {
                    let redundant: usize = replicas.iter().skip(over.max(1)).map(Vec::len).sum();
                    stats.redundant_files += redundant as u64;
                    stats.redundant_bytes += redundant as u64 * range.bytes;
                }
                Replication::Under(under) => {
                    let missing = under.saturating_sub(replicas.len()) as u64;
                    stats.missing_files += missing;
                    stats.missing_bytes += missing * range.bytes;
                }
            }
        }
        stats
    }
}
