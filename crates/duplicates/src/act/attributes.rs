//! What a file has beside its content, owner, mode and times: extended attributes, among them ACLs,
//! capabilities and security labels, and the flags and the project of `chattr`.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use haul_disk::project;
use rustix::fs::{IFlags, XattrFlags, ioctl_getflags};
use rustix::fs::{fgetxattr, flistxattr, fremovexattr, fsetxattr};
use rustix::io::Errno;

/// The extended attribute that holds the ACL.
const ACL: &CStr = c"system.posix_acl_access";

/// The flags that the kernel sets by itself, by how it stores the file: `FS_DIRTY_FL`,
/// `FS_COMPRBLK_FL`, `FS_INDEX_FL`, `FS_HUGE_FILE_FL`, `FS_EXTENT_FL`, `FS_EA_INODE_FL`,
/// `FS_EOFBLOCKS_FL` and `FS_INLINE_DATA_FL`. All others count, also those that rustix does not
/// name, such as `FS_NOCOMP_FL` and `FS_DAX_FL`.
const STORAGE_FLAGS: IFlags = IFlags::from_bits_retain(
    0x100 | 0x200 | 0x1000 | 0x4_0000 | 0x8_0000 | 0x20_0000 | 0x40_0000 | 0x1000_0000,
);

/// The extended attributes, the flags and the project of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Attributes {
    extended: BTreeMap<CString, Vec<u8>>,
    /// Without [`STORAGE_FLAGS`]. Empty on a file system without flags.
    flags: IFlags,
    /// `None` on a file system without projects.
    project: Option<u32>,
}

impl Attributes {
    /// Reads the attributes. A file system without extended attributes has none.
    pub(super) fn read(file: &File) -> io::Result<Self> {
        let mut extended = BTreeMap::new();
        for name in names(file)? {
            // An attribute removed since it was listed is no attribute.
            if let Some(value) = value(file, &name)? {
                extended.insert(name, value);
            }
        }
        let flags = ioctl_getflags(file).unwrap_or(IFlags::empty()).difference(STORAGE_FLAGS);
        let project = project(file.as_fd()).map_err(|error| error.source)?;
        Ok(Self { extended, flags, project })
    }

    /// Names the first attribute in which two files differ.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let mut names = self.extended.keys().chain(other.extended.keys());
        let differs = |name: &&CString| self.extended.get(*name) != other.extended.get(*name);
        let extended = names.find(differs).map(|name| title(name));
        let flags = || (self.flags != other.flags).then(|| "flags (lsattr)".to_owned());
        let project = || (self.project != other.project).then(|| "project (lsattr -p)".to_owned());
        extended.or_else(flags).or_else(project)
    }

    /// Sets the extended attributes of a new file, except its ACL.
    ///
    /// # Errors
    /// The name of the attribute that could not be set, and why.
    pub(super) fn write_all_but_acl(&self, to: &File) -> Result<(), (String, io::Error)> {
        let others = self.extended.iter().filter(|(name, _)| ***name != *ACL);
        for (name, bytes) in others {
            // A new file may have the label already, and only some processes may set one.
            if value(to, name).is_ok_and(|current| current.as_ref() == Some(bytes)) {
                continue;
            }
            set(to, name, bytes)?;
        }
        Ok(())
    }

    /// Sets the ACL of a new file, or removes the one that it inherited from its directory.
    ///
    /// # Errors
    /// As for [`Self::write_all_but_acl`].
    pub(super) fn write_acl(&self, to: &File) -> Result<(), (String, io::Error)> {
        match self.extended.get(ACL) {
            Some(bytes) => set(to, ACL, bytes),
            None => match fremovexattr(to, ACL) {
                Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
                Err(errno) => Err((title(ACL), errno.into())),
            },
        }
    }
}

fn set(to: &File, name: &CStr, bytes: &[u8]) -> Result<(), (String, io::Error)> {
    fsetxattr(to, name, bytes, XattrFlags::empty()).map_err(|errno| (title(name), errno.into()))
}

/// Returns what users call an attribute.
fn title(name: &CStr) -> String {
    match name.to_bytes() {
        b"system.posix_acl_access" | b"system.nfs4_acl" | b"system.richacl" => "ACL".to_owned(),
        b"security.capability" => "capabilities".to_owned(),
        b"security.selinux" => "SELinux label".to_owned(),
        bytes => format!("extended attribute {}", String::from_utf8_lossy(bytes)),
    }
}

/// Calls `read` with a buffer that is long enough: an attribute may grow between two calls.
fn read_all(mut read: impl FnMut(&mut Vec<u8>) -> Result<usize, Errno>) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; 256];
    loop {
        match read(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            // The kernel permits at most 64 KiB.
            Err(Errno::RANGE) if buffer.len() <= 64 << 10 => buffer.resize(buffer.len() * 4, 0),
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn names(file: &File) -> io::Result<Vec<CString>> {
    let list = match read_all(|buffer| flistxattr(file, &mut buffer[..])) {
        Ok(list) => list,
        Err(error) if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let names = list.split_inclusive(|byte| *byte == 0);
    Ok(names.filter_map(|name| CStr::from_bytes_with_nul(name).ok()).map(CStr::to_owned).collect())
}

fn value(file: &File, name: &CStr) -> io::Result<Option<Vec<u8>>> {
    match read_all(|buffer| fgetxattr(file, name, &mut buffer[..])) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.raw_os_error() == Some(Errno::NODATA.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}
