//! Opens directories and files by paths of any length.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{self, CWD, Mode, OFlags};
use rustix::io::Errno;

/// The maximum length of the path passed to one system call, in bytes. It is below `PATH_MAX`,
/// which is 4096 including the terminating NUL.
const PATH_BYTES_MAX: usize = 4000;

/// Opens the directory at `path`; the empty path stands for the current directory. A longer path
/// than [`PATH_BYTES_MAX`] is opened in parts, each relative to the directory opened before.
pub(crate) fn open_dir(path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut rest = if path.is_empty() { b"." } else { path };
    let mut at: Option<OwnedFd> = None;
    loop {
        let (part, left) = first_part(rest);
        let name = CString::new(part).map_err(|_zero| Errno::NOENT)?;
        let flags = if left.is_empty() { flags } else { OFlags::PATH | OFlags::CLOEXEC };
        let opened = match &at {
            Some(dir) => fs::openat(dir, &name, flags, Mode::empty())?,
            None => fs::openat(CWD, &name, flags, Mode::empty())?,
        };
        if left.is_empty() {
            return Ok(opened);
        }
        (at, rest) = (Some(opened), left);
    }
}

/// Opens a directory by a path of any length, as a descriptor that only identifies it (`O_PATH`).
/// The empty path stands for the current directory.
///
/// # Errors
/// The error of `openat(2)`.
pub fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(open_dir(path.as_os_str().as_bytes(), flags)?)
}

/// Opens the regular file at a path of any length for reading. Does not wait for the other end of a
/// pipe.
///
/// # Errors
/// The error of `openat(2)`, or [`io::ErrorKind::InvalidInput`] if it is no regular file.
pub fn open_file(path: &Path) -> io::Result<File> {
    let not_regular = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(not_regular());
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(fs::openat(open_directory(parent)?, name, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

/// Splits off the longest prefix that ends at a slash and is at most [`PATH_BYTES_MAX`] long.
fn first_part(path: &[u8]) -> (&[u8], &[u8]) {
    if path.len() <= PATH_BYTES_MAX {
        return (path, &[]);
    }
    match path[..PATH_BYTES_MAX].iter().rposition(|byte| *byte == b'/') {
        Some(slash) if slash > 0 => (&path[..slash], &path[slash + 1..]),
        _ => (path, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_path_is_split_at_slashes() {
        assert_eq!(first_part(b"/a/b"), (&b"/a/b"[..], &b""[..]));
        let long = [b"/".as_slice(), &[b'x'; 3990], b"/y/", &[b'z'; 20]].concat();
        let (part, rest) = first_part(&long);
        assert_eq!((part.len(), rest.len()), (3993, 20));
        assert_eq!([part, b"/", rest].concat(), long);
    }
}
