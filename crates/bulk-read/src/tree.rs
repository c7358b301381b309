//! Stores the files found by a walk in compact form. All names are in one buffer. A directory
//! consists of a parent and a name; a file consists of a directory, a name and metadata.

use std::ffi::{CStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::path::join;

/// The index of a file in a [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// The index of a directory in a [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirId(pub u32);

/// The metadata of a file when it was listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// The device number of the file's file system (`st_dev`).
    pub device: u64,
    /// The inode number.
    pub inode: u64,
    /// The length, in bytes.
    pub bytes: u64,
    /// The modification time (`mtime`), in nanoseconds since 1970.
    pub modified_ns: i64,
    /// The status change time (`ctime`), in nanoseconds since 1970.
    pub changed_ns: i64,
    /// The number of hard links.
    pub links: u32,
}

/// The value of [`Dir::parent`] for a root, which has no parent.
const NONE: u32 = u32::MAX;

/// The bit of [`File::device`] that marks a symbolic link. The other bits are an index into
/// [`Tree::devices`].
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

/// The files found by a walk. Each file takes 48 bytes plus its name.
#[derive(Debug, Default)]
pub struct Tree {
    /// The names of directories and files, each NUL-terminated, so that they can be passed to
    /// system calls. [`Dir::name`] and [`File::name`] are byte offsets into this buffer.
    names: Vec<u8>,
    dirs: Vec<Dir>,
    files: Vec<File>,
    devices: Vec<u64>,
}

impl Tree {
    /// Returns the number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// `true` if there are no files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns all files: sorted by path with [`crate::WalkOptions::sort`], else in order of
    /// discovery.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = FileId> + DoubleEndedIterator + use<> {
        let count = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        (0..count).map(FileId)
    }

    /// Returns the metadata of the file when it was listed.
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

    /// Returns the directory of the file.
    #[must_use]
    pub fn dir(&self, file: FileId) -> DirId {
        DirId(self.file(file).dir)
    }

    /// Returns the index of the root below which the walk found the file.
    #[must_use]
    pub fn root(&self, file: FileId) -> usize {
        self.dirs[self.file(file).dir as usize].root as usize
    }

    /// `true` if the file is a symbolic link; a read follows the link.
    #[must_use]
    pub fn is_link(&self, file: FileId) -> bool {
        self.file(file).device & BY_LINK != 0
    }

    /// Returns the name of the file, without its directory.
    #[must_use]
    pub fn name(&self, file: FileId) -> &CStr {
        self.name_at(self.file(file).name)
    }

    /// Returns the path of a file, starting with its root as given.
    #[must_use]
    pub fn path(&self, file: FileId) -> PathBuf {
        let mut path = Vec::new();
        self.path_into(file, &mut path);
        PathBuf::from(OsString::from_vec(path))
    }

    /// Replaces the content of `path` by the path of a file.
    pub fn path_into(&self, file: FileId, path: &mut Vec<u8>) {
        let file = self.file(file);
        self.dir_path_into(DirId(file.dir), path);
        join(path, self.name_at(file.name));
    }

    /// Replaces the content of `path` by the path of a directory. The path is empty for the current
    /// directory, which is the parent of a root given as a bare file name.
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

    /// Returns the number of directories.
    #[must_use]
    pub fn dir_count(&self) -> usize {
        self.dirs.len()
    }

    /// Returns the parent directory; `None` for a root.
    #[must_use]
    pub fn parent(&self, dir: DirId) -> Option<DirId> {
        let parent = self.dirs[dir.0 as usize].parent;
        (parent != NONE).then_some(DirId(parent))
    }

    /// Returns the memory in use, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.names.capacity()
            + self.dirs.capacity() * size_of::<Dir>()
            + self.files.capacity() * size_of::<File>()
    }

    /// Sorts the files by path, bytewise per component; the order of the roots stays as given.
    pub(crate) fn sort(&mut self) {
        let sorted: Vec<File> = Sorted::new(self).collect();
        self.files = sorted;
    }

    /// Adds a directory; returns `None` if the tree is full.
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

    /// Adds a file; returns `None` if the tree is full.
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

    /// Returns the index of the device number in `devices`. The search starts at the end, because
    /// the next file is usually on the device added last.
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

/// An iterator over the files of a tree in path order: a depth-first traversal that sorts the
/// entries of each directory when it enters the directory.
struct Sorted<'a> {
    tree: &'a Tree,
    /// For each directory, the start of its range in `entries`.
    starts: Vec<u32>,
    entries: Vec<Entry>,
    /// Entries not visited yet, in reverse order: the last element is visited next.
    stack: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
enum Entry {
    Dir(u32),
    File(u32),
}

impl<'a> Sorted<'a> {
    fn new(tree: &'a Tree) -> Self {
        let mut starts = vec![0_u32; tree.dirs.len() + 1];
        let parents = tree.dirs.iter().map(|dir| dir.parent).filter(|parent| *parent != NONE);
        for parent in parents.chain(tree.files.iter().map(|file| file.dir)) {
            starts[parent as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut entries = vec![Entry::Dir(0); starts.last().map_or(0, |end| *end as usize)];
        let mut place = |parent: u32, entry| {
            entries[next[parent as usize] as usize] = entry;
            next[parent as usize] += 1;
        };
        let mut stack = Vec::new();
        for (id, dir) in (0..).zip(&tree.dirs) {
            if dir.parent == NONE {
                stack.push(Entry::Dir(id));
            } else {
                place(dir.parent, Entry::Dir(id));
            }
        }
        (0..).zip(&tree.files).for_each(|(id, file)| place(file.dir, Entry::File(id)));
        stack.sort_by_key(|entry| match entry {
            Entry::Dir(id) => tree.dirs[*id as usize].root,
            Entry::File(_) => NONE,
        });
        stack.reverse();
        Self { tree, starts, entries, stack }
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
            match self.stack.pop()? {
                Entry::File(id) => return Some(self.tree.files[id as usize]),
                Entry::Dir(id) => {
                    let from = self.stack.len();
                    let range =
                        self.starts[id as usize] as usize..self.starts[id as usize + 1] as usize;
                    self.stack.extend_from_slice(&self.entries[range]);
                    let mut below = self.stack.split_off(from);
                    below.sort_unstable_by(|a, b| self.name(*b).cmp(self.name(*a)));
                    self.stack.append(&mut below);
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
    fn paths_are_joined_from_components() {
        let mut tree = Tree::default();
        let root = tree.add_dir(None, b"/", 0).unwrap();
        let below = tree.add_dir(Some(root), b"srv", 0).unwrap();
        let current = tree.add_dir(None, b"", 1).unwrap();
        for (dir, name) in [(root, "a"), (below, "b"), (current, "c")] {
            tree.add_file(dir, name.as_bytes(), &META, dir == current).unwrap();
        }
        let paths: Vec<_> = tree.ids().map(|id| tree.path(id)).collect();
        assert_eq!(paths, ["/a", "/srv/b", "c"].map(PathBuf::from));
        assert_eq!(tree.ids().map(|id| tree.root(id)).collect::<Vec<_>>(), [0, 0, 1]);
        assert_eq!(tree.ids().map(|id| tree.is_link(id)).collect::<Vec<_>>(), [false, false, true]);
        assert!(tree.ids().all(|id| tree.meta(id) == META));
        assert_eq!((tree.parent(below), tree.parent(current)), (Some(root), None));
    }

    #[test]
    fn file_takes_48_bytes_and_its_name() {
        assert_eq!((size_of::<File>(), size_of::<Dir>()), (48, 12));
    }

    #[test]
    fn files_are_sorted_per_component_and_root() {
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
