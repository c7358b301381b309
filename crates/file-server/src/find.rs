//! From the path of a request to what is there.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::Stat;

use crate::coding::{Accepted, Coding};
use crate::meta::{Chosen, Meta, OpenFile};
use crate::path::{NoPath, Path, checked};
use crate::root::{NotOpened, Opened, Root, Wait};

/// What a directory shows, if it is there.
const INDEX: &[u8] = b"index.html";

/// What is at a path.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    File(Arc<OpenFile>),
    /// A directory whose name lacks the slash at its end.
    WithoutSlash,
    /// A directory to be listed.
    Directory(Arc<OwnedFd>),
    /// Nothing: an answer with this status.
    Status(u16),
}

/// The kernel would have to ask the disk: look again where that may take its time.
#[derive(Debug)]
pub(crate) struct NotKnown;

/// Finds files.
#[derive(Debug)]
pub(crate) struct Finder {
    pub(crate) root: Root,
    pub(crate) with_dotfiles: bool,
    pub(crate) with_precompressed: bool,
    pub(crate) with_listings: bool,
    pub(crate) cache_control: Option<String>,
}

impl Finder {
    /// Finds what is at a decoded path, in the form the client likes best.
    pub(crate) fn find(
        &self,
        decoded: &[u8],
        accepted: Accepted,
        wait: Wait,
    ) -> Result<Found, NotKnown> {
        let path = match checked(decoded, self.with_dotfiles) {
            Ok(path) => path,
            Err(NoPath::Malformed) => return Ok(Found::Status(400)),
            Err(NoPath::Hidden) => return Ok(Found::Status(404)),
        };
        let found = match self.root.open_at(path.below_root, wait) {
            Ok(Opened::File(..)) if path.is_directory => Ok(Found::Status(404)),
            Ok(Opened::File(fd, stat)) => self.file(path.below_root, fd, &stat, accepted, wait),
            Ok(Opened::Directory(_)) if !path.is_directory => Ok(Found::WithoutSlash),
            Ok(Opened::Directory(fd)) => self.directory(&path, fd, accepted, wait),
            Err(not) => Err(not),
        };
        match found {
            Ok(found) => Ok(found),
            Err(NotOpened::NotKnown) => Err(NotKnown),
            Err(NotOpened::Status(status)) => Ok(Found::Status(status)),
        }
    }

    /// What a name in the directory at a decoded path leads to, if that can be served.
    pub(crate) fn followed(&self, decoded: &[u8], name: &[u8]) -> Option<Stat> {
        let decoded = [decoded, name].concat();
        let path = checked(&decoded, self.with_dotfiles).ok()?;
        self.root.stat_at(path.below_root)
    }

    fn directory(
        &self,
        path: &Path<'_>,
        fd: OwnedFd,
        accepted: Accepted,
        wait: Wait,
    ) -> Result<Found, NotOpened> {
        let separator = if path.below_root.is_empty() { &b""[..] } else { b"/" };
        let index = [path.below_root, separator, INDEX].concat();
        match self.root.open_at(&index, wait) {
            Ok(Opened::File(fd, stat)) => self.file(&index, fd, &stat, accepted, wait),
            Ok(Opened::Directory(_)) | Err(NotOpened::Status(404)) if self.with_listings => {
                Ok(Found::Directory(Arc::new(fd)))
            }
            Ok(Opened::Directory(_)) => Ok(Found::Status(404)),
            Err(not) => Err(not),
        }
    }

    fn file(
        &self,
        below_root: &[u8],
        fd: OwnedFd,
        stat: &Stat,
        accepted: Accepted,
        wait: Wait,
    ) -> Result<Found, NotOpened> {
        let mut taken = (fd, *stat);
        let mut chosen = Chosen::default();
        if self.with_precompressed {
            let liked = accepted.iter();
            let others =
                Coding::ALL.into_iter().filter(|coding| accepted.iter().all(|it| it != *coding));
            for coding in liked.chain(others) {
                let sibling = [below_root, coding.suffix().as_bytes()].concat();
                match self.root.open_at(&sibling, wait) {
                    // One from before the last change of the file is a form of something else.
                    // Seconds are compared: not every tool keeps what is finer.
                    Ok(Opened::File(_, form)) if form.st_mtime < stat.st_mtime => {}
                    Ok(Opened::File(fd, stat)) => {
                        chosen.varies = true;
                        if accepted.iter().any(|it| it == coding) {
                            chosen.coding = Some(coding);
                            taken = (fd, stat);
                        }
                        break;
                    }
                    Err(NotOpened::NotKnown) => return Err(NotOpened::NotKnown),
                    // What cannot be opened is as good as not there: the file itself can.
                    Ok(Opened::Directory(_)) | Err(NotOpened::Status(_)) => {}
                }
            }
        }
        let (fd, stat) = taken;
        let meta = Meta::new(below_root, &stat, chosen, self.cache_control.as_deref());
        Ok(match meta {
            Ok(meta) => Found::File(Arc::new(OpenFile::new(fd, meta))),
            // The configuration was checked when the server started.
            Err(_unwritable) => Found::Status(500),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::accepted;

    fn finder(dir: &std::path::Path) -> Finder {
        Finder {
            root: Root::open(dir).unwrap(),
            with_dotfiles: false,
            with_precompressed: true,
            with_listings: false,
            cache_control: None,
        }
    }

    /// What was found, in a word.
    fn found(finder: &Finder, path: &str, encodings: &str) -> String {
        match finder.find(path.as_bytes(), accepted([encodings.as_bytes()]), Wait::May).unwrap() {
            Found::File(file) => {
                let says = |name| file.meta.with_body.iter().find(|line| line.0 == name);
                let coding = says("Content-Encoding").map_or("plain", |line| &line.1);
                let varies = file.meta.always.iter().any(|line| line.0 == "Vary");
                format!("{coding} {} {varies}", file.meta.version.bytes)
            }
            Found::WithoutSlash => "slash".to_owned(),
            Found::Directory(_) => "directory".to_owned(),
            Found::Status(status) => status.to_string(),
        }
    }

    #[test]
    fn the_form_is_what_the_client_likes_of_what_is_there() {
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
        let without = Finder { with_precompressed: false, ..finder };
        assert_eq!(found(&without, "/a.txt", "gzip"), "plain 9 false");
    }

    #[test]
    fn a_form_older_than_its_file_is_none() {
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
        assert_eq!(found(&finder, "/a.gz", "gzip"), "plain 4 false", "it is a file like others");
    }

    #[test]
    fn a_directory_is_its_index_or_a_listing_or_nothing() {
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
