//! Plans the keys and the order of the files to import. Performs no I/O.

use std::path::PathBuf;

use haul_file_store::KEY_BYTES_MAX;

use crate::mtime::Mtime;

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A regular file.
    Regular,
    /// A symbolic link that is not followed.
    Link,
    /// A socket, FIFO or device.
    Special,
}

/// A directory entry below the path to import.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The path relative to the directory to import.
    pub(crate) name: PathBuf,
    pub(crate) kind: Kind,
    pub(crate) bytes: u64,
    pub(crate) modified: Mtime,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// A file to import.
#[derive(Debug)]
pub(crate) struct PlannedFile {
    /// The key: the prefix, followed by the relative path.
    pub(crate) key: String,
    pub(crate) bytes: u64,
    pub(crate) modified: Mtime,
    position: (u64, u64),
}

/// The files to import, in order, and the entries skipped.
#[derive(Debug, Default)]
pub struct ImportPlan {
    pub(crate) files: Vec<PlannedFile>,
    /// The total length of the files, in bytes.
    pub bytes: u64,
    /// The length of the prefix of every key, in bytes; the rest of the key is the relative path.
    pub(crate) prefix_bytes: usize,
    /// The entries that cannot be stored or read, each with the reason.
    pub refused: Vec<(PathBuf, String)>,
    /// The number of symbolic links, which are skipped.
    pub links: u64,
    /// The number of sockets, FIFOs and devices, which are skipped.
    pub special: u64,
    /// The directories skipped because they are the store itself.
    pub stores: Vec<PathBuf>,
}

impl ImportPlan {
    /// Returns the number of files to import.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.files.len() as u64
    }

    /// Returns the relative path of a file.
    pub(crate) fn path<'a>(&self, file: &'a PlannedFile) -> &'a str {
        &file.key[self.prefix_bytes..]
    }
}

/// Plans the import. The files of each device are sorted by inode number, which approximates their
/// order on disk without reading extents: file systems place the inodes and blocks of the files of
/// one directory close to each other.
pub(crate) fn plan(entries: Vec<Entry>, prefix: &str) -> ImportPlan {
    let mut plan = ImportPlan { prefix_bytes: prefix.len(), ..ImportPlan::default() };
    for entry in entries {
        match entry.kind {
            Kind::Link => plan.links += 1,
            Kind::Special => plan.special += 1,
            Kind::Regular => match key(&entry, prefix) {
                Err(reason) => plan.refused.push((entry.name, reason)),
                Ok(key) => {
                    plan.bytes += entry.bytes;
                    let position = (entry.device, entry.inode);
                    let (bytes, modified) = (entry.bytes, entry.modified);
                    plan.files.push(PlannedFile { key, bytes, modified, position });
                }
            },
        }
    }
    plan.files.sort_unstable_by(|a, b| (a.position, &a.key).cmp(&(b.position, &b.key)));
    plan
}

fn key(entry: &Entry, prefix: &str) -> Result<String, String> {
    let Some(name) = entry.name.to_str() else {
        return Err("the name is not valid UTF-8".to_owned());
    };
    let key = format!("{prefix}{name}");
    if key.len() > KEY_BYTES_MAX {
        let bytes = key.len();
        return Err(format!("the key would have {bytes} bytes; the maximum is {KEY_BYTES_MAX}"));
    }
    Ok(key)
}

/// Returns `true` if only one thread may read at a time: on a rotational disk, parallel reads would
/// break the order of the plan. On other devices, parallel reads are faster.
pub(crate) fn one_reader(rotational: Option<bool>) -> bool {
    rotational == Some(true)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn entry(name: &[u8], kind: Kind, device: u64, inode: u64) -> Entry {
        let name = PathBuf::from(OsStr::from_bytes(name));
        Entry { name, kind, bytes: 10, modified: Mtime::default(), device, inode }
    }

    #[test]
    fn files_are_ordered_by_device_and_inode() {
        let files = [
            entry(b"a", Kind::Regular, 2, 1),
            entry(b"b/c", Kind::Regular, 1, 9),
            entry(b"b/d", Kind::Regular, 1, 3),
            entry(b"link-to-d", Kind::Regular, 1, 3),
        ];
        let plan = plan(files.into(), "p/");
        let keys: Vec<_> = plan.files.iter().map(|file| file.key.as_str()).collect();
        assert_eq!(keys, ["p/b/d", "p/link-to-d", "p/b/c", "p/a"]);
        assert_eq!(plan.path(&plan.files[2]), "b/c");
        assert_eq!(plan.bytes, 40);
    }

    #[test]
    fn invalid_names_are_refused_and_special_files_skipped() {
        let long = [b'x'; KEY_BYTES_MAX];
        let names = [
            entry(b"\xff", Kind::Regular, 1, 1),
            entry(&long, Kind::Regular, 1, 2),
            entry(b"link", Kind::Link, 1, 3),
            entry(b"fifo", Kind::Special, 1, 4),
        ];
        let with_prefix = plan(names.to_vec(), "p");
        assert!(with_prefix.files.is_empty());
        assert_eq!(with_prefix.refused.len(), 2);
        assert!(with_prefix.refused[0].1.contains("UTF-8"));
        assert!(with_prefix.refused[1].1.contains("1025 bytes"));
        assert_eq!((with_prefix.links, with_prefix.special), (1, 1));
        assert_eq!(plan(names.to_vec(), "").files.len(), 1, "just short enough");
    }

    #[test]
    fn only_rotational_disks_have_one_reader() {
        assert!(one_reader(Some(true)));
        assert!(!one_reader(Some(false)));
        assert!(!one_reader(None));
    }
}
