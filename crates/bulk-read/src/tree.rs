//! What a walk found, in little memory: all names in one piece, a directory is its parent and a
//! name, a file is its directory, a name and some numbers.

use std::ffi::{CStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A file of a [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A directory of a [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirId(pub u32);

/// What the kernel said of a file when it was listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// The number of its file system (`st_dev`).
    pub device: u64,
    /// Its number in the file system.
    pub inode: u64,
    /// Its length.
    pub bytes: u64,
    /// When its bytes were last changed, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// When anything of it was last changed, in nanoseconds since 1970.
    pub changed_ns: i64,
    /// How many names it has.
    pub links: u32,
}

/// The parent of a root.
const NONE: u32 = u32::MAX;

/// The bit of [`File::device`] that says the name is a symbolic link.
const BY_LINK: u32 = 1 << 31;

#[derive(Debug, Clone, Copy)]
struct Dir {
    parent: u32,
    name: u32,
    root: u32,
}

#[derive(Debug, Clone, Copy)]
struct File {
    dir: u32,
    name: u32,
    inode: u64,
    bytes: u64,
    modified_ns: i64,
    changed_ns: i64,
    links: u32,
    device: u32,
}

/// The files a walk found. It takes 48 bytes for each, and its name.
#[derive(Debug, Default)]
pub struct Tree {
    /// Each ends with a zero byte, so that the kernel takes it as it is.
    names: Vec<u8>,
    dirs: Vec<Dir>,
    files: Vec<File>,
    devices: Vec<u64>,
}

impl Tree {
    /// How many files there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// All files: by path where [`crate::WalkOptions::sort`] asked for it, else as they were found.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = FileId> + use<> {
        let count = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        (0..count).map(FileId)
    }

    /// What the kernel said of the file when it was listed.
    #[must_use]
    pub fn meta(&self, file: FileId) -> Meta {
        let file = self.file(file);
        Meta {
            device: self.devices[(file.device & !BY_LINK) as usize],
            inode: file.inode,
            bytes: file.bytes,
            modified_ns: file.modified_ns,
            changed_ns: file.changed_ns,
            links: file.links,
        }
    }

    /// The directory it is in.
    #[must_use]
    pub fn dir(&self, file: FileId) -> DirId {
        DirId(self.file(file).dir)
    }

    /// Which of the roots it was found below, counted from 0.
    #[must_use]
    pub fn root(&self, file: FileId) -> usize {
        self.dirs[self.file(file).dir as usize].root as usize
    }

    /// Whether its name is a symbolic link, which reading follows.
    #[must_use]
    pub fn is_link(&self, file: FileId) -> bool {
        self.file(file).device & BY_LINK != 0
    }

    /// Its name in its directory.
    #[must_use]
    pub fn name(&self, file: FileId) -> &CStr {
        self.name_at(self.file(file).name)
    }

    /// The path of a file: that of its root, as it was given, and what is below.
    #[must_use]
    pub fn path(&self, file: FileId) -> PathBuf {
        let mut path = Vec::new();
        self.path_into(file, &mut path);
        PathBuf::from(OsString::from_vec(path))
    }

    /// Writes the path of a file in the place of what is in `path`.
    pub fn path_into(&self, file: FileId, path: &mut Vec<u8>) {
        let file = self.file(file);
        self.dir_path_into(DirId(file.dir), path);
        join(path, self.name_at(file.name));
    }

    /// Writes the path of a directory in the place of what is in `path`. It is empty for the
    /// current directory, where a root is the plain name of a file in it.
    pub fn dir_path_into(&self, dir: DirId, path: &mut Vec<u8>) {
        path.clear();
        let mut names = Vec::new();
        let mut at = dir.0;
        while at != NONE {
            let dir = &self.dirs[at as usize];
            names.push(dir.name);
            at = dir.parent;
        }
        for name in names.into_iter().rev() {
            join(path, self.name_at(name));
        }
    }

    /// How many directories there are.
    #[must_use]
    pub fn dir_count(&self) -> usize {
        self.dirs.len()
    }

    /// The directory above, if it is not a root.
    #[must_use]
    pub fn parent(&self, dir: DirId) -> Option<DirId> {
        let parent = self.dirs[dir.0 as usize].parent;
        (parent != NONE).then_some(DirId(parent))
    }

    /// How much memory it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.names.capacity()
            + self.dirs.capacity() * size_of::<Dir>()
            + self.files.capacity() * size_of::<File>()
    }

    /// Puts the files in the order of their paths, part by part, byte by byte; roots stay in the
    /// order they were given in.
    pub(crate) fn sort(&mut self) {
        let sorted: Vec<File> = Sorted::new(self).collect();
        self.files = sorted;
    }

    /// Adds a directory; `None` when there is no room for its name.
    pub(crate) fn add_dir(
        &mut self,
        parent: Option<DirId>,
        name: &[u8],
        root: u32,
    ) -> Option<DirId> {
        let name = self.add_name(name)?;
        let id = u32::try_from(self.dirs.len()).ok().filter(|id| *id != NONE)?;
        self.dirs.push(Dir { parent: parent.map_or(NONE, |dir| dir.0), name, root });
        Some(DirId(id))
    }

    /// Adds a file; `None` when there is no room for it.
    pub(crate) fn add_file(
        &mut self,
        dir: DirId,
        name: &[u8],
        meta: &Meta,
        link: bool,
    ) -> Option<()> {
        let device = self.device(meta.device) | if link { BY_LINK } else { 0 };
        let name = self.add_name(name)?;
        u32::try_from(self.files.len()).ok().filter(|id| *id != NONE)?;
        self.files.push(File {
            dir: dir.0,
            name,
            inode: meta.inode,
            bytes: meta.bytes,
            modified_ns: meta.modified_ns,
            changed_ns: meta.changed_ns,
            links: meta.links,
            device,
        });
        Some(())
    }

    fn add_name(&mut self, name: &[u8]) -> Option<u32> {
        let at = u32::try_from(self.names.len()).ok()?;
        self.names.extend_from_slice(name);
        self.names.push(0);
        Some(at)
    }

    /// There are few devices, and the next file is mostly on the same.
    fn device(&mut self, device: u64) -> u32 {
        let known = self.devices.iter().rposition(|known| *known == device);
        let index = known.unwrap_or_else(|| {
            self.devices.push(device);
            self.devices.len() - 1
        });
        u32::try_from(index).unwrap_or(0)
    }

    fn file(&self, file: FileId) -> &File {
        &self.files[file.0 as usize]
    }

    fn name_at(&self, at: u32) -> &CStr {
        CStr::from_bytes_until_nul(&self.names[at as usize..]).unwrap_or_default()
    }
}

/// `path/name`; an empty path stands for the current directory.
pub(crate) fn join(path: &mut Vec<u8>, name: &CStr) {
    if !path.is_empty() && !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(name.to_bytes());
}

/// The files of a tree in the order of their paths: each directory's entries are sorted by
/// themselves, and walked in that order.
struct Sorted<'a> {
    tree: &'a Tree,
    /// For each directory, where its entries begin in `entries`.
    starts: Vec<u32>,
    entries: Vec<Entry>,
    /// What is still to come, the next one last.
    ahead: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
enum Entry {
    Dir(u32),
    File(u32),
}

impl<'a> Sorted<'a> {
    fn new(tree: &'a Tree) -> Self {
        let mut starts = vec![0_u32; tree.dirs.len() + 1];
        let homes = tree.dirs.iter().map(|dir| dir.parent).filter(|parent| *parent != NONE);
        for home in homes.chain(tree.files.iter().map(|file| file.dir)) {
            starts[home as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut entries = vec![Entry::Dir(0); starts.last().map_or(0, |end| *end as usize)];
        let mut put = |home: u32, entry| {
            entries[next[home as usize] as usize] = entry;
            next[home as usize] += 1;
        };
        let mut ahead = Vec::new();
        for (id, dir) in (0..).zip(&tree.dirs) {
            if dir.parent == NONE {
                ahead.push(Entry::Dir(id));
            } else {
                put(dir.parent, Entry::Dir(id));
            }
        }
        (0..).zip(&tree.files).for_each(|(id, file)| put(file.dir, Entry::File(id)));
        ahead.sort_by_key(|entry| match entry {
            Entry::Dir(id) => tree.dirs[*id as usize].root,
            Entry::File(_) => NONE,
        });
        ahead.reverse();
        Self { tree, starts, entries, ahead }
    }

    fn name(&self, entry: Entry) -> &'a CStr {
        match entry {
            Entry::Dir(id) => self.tree.name_at(self.tree.dirs[id as usize].name),
            Entry::File(id) => self.tree.name_at(self.tree.files[id as usize].name),
        }
    }
}

impl Iterator for Sorted<'_> {
    type Item = File;

    fn next(&mut self) -> Option<File> {
        loop {
            match self.ahead.pop()? {
                Entry::File(id) => return Some(self.tree.files[id as usize]),
                Entry::Dir(id) => {
                    let from = self.ahead.len();
                    let range =
                        self.starts[id as usize] as usize..self.starts[id as usize + 1] as usize;
                    self.ahead.extend_from_slice(&self.entries[range]);
                    let mut below = self.ahead.split_off(from);
                    below.sort_unstable_by(|a, b| self.name(*b).cmp(self.name(*a)));
                    self.ahead.append(&mut below);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: Meta =
        Meta { device: 7, inode: 1, bytes: 2, modified_ns: 3, changed_ns: 4, links: 1 };

    #[test]
    fn paths_are_put_together_from_their_parts() {
        let mut tree = Tree::default();
        let root = tree.add_dir(None, b"/", 0).unwrap();
        let below = tree.add_dir(Some(root), b"srv", 0).unwrap();
        let here = tree.add_dir(None, b"", 1).unwrap();
        for (dir, name) in [(root, "a"), (below, "b"), (here, "c")] {
            tree.add_file(dir, name.as_bytes(), &META, dir == here).unwrap();
        }
        let paths: Vec<_> = tree.ids().map(|id| tree.path(id)).collect();
        assert_eq!(paths, ["/a", "/srv/b", "c"].map(PathBuf::from));
        assert_eq!(tree.ids().map(|id| tree.root(id)).collect::<Vec<_>>(), [0, 0, 1]);
        assert_eq!(tree.ids().map(|id| tree.is_link(id)).collect::<Vec<_>>(), [false, false, true]);
        assert!(tree.ids().all(|id| tree.meta(id) == META));
        assert_eq!((tree.parent(below), tree.parent(here)), (Some(root), None));
    }

    #[test]
    fn a_file_takes_48_bytes_and_its_name() {
        assert_eq!((size_of::<File>(), size_of::<Dir>()), (48, 12));
    }

    #[test]
    fn sorted_is_part_by_part_and_root_by_root() {
        let mut tree = Tree::default();
        let second = tree.add_dir(None, b"a", 1).unwrap();
        let first = tree.add_dir(None, b"z", 0).unwrap();
        let b = tree.add_dir(Some(first), b"b", 0).unwrap();
        let b_minus = tree.add_dir(Some(first), b"b-", 0).unwrap();
        for (dir, name) in
            [(second, "x"), (b, "2"), (first, "c"), (b_minus, "0"), (b, "1"), (first, "a")]
        {
            tree.add_file(dir, name.as_bytes(), &META, false).unwrap();
        }
        tree.sort();
        let paths: Vec<_> = tree.ids().map(|id| tree.path(id)).collect();
        assert_eq!(paths, ["z/a", "z/b/1", "z/b/2", "z/b-/0", "z/c", "a/x"].map(PathBuf::from));
    }
}
