//! What of the found is stored, under which key, and in which order. Pure.

use std::path::PathBuf;

use haul_file_store::KEY_BYTES_MAX;

use crate::store::mtime::Mtime;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes.
    Regular,
    /// A symbolic link that is not to be followed.
    Link,
    /// A socket, a FIFO or a device.
    Special,
}

/// One name below the path to import.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// Relative to the path.
    pub(crate) name: PathBuf,
    pub(crate) kind: Kind,
    pub(crate) bytes: u64,
    pub(crate) modified: Mtime,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// One file to store.
#[derive(Debug)]
pub(crate) struct Planned {
    /// Its key: the prefix, then its relative path.
    pub(crate) key: String,
    pub(crate) bytes: u64,
    pub(crate) modified: Mtime,
    place: (u64, u64),
}

/// Everything to store, in order, and what is left out.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) files: Vec<Planned>,
    /// The bytes of all files together.
    pub(crate) bytes: u64,
    /// The length of the prefix of every key; what follows it is the path.
    pub(crate) prefix_bytes: usize,
    /// Names that cannot be stored, and why.
    pub(crate) refused: Vec<(PathBuf, String)>,
    pub(crate) links: u64,
    pub(crate) special: u64,
}

impl Plan {
    /// The path of a file, relative to what is imported.
    pub(crate) fn path<'a>(&self, file: &'a Planned) -> &'a str {
        &file.key[self.prefix_bytes..]
    }
}

/// Orders the files of each device by inode number: where the extents are unknown, that is roughly
/// the order of their bytes on the disk, since file systems give numbers and blocks that are near
/// to each other to the files of one directory.
pub(crate) fn plan(found: Vec<Found>, prefix: &str) -> Plan {
    let mut plan = Plan { prefix_bytes: prefix.len(), ..Plan::default() };
    for found in found {
        match found.kind {
            Kind::Link => plan.links += 1,
            Kind::Special => plan.special += 1,
            Kind::Regular => match key(&found, prefix) {
                Err(why) => plan.refused.push((found.name, why)),
                Ok(key) => {
                    plan.bytes += found.bytes;
                    let place = (found.device, found.inode);
                    let (bytes, modified) = (found.bytes, found.modified);
                    plan.files.push(Planned { key, bytes, modified, place });
                }
            },
        }
    }
    plan.files.sort_unstable_by(|a, b| (a.place, &a.key).cmp(&(b.place, &b.key)));
    plan
}

fn key(found: &Found, prefix: &str) -> Result<String, String> {
    let Some(name) = found.name.to_str() else {
        return Err("its name is not UTF-8, so it cannot be a key".to_owned());
    };
    let key = format!("{prefix}{name}");
    if key.len() > KEY_BYTES_MAX {
        let bytes = key.len();
        return Err(format!("its key would have {bytes} bytes, {KEY_BYTES_MAX} is the most"));
    }
    Ok(key)
}

/// Whether files are read one after another: on a spinning disk several readers would undo the
/// order, elsewhere they are faster.
pub(crate) fn one_reader(rotational: Option<bool>) -> bool {
    rotational == Some(true)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn found(name: &[u8], kind: Kind, device: u64, inode: u64) -> Found {
        let name = PathBuf::from(OsStr::from_bytes(name));
        Found { name, kind, bytes: 10, modified: Mtime::default(), device, inode }
    }

    #[test]
    fn files_are_ordered_by_device_and_inode() {
        let files = [
            found(b"a", Kind::Regular, 2, 1),
            found(b"b/c", Kind::Regular, 1, 9),
            found(b"b/d", Kind::Regular, 1, 3),
            found(b"link-to-d", Kind::Regular, 1, 3),
        ];
        let plan = plan(files.into(), "p/");
        let keys: Vec<_> = plan.files.iter().map(|file| file.key.as_str()).collect();
        assert_eq!(keys, ["p/b/d", "p/link-to-d", "p/b/c", "p/a"]);
        assert_eq!(plan.path(&plan.files[2]), "b/c");
        assert_eq!(plan.bytes, 40);
    }

    #[test]
    fn what_cannot_be_stored_is_told_apart_from_what_need_not() {
        let long = [b'x'; KEY_BYTES_MAX];
        let names = [
            found(b"\xff", Kind::Regular, 1, 1),
            found(&long, Kind::Regular, 1, 2),
            found(b"link", Kind::Link, 1, 3),
            found(b"fifo", Kind::Special, 1, 4),
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
    fn only_a_spinning_disk_is_read_by_one() {
        assert!(one_reader(Some(true)));
        assert!(!one_reader(Some(false)));
        assert!(!one_reader(None));
    }
}
