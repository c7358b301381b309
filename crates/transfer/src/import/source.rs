//! Opens the directory to import, and reads its files.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// A directory to import, or a single file in it.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    dir: OwnedFd,
    single: Option<PathBuf>,
    follow: bool,
}

impl Source {
    /// Opens the directory at `path`, or the parent directory of the file at `path`. If `follow` is
    /// `true`, symbolic links below the directory are followed.
    ///
    /// # Errors
    /// Fails if `path` does not exist, cannot be opened, or is neither a file nor a directory.
    pub fn open(path: &Path, follow: bool) -> io::Result<Self> {
        let status = std::fs::metadata(path)?;
        if status.is_dir() {
            return Self::of(path, None, follow);
        }
        match (path.parent(), path.file_name()) {
            // A symbolic link that the user named is followed.
            (Some(parent), Some(name)) if status.is_file() => Self::of(parent, Some(name), true),
            _ => Err(io::Error::other("not a file or directory")),
        }
    }

    fn of(path: &Path, single: Option<&OsStr>, follow: bool) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let dir = fs::open(path, flags, Mode::empty())?;
        Ok(Self { path: path.to_owned(), dir, single: single.map(PathBuf::from), follow })
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the name of the single file to import; returns `None` for a whole directory.
    pub(crate) fn single(&self) -> Option<&Path> {
        self.single.as_deref()
    }

    /// Returns `true` if symbolic links are followed.
    pub(crate) fn follows(&self) -> bool {
        self.follow
    }

    /// Opens a file. Unless links are followed, a directory or file that was replaced by a symbolic
    /// link cannot lead out of the source.
    pub(crate) fn read(&self, name: &str) -> io::Result<Reading> {
        // With NONBLOCK the open does not block if a FIFO replaced the file.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = match self.follow {
            true => ResolveFlags::empty(),
            false => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        };
        let file = loop {
            match fs::openat2(&self.dir, name, flags, Mode::empty(), resolve) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                other => break File::from(other?),
            }
        };
        let status = file.metadata()?;
        if !status.is_file() {
            return Err(io::Error::other("no longer a regular file"));
        }
        Ok(Reading { file, status })
    }
}

/// A file open for reading, and its status when it was opened.
pub(crate) struct Reading {
    file: File,
    status: Metadata,
}

impl Reading {
    /// Returns the status of the file when it was opened.
    pub(crate) fn status(&self) -> &Metadata {
        &self.status
    }

    /// Reads the whole file. Fails if the file changed after it was opened.
    pub(crate) fn read_all(mut self) -> io::Result<Vec<u8>> {
        let expected = usize::try_from(self.status.len()).map_err(io::Error::other)?;
        // One byte more than expected is read, to detect that the file grew.
        let mut bytes = Vec::with_capacity(expected + 1);
        self.file.by_ref().take(self.status.len() + 1).read_to_end(&mut bytes)?;
        self.finish(bytes.len() as u64)?;
        Ok(bytes)
    }

    /// Reads the next bytes; returns 0 at the end of the file.
    pub(crate) fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Fails if the file changed after it was opened: the `bytes` read may be a mixture of old and
    /// new content.
    pub(crate) fn finish(self, bytes: u64) -> io::Result<()> {
        let state = |status: &Metadata| (status.len(), status.mtime(), status.mtime_nsec());
        if bytes != self.status.len() || state(&self.file.metadata()?) != state(&self.status) {
            return Err(io::Error::other("changed while being read; import it again"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn file_changed_while_reading_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("f"), "1234").unwrap();
        let source = Source::open(dir.path(), false).unwrap();
        assert_eq!(source.read("f").unwrap().read_all().unwrap(), b"1234");
        let reading = source.read("f").unwrap();
        fs::write(dir.path().join("f"), "12345").unwrap();
        assert!(reading.read_all().unwrap_err().to_string().contains("changed"));
    }

    #[test]
    fn directory_replaced_with_a_link_is_not_followed() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(other.path().join("f"), "secret").unwrap();
        symlink(other.path(), dir.path().join("d")).unwrap();
        assert!(Source::open(dir.path(), false).unwrap().read("d/f").is_err());
        assert!(Source::open(dir.path(), true).unwrap().read("d/f").is_ok());
    }

    #[test]
    fn single_file_is_read_in_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("f"), "1234").unwrap();
        let source = Source::open(&dir.path().join("f"), false).unwrap();
        assert_eq!(source.single(), Some(Path::new("f")));
        assert_eq!(source.path(), dir.path());
        assert!(Source::open(Path::new("/dev/null"), false).is_err());
    }
}
