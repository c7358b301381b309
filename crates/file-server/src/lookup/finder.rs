//! Finds the file or directory at the path of a request.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::Stat;

use super::encoded_forms::EncodedForms;
use super::root::{DiskWait, Entry, OpenError, Root};
use crate::file::cache_key::KeyRef;
use crate::file::coding::{AcceptedCodings, Coding};
use crate::file::description::{Meta, OpenFile, Variant, Version};
use crate::file::source::FileSource;
use crate::request::path::{InvalidPath, Path, checked};

/// The file that is served for a directory.
const INDEX: &[u8] = b"index.html";

/// The result of a lookup.
#[derive(Debug, Clone)]
pub(crate) enum PathEntry {
    File(Arc<OpenFile>),
    /// The cached file, which has not changed.
    Unchanged(FileSource),
    /// A directory whose path lacks the slash at its end.
    WithoutSlash,
    /// A directory to be listed.
    Directory(Arc<OwnedFd>),
    /// No file; the response has this status.
    Status(u16),
}

/// The error of a lookup that would wait for the disk.
#[derive(Debug)]
pub(crate) struct WouldBlock;

/// The circumstances of a lookup.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) wait: DiskWait,
    pub(crate) now_ms: u64,
    /// The file in the cache. If it has not changed, its description is not written again.
    pub(crate) cached: Option<&'a FileSource>,
}

/// A file that was opened, or an encoded form of it.
struct OpenVariant {
    fd: OwnedFd,
    stat: Stat,
    variant: Variant,
}

/// Finds files.
#[derive(Debug)]
pub(crate) struct Finder {
    pub(crate) root: Root,
    pub(crate) with_dotfiles: bool,
    /// What is known about encoded forms; `None` if they are not served.
    pub(crate) forms: Option<EncodedForms>,
    pub(crate) with_listings: bool,
    pub(crate) cache_control: Option<Arc<str>>,
}

impl Finder {
    /// Finds the file at a decoded path, in the coding that the client prefers.
    pub(crate) fn find(
        &self,
        key: KeyRef<'_>,
        search: Search<'_>,
    ) -> Result<PathEntry, WouldBlock> {
        let accepted = key.accepted;
        let path = match checked(key.path, self.with_dotfiles) {
            Ok(path) => path,
            Err(InvalidPath::Malformed) => return Ok(PathEntry::Status(400)),
            Err(InvalidPath::Hidden) => return Ok(PathEntry::Status(404)),
        };
        let found = match search.cached {
            Some(file) => match self.is_unchanged(&path, file.meta(), search) {
                Ok(true) => Ok(PathEntry::Unchanged(file.clone())),
                Ok(false) => self.open(&path, accepted, search),
                Err(error) => Err(error),
            },
            None => self.open(&path, accepted, search),
        };
        match found {
            Ok(found) => Ok(found),
            Err(OpenError::WouldBlock) => Err(WouldBlock),
            Err(OpenError::Status(status)) => Ok(PathEntry::Status(status)),
        }
    }

    fn open(
        &self,
        path: &Path<'_>,
        accepted: AcceptedCodings,
        search: Search<'_>,
    ) -> Result<PathEntry, OpenError> {
        match self.root.open_at(path.below_root, search.wait)? {
            Entry::File(..) if path.is_directory => Ok(PathEntry::Status(404)),
            Entry::File(fd, stat) => self.file(path.below_root, fd, &stat, accepted, search),
            Entry::Directory(_) if !path.is_directory => Ok(PathEntry::WithoutSlash),
            Entry::Directory(fd) => self.directory(path, fd, accepted, search),
        }
    }

    /// Returns the status of the target of a link in the directory at a decoded path, if it can be
    /// served.
    pub(crate) fn stat_target(&self, decoded: &[u8], name: &[u8]) -> Option<Stat> {
        let decoded = [decoded, name].concat();
        let path = checked(&decoded, self.with_dotfiles).ok()?;
        self.root.stat_at(path.below_root)
    }

    fn directory(
        &self,
        path: &Path<'_>,
        fd: OwnedFd,
        accepted: AcceptedCodings,
        search: Search<'_>,
    ) -> Result<PathEntry, OpenError> {
        let separator = if path.below_root.is_empty() { &b""[..] } else { b"/" };
        let index = [path.below_root, separator, INDEX].concat();
        match self.root.open_at(&index, search.wait) {
            Ok(Entry::File(fd, stat)) => self.file(&index, fd, &stat, accepted, search),
            Ok(Entry::Directory(_)) | Err(OpenError::Status(404)) if self.with_listings => {
                Ok(PathEntry::Directory(Arc::new(fd)))
            }
            Ok(Entry::Directory(_)) => Ok(PathEntry::Status(404)),
            Err(error) => Err(error),
        }
    }

    fn file(
        &self,
        below_root: &[u8],
        fd: OwnedFd,
        stat: &Stat,
        accepted: AcceptedCodings,
        search: Search<'_>,
    ) -> Result<PathEntry, OpenError> {
        let plain = OpenVariant { fd, stat: *stat, variant: Variant::default() };
        let OpenVariant { fd, stat, variant } = if self.may_have_form(below_root, search)? {
            self.form(below_root, plain, accepted, search.wait)?
        } else {
            plain
        };
        let is_cached = |file: &&FileSource| file.meta().describes(Version::of(&stat), variant);
        if let Some(file) = search.cached.filter(is_cached) {
            return Ok(PathEntry::Unchanged(file.clone()));
        }
        let meta = Meta::new(below_root, &stat, variant, self.cache_control.clone());
        Ok(match meta {
            Ok(meta) => PathEntry::File(Arc::new(OpenFile::new(fd, meta))),
            // The configuration was checked when the server started.
            Err(_unwritable) => PathEntry::Status(500),
        })
    }

    /// Returns `true` if the file may have an encoded form that is served.
    fn may_have_form(&self, below_root: &[u8], search: Search<'_>) -> Result<bool, OpenError> {
        let Some(known) = &self.forms else { return Ok(false) };
        Ok(self.known_form(below_root, search)?.unwrap_or_else(|| {
            known.count_search(directory_and_name(below_root).0);
            true
        }))
    }

    /// Returns `false` if it is known that the file has no encoded form that is served.
    fn known_form(&self, below_root: &[u8], search: Search<'_>) -> Result<Option<bool>, OpenError> {
        let Some(known) = &self.forms else { return Ok(Some(false)) };
        let (dir, name) = directory_and_name(below_root);
        let Some(forms) = known.get(dir) else { return Ok(None) };
        if !known.are_fresh(&forms, search.now_ms) {
            match self.root.version(dir, search.wait) {
                Ok(version) if known.confirm(dir, &forms, version, search.now_ms) => {}
                Err(OpenError::WouldBlock) => return Err(OpenError::WouldBlock),
                Ok(_) | Err(OpenError::Status(_)) => return Ok(None),
            }
        }
        Ok(Some(known.may_include(&forms, name)))
    }

    /// Returns `true` if the cached file is certainly the one at the path, without opening it.
    fn is_unchanged(
        &self,
        path: &Path<'_>,
        cached: &Meta,
        search: Search<'_>,
    ) -> Result<bool, OpenError> {
        let is_plain = !path.is_directory && cached.variant == Variant::default();
        if !is_plain || self.known_form(path.below_root, search)? != Some(false) {
            return Ok(false);
        }
        match self.root.version(path.below_root, search.wait) {
            Ok(version) => Ok(cached.is_current(version)),
            Err(OpenError::WouldBlock) => Err(OpenError::WouldBlock),
            Err(OpenError::Status(_)) => Ok(false),
        }
    }

    /// Returns the form of a file in the coding that the client prefers, or the file itself.
    fn form(
        &self,
        below_root: &[u8],
        plain: OpenVariant,
        accepted: AcceptedCodings,
        wait: DiskWait,
    ) -> Result<OpenVariant, OpenError> {
        let preferred = accepted.iter();
        let others =
            Coding::ALL.into_iter().filter(|coding| accepted.iter().all(|it| it != *coding));
        for coding in preferred.chain(others) {
            let sibling = [below_root, coding.suffix().as_bytes()].concat();
            match self.root.open_at(&sibling, wait) {
                // An encoded form older than the file belongs to another version. Seconds are
                // compared, because some tools do not preserve nanoseconds.
                Ok(Entry::File(_, form)) if form.st_mtime < plain.stat.st_mtime => {}
                Ok(Entry::File(fd, stat)) => {
                    let is_accepted = accepted.iter().any(|it| it == coding);
                    return Ok(if is_accepted {
                        let variant = Variant { coding: Some(coding), varies: true };
                        OpenVariant { fd, stat, variant }
                    } else {
                        let variant = Variant { coding: None, varies: true };
                        OpenVariant { variant, ..plain }
                    });
                }
                Err(OpenError::WouldBlock) => return Err(OpenError::WouldBlock),
                // A form that cannot be opened is ignored, because the file itself can.
                Ok(Entry::Directory(_)) | Err(OpenError::Status(_)) => {}
            }
        }
        Ok(plain)
    }

    /// Reads a directory that lookups searched often for encoded forms.
    pub(crate) fn read_forms(&self, forms_dir: Box<[u8]>, now_ms: u64) {
        if let Some(known) = &self.forms
            && let Ok(Entry::Directory(fd)) = self.root.open_at(&forms_dir, DiskWait::Allowed)
        {
            // If it cannot be read, lookups search.
            known.read(forms_dir, fd, now_ms).unwrap_or_default();
        }
    }
}

/// Splits a path below the root.
fn directory_and_name(below_root: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memrchr(b'/', below_root) {
        Some(slash) => (&below_root[..slash], &below_root[slash + 1..]),
        None => (b"", below_root),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::coding::accepted_codings;

    fn finder(dir: &std::path::Path) -> Finder {
        Finder {
            root: Root::open(dir).unwrap(),
            with_dotfiles: false,
            forms: Some(EncodedForms::new(1000)),
            with_listings: false,
            cache_control: None,
        }
    }

    /// Returns the result of a lookup in words: coding, length, and `true` if it varies.
    fn found(finder: &Finder, path: &str, encodings: &str) -> String {
        let accepted = accepted_codings([encodings.as_bytes()]);
        let key = KeyRef { accepted, path: path.as_bytes() };
        let search = Search { wait: DiskWait::Allowed, now_ms: 0, cached: None };
        match finder.find(key, search).unwrap() {
            PathEntry::File(file) => {
                let Variant { coding, varies } = file.meta.variant;
                format!(
                    "{} {} {varies}",
                    coding.map_or("plain", Coding::name),
                    file.meta.version.bytes
                )
            }
            PathEntry::Unchanged(_) => "unchanged".to_owned(),
            PathEntry::WithoutSlash => "slash".to_owned(),
            PathEntry::Directory(_) => "directory".to_owned(),
            PathEntry::Status(status) => status.to_string(),
        }
    }

    #[test]
    fn client_gets_the_coding_it_prefers_of_those_that_exist() {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in
            [("a.txt", 9), ("a.txt.gz", 3), ("a.txt.zst", 2), ("b", 5), ("c.br", 1)]
        {
            std::fs::write(dir.path().join(name), vec![0; bytes]).unwrap();
        }
        std::fs::create_dir(dir.path().join("b.gz")).unwrap();
        let finder = finder(dir.path());
        for (path, encodings, expected) in [
            ("/a.txt", "", "plain 9 true"),
            ("/a.txt", "br", "plain 9 true"),
            ("/a.txt", "gzip, br", "gzip 3 true"),
            ("/a.txt", "gzip, zstd", "zstd 2 true"),
            ("/a.txt", "gzip, zstd;q=0.9", "gzip 3 true"),
            ("/a.txt.gz", "gzip", "plain 3 false"),
            ("/b", "gzip", "plain 5 false"),
            ("/c", "br", "404"),
        ] {
            assert_eq!(found(&finder, path, encodings), expected, "{path} {encodings}");
        }
        let without = Finder { forms: None, ..finder };
        assert_eq!(found(&without, "/a.txt", "gzip"), "plain 9 false");
    }

    #[test]
    fn encoded_form_older_than_its_file_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str, seconds: u64, nanos: u32| {
            let path = dir.path().join(name);
            std::fs::write(&path, vec![0; name.len()]).unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::new(seconds, nanos);
            std::fs::File::open(&path).unwrap().set_modified(time).unwrap();
        };
        at("a", 1000, 500);
        at("a.br", 999, 900);
        at("a.gz", 1000, 0);
        let finder = finder(dir.path());
        assert_eq!(found(&finder, "/a", "br, gzip"), "gzip 4 true");
        assert_eq!(found(&finder, "/a", "br"), "plain 1 true");
        at("a", 1001, 0);
        assert_eq!(found(&finder, "/a", "br, gzip"), "plain 1 false");
        assert_eq!(found(&finder, "/a.gz", "gzip"), "plain 4 false", "under its own name");
    }

    #[test]
    fn directory_is_served_as_its_index_or_as_a_listing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("with/index.html.d")).unwrap();
        std::fs::create_dir_all(dir.path().join("odd/index.html")).unwrap();
        std::fs::write(dir.path().join("with/index.html"), "123").unwrap();
        std::fs::write(dir.path().join(".hidden"), "123").unwrap();
        let finder = finder(dir.path());
        for (path, expected) in [
            ("/with/", "plain 3 false"),
            ("/with", "slash"),
            ("/with/index.html/", "404"),
            ("/", "404"),
            ("/odd/", "404"),
            ("/.hidden", "404"),
            ("/../x", "400"),
        ] {
            assert_eq!(found(&finder, path, ""), expected, "{path}");
        }
        let listing = Finder { with_listings: true, with_dotfiles: true, ..finder };
        for (path, expected) in
            [("/", "directory"), ("/odd/", "directory"), ("/.hidden", "plain 3 false")]
        {
            assert_eq!(found(&listing, path, ""), expected, "{path}");
        }
    }
}
