//! The directory that is imported, and the reading of one file of it.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::report::{Failure, OrFail, Result};

/// A directory, and perhaps the one file of it that is wanted.
pub(super) struct Source {
    path: PathBuf,
    dir: OwnedFd,
    single: Option<PathBuf>,
    follow: bool,
}

impl Source {
    /// The directory at `path`; or the file at `path`, in its directory.
    pub(super) fn open(path: &Path, follow: bool) -> Result<Self> {
        let cannot = || format!("cannot import {}", path.display());
        let status = std::fs::metadata(path).or_fail(cannot)?;
        if status.is_dir() {
            return Self::of(path, None, follow).or_fail(cannot);
        }
        match (path.parent(), path.file_name()) {
            // The user named the file, so a link in its place is followed.
            (Some(parent), Some(name)) if status.is_file() => {
                Self::of(parent, Some(name), true).or_fail(cannot)
            }
            _ => Err(Failure::new(format!("{}: it is neither a directory nor a file", cannot()))),
        }
    }

    fn of(path: &Path, single: Option<&OsStr>, follow: bool) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let dir = fs::open(path, flags, Mode::empty())?;
        Ok(Self { path: path.to_owned(), dir, single: single.map(PathBuf::from), follow })
    }

    /// The directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The one file to import, when it is not the whole directory.
    pub(super) fn single(&self) -> Option<&Path> {
        self.single.as_deref()
    }

    /// Whether symbolic links are followed.
    pub(super) fn follows(&self) -> bool {
        self.follow
    }

    /// Opens a file to read it whole. Unless links are followed, nothing that is exchanged for a
    /// link meanwhile can lead out of the directory.
    pub(super) fn read(&self, name: &str) -> io::Result<Reading> {
        // A FIFO that took the place of the file must not block.
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
            return Err(io::Error::other("it is no longer a regular file"));
        }
        Ok(Reading { file, status })
    }
}

/// A file being read.
pub(super) struct Reading {
    file: File,
    status: Metadata,
}

impl Reading {
    /// Its status when it was opened.
    pub(super) fn status(&self) -> &Metadata {
        &self.status
    }

    /// All its bytes.
    pub(super) fn whole(mut self) -> io::Result<Vec<u8>> {
        let expected = usize::try_from(self.status.len()).map_err(io::Error::other)?;
        // One byte more than expected is enough to know that it grew.
        let mut bytes = Vec::with_capacity(expected + 1);
        self.file.by_ref().take(self.status.len() + 1).read_to_end(&mut bytes)?;
        self.finish(bytes.len() as u64)?;
        Ok(bytes)
    }

    /// The next bytes; 0 at the end.
    pub(super) fn some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Refuses bytes that may be half of one state of the file and half of another.
    pub(super) fn finish(self, bytes: u64) -> io::Result<()> {
        let state = |status: &Metadata| (status.len(), status.mtime(), status.mtime_nsec());
        if bytes != self.status.len() || state(&self.file.metadata()?) != state(&self.status) {
            return Err(io::Error::other("it changed while it was read; import it once more"));
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
    fn a_file_that_changes_while_it_is_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("f"), "1234").unwrap();
        let source = Source::open(dir.path(), false).unwrap();
        assert_eq!(source.read("f").unwrap().whole().unwrap(), b"1234");
        let reading = source.read("f").unwrap();
        fs::write(dir.path().join("f"), "12345").unwrap();
        assert!(reading.whole().unwrap_err().to_string().contains("changed"));
    }

    #[test]
    fn a_directory_exchanged_for_a_link_leads_nowhere() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(other.path().join("f"), "secret").unwrap();
        symlink(other.path(), dir.path().join("d")).unwrap();
        assert!(Source::open(dir.path(), false).unwrap().read("d/f").is_err());
        assert!(Source::open(dir.path(), true).unwrap().read("d/f").is_ok());
    }

    #[test]
    fn a_single_file_is_read_in_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("f"), "1234").unwrap();
        let source = Source::open(&dir.path().join("f"), false).unwrap();
        assert_eq!(source.single(), Some(Path::new("f")));
        assert_eq!(source.path(), dir.path());
        assert!(Source::open(Path::new("/dev/null"), false).is_err());
    }
}
