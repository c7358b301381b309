//! The redundant files of all groups, by directory. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use haul_duplicates::report::{Group, Member};

/// A directory with redundant files, or one such file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tree {
    /// The name. A directory whose only child is a directory has the names of both.
    pub(super) name: String,
    /// The bytes of the redundant files.
    pub(super) bytes: u64,
    /// The number of the redundant files.
    pub(super) files: u64,
    /// The largest number of copies of a file.
    pub(super) copies: u64,
    /// The content of a directory, by descending bytes.
    pub(super) children: Vec<Self>,
}

#[derive(Default)]
struct Node {
    bytes: u64,
    files: u64,
    copies: u64,
    children: BTreeMap<String, Node>,
}

impl Tree {
    /// Returns the tree below the deepest directory that contains all redundant files.
    pub(super) fn of(groups: impl Iterator<Item = Group>) -> Self {
        let mut root = Node::default();
        for group in groups {
            let copies = group.members.len() as u64;
            for path in redundant(&group.members) {
                root.add(path, group.bytes, copies);
            }
        }
        let mut tree = root.into_tree(String::new());
        if tree.files == 1 {
            tree.children.clear();
        }
        tree.name = format!("/{}", tree.name);
        tree
    }

    /// Returns the share of the bytes of `all`.
    pub(super) fn share_of(&self, all: &Self) -> f64 {
        self.bytes as f64 / all.bytes.max(1) as f64
    }
}

/// Returns the paths of a group whose removal frees space: all files but the first one, and of the
/// hard links of a file only one.
fn redundant(members: &[Member]) -> impl Iterator<Item = &Path> {
    let mut seen = BTreeSet::new();
    let is_new = move |member: &&Member| {
        member.identity.is_none_or(|file| seen.insert((file.device, file.inode)))
    };
    members.iter().filter(is_new).skip(1).map(|member| member.path.as_path())
}

impl Node {
    fn add(&mut self, path: &Path, bytes: u64, copies: u64) {
        let mut node = self;
        let relative: PathBuf =
            path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        node.count(bytes, copies);
        for part in &relative {
            node = node.children.entry(part.to_string_lossy().into_owned()).or_default();
            node.count(bytes, copies);
        }
    }

    fn count(&mut self, bytes: u64, copies: u64) {
        self.bytes += bytes;
        self.files += 1;
        self.copies = self.copies.max(copies);
    }

    fn into_tree(mut self, mut name: String) -> Tree {
        while self.children.len() == 1 {
            let Some((child, node)) = self.children.pop_first() else { break };
            if node.children.is_empty() {
                // The only child is a file.
                self.children.insert(child, node);
                break;
            }
            name = if name.is_empty() { child } else { format!("{name}/{child}") };
            self = node;
        }
        let children = self.children.into_iter().map(|(name, node)| node.into_tree(name));
        let mut children: Vec<_> = children.collect();
        children.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        Tree { name, bytes: self.bytes, files: self.files, copies: self.copies, children }
    }
}

#[cfg(test)]
mod tests {
    use haul_duplicates::report::Identity;

    use super::*;

    fn member(path: &str, inode: u64) -> Member {
        let identity = Identity { device: 1, inode, bytes: 8, modified_ns: 0, changed_ns: 0 };
        Member { path: path.into(), identity: Some(identity) }
    }

    #[test]
    fn hard_links_and_kept_files_are_not_redundant() {
        let members =
            [member("/d/kept", 1), member("/d/link", 1), member("/d/a/b/1", 2), member("/d/c", 2)];
        let group = Group { bytes: 8, hash: String::new(), members: members.to_vec() };
        let other = Group {
            bytes: 16,
            hash: String::new(),
            members: vec![member("/d/kept", 3), member("/d/a/b/2", 4)],
        };
        let tree = Tree::of([group, other].into_iter());
        assert_eq!((tree.name.as_str(), tree.bytes, tree.files, tree.copies), ("/d/a/b", 24, 2, 4));
        let names: Vec<_> = tree.children.iter().map(|child| (&*child.name, child.bytes)).collect();
        assert_eq!(names, [("2", 16), ("1", 8)]);
        assert_eq!(Tree::of(std::iter::empty()).bytes, 0);
    }
}
