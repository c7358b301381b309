//! The files that are served: what they hold is known without reading them.

use std::fs::{self, File};
use std::io::{Write, copy, sink};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use haul_disk::{Disk, Open, OsDisk, evict, resident};

use crate::error::{Error, Result};
use crate::net::content::Content;
use crate::net::cores::Cores;
use crate::watch::Watcher;

const CHUNK_BYTES: usize = 1 << 20;
/// How often it is tried to put a file out of memory, 20 ms apart.
const EVICTIONS_MAX: usize = 100;

/// One file.
#[derive(Debug)]
pub(super) struct Page {
    /// Below the root, and behind the slash of a request.
    name: String,
    pub(super) bytes: u64,
    pub(super) content: Content,
    /// What asks for it.
    pub(super) request: Vec<u8>,
}

/// Files in a directory of their own.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) root: PathBuf,
    pub(super) pages: Vec<Page>,
    cores: Cores,
}

/// Which of its pages.
pub(super) type Pages = Range<usize>;

impl Site {
    pub(super) fn new(root: &Path, cores: Cores) -> Self {
        Self { root: root.to_path_buf(), pages: Vec::new(), cores }
    }

    /// Makes `count` more files of `bytes` in a directory `name`; all are on the medium and none
    /// in memory when this returns.
    pub(super) fn add(
        &mut self,
        name: &str,
        count: usize,
        bytes: u64,
        watcher: &dyn Watcher,
    ) -> Result<Pages> {
        let dir = self.root.join(name);
        fs::create_dir(&dir).map_err(Error::other(format!("make {}", dir.display())))?;
        let from = self.pages.len();
        for number in 0..count {
            watcher.check()?;
            let name = format!("{name}/{number:06}");
            let request = format!("GET /{name} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").into_bytes();
            let content = Content(self.pages.len() as u64);
            let page = Page { name, bytes, content, request };
            page.write(&self.root)?;
            self.pages.push(page);
        }
        rustix::fs::sync();
        let pages = from..self.pages.len();
        self.forget(&pages)?;
        Ok(pages)
    }

    /// Takes these out of memory.
    pub(super) fn forget(&self, pages: &Pages) -> Result<()> {
        let disk = OsDisk::open(&self.root)?;
        for page in &self.pages[pages.clone()] {
            let file = disk.open(&page.name, Open { read_only: true, ..Open::default() })?;
            let mut tries = 0;
            // What the kernel still reads ahead, or has in packets, cannot be put out yet.
            loop {
                let left = resident(&*file, 0, u64::MAX)?.resident_bytes;
                if left == 0 {
                    break;
                }
                if tries == EVICTIONS_MAX {
                    let why = std::io::Error::other(format!("{left} bytes stay"));
                    return Err(Error::other(format!("put {} out of memory", page.name))(why));
                }
                if tries > 0 {
                    self.cores.stir()?;
                    thread::sleep(Duration::from_millis(20));
                }
                evict(&*file, 0, u64::MAX)?;
                tries += 1;
            }
        }
        Ok(())
    }

    /// Has these out of memory, or all in it.
    pub(super) fn ready(&self, cold: bool, pages: &Pages) -> Result<()> {
        if cold {
            return self.forget(pages);
        }
        let wanted: u64 = self.pages[pages.clone()].iter().map(|page| page.bytes).sum();
        if self.in_memory(pages)? < wanted {
            for page in &self.pages[pages.clone()] {
                let path = self.root.join(&page.name);
                let copied = File::open(&path).and_then(|mut file| copy(&mut file, &mut sink()));
                copied.map_err(Error::other(format!("read {}", path.display())))?;
            }
        }
        Ok(())
    }

    /// How much of these is in memory.
    pub(super) fn in_memory(&self, pages: &Pages) -> Result<u64> {
        let disk = OsDisk::open(&self.root)?;
        let mut bytes = 0;
        for page in &self.pages[pages.clone()] {
            let file = disk.open(&page.name, Open { read_only: true, ..Open::default() })?;
            bytes += resident(&*file, 0, u64::MAX)?.resident_bytes;
        }
        Ok(bytes)
    }
}

impl Page {
    fn write(&self, root: &Path) -> Result<()> {
        let path = root.join(&self.name);
        let what = || format!("write {}", path.display());
        let mut file = File::create(&path).map_err(Error::other(what()))?;
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut at = 0;
        while at < self.bytes {
            let length = usize::try_from(self.bytes - at).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
            self.content.fill(at, &mut chunk[..length]);
            file.write_all(&chunk[..length]).map_err(Error::other(what()))?;
            at += length as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Silent;

    #[test]
    fn every_file_holds_what_its_page_says() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut site = Site::new(dir.path(), Cores { server: 0, load: 0 });
        let small = site.add("small", 3, 1000, &Silent).unwrap();
        let big = site.add("big", 1, (1 << 20) + 5, &Silent).unwrap();
        assert_eq!((small, big.clone()), (0..3, 3..4));
        assert_eq!(site.in_memory(&(0..4)).unwrap(), 0);
        for page in &site.pages {
            let bytes = fs::read(dir.path().join(&page.name)).unwrap();
            assert_eq!(bytes.len() as u64, page.bytes);
            assert_eq!(page.content.differs(0, &bytes), None);
        }
        assert_eq!(site.pages[3].request, b"GET /big/000000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        assert!(site.in_memory(&big).unwrap() > 1 << 20);
        site.forget(&(0..4)).unwrap();
        assert_eq!(site.in_memory(&(0..4)).unwrap(), 0);
    }
}
