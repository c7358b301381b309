//! Creates the files that the servers under test serve, and evicts them from the page cache or
//! loads them into it. The content of a file is a function of its number.

use std::fs::{self, File};
use std::io::{Write, copy, sink};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use haul_disk::{Disk, Open, OsDisk, evict, resident};

use crate::net::content::Content;
use crate::net::cores::Cores;
use haul_measure::{Error, Result, Watcher};

const CHUNK_BYTES: usize = 1 << 20;
/// The maximum number of attempts to evict a file, and the time between two attempts.
const EVICTIONS_MAX: usize = 100;
const EVICTION_INTERVAL: Duration = Duration::from_millis(20);

/// One served file, and the HTTP request for it.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// The path below the root, without the first slash.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) content: Content,
    pub(crate) request: Vec<u8>,
}

/// The site: the directory that every server under test serves, and the files below it.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) root: PathBuf,
    pub(crate) pages: Vec<Page>,
    cores: Cores,
}

/// A range of indexes of [`Site::pages`].
pub(crate) type Pages = Range<usize>;

impl Site {
    pub(crate) fn new(root: &Path, cores: Cores) -> Self {
        Self { root: root.to_path_buf(), pages: Vec::new(), cores }
    }

    /// Returns a site without files: the response to each request has `bytes` bytes of the first
    /// content.
    pub(crate) fn of_requests(requests: impl Iterator<Item = Vec<u8>>, bytes: u64) -> Self {
        let page = |request| Page { name: String::new(), bytes, content: Content(0), request };
        let cores = Cores { server: 0, load: 0 };
        Self { root: PathBuf::new(), pages: requests.map(page).collect(), cores }
    }

    /// Returns the same files with other requests: `request` returns the request for a file.
    pub(crate) fn with_requests(&self, request: impl Fn(&Page) -> Vec<u8>) -> Self {
        let page = |page: &Page| Page { request: request(page), ..page.clone() };
        Self { root: self.root.clone(), pages: self.pages.iter().map(page).collect(), ..*self }
    }

    /// Creates `count` more files of `bytes` bytes in the directory `name` below the root. When
    /// this returns, the files are durable and not in the page cache.
    pub(crate) fn add(
        &mut self,
        name: &str,
        count: usize,
        bytes: u64,
        watcher: &dyn Watcher,
    ) -> Result<Pages> {
        let dir = self.root.join(name);
        let created = fs::create_dir_all(&dir);
        created.map_err(Error::other(format!("create {}", dir.display())))?;
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
        self.evict(&pages)?;
        Ok(pages)
    }

    /// Evicts the files with the indexes `pages` from the page cache.
    ///
    /// # Errors
    /// Returns an error if bytes stay in memory after all attempts, because the kernel still reads
    /// ahead or network packets reference the bytes.
    pub(crate) fn evict(&self, pages: &Pages) -> Result<()> {
        let disk = OsDisk::open(&self.root)?;
        for page in &self.pages[pages.clone()] {
            let file = disk.open(&page.name, Open { read_only: true, ..Open::default() })?;
            let mut left = resident(&*file, 0, u64::MAX)?.resident_bytes;
            for attempt in 0..EVICTIONS_MAX {
                if left == 0 {
                    break;
                }
                if attempt > 0 {
                    self.cores.release_packets()?;
                    thread::sleep(EVICTION_INTERVAL);
                }
                evict(&*file, 0, u64::MAX)?;
                left = resident(&*file, 0, u64::MAX)?.resident_bytes;
            }
            if left > 0 {
                let why = std::io::Error::other(format!("{left} bytes remain"));
                return Err(Error::other(format!("evict {} from memory", page.name))(why));
            }
        }
        Ok(())
    }

    /// Reads the files with the indexes `pages` into the page cache, unless all of their bytes are
    /// already cached.
    pub(crate) fn load(&self, pages: &Pages) -> Result<()> {
        let total: u64 = self.pages[pages.clone()].iter().map(|page| page.bytes).sum();
        if self.resident_bytes(pages)? < total {
            for page in &self.pages[pages.clone()] {
                let path = self.root.join(&page.name);
                let copied = File::open(&path).and_then(|mut file| copy(&mut file, &mut sink()));
                copied.map_err(Error::other(format!("read {}", path.display())))?;
            }
        }
        Ok(())
    }

    /// Returns the number of bytes in the page cache that belong to the files with the indexes
    /// `pages`.
    pub(crate) fn resident_bytes(&self, pages: &Pages) -> Result<u64> {
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
    use haul_measure::Silent;

    #[test]
    fn files_have_the_content_of_their_pages() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut site = Site::new(dir.path(), Cores { server: 0, load: 0 });
        let small = site.add("small", 3, 1000, &Silent).unwrap();
        let big = site.add("big", 1, (1 << 20) + 5, &Silent).unwrap();
        assert_eq!((small, big.clone()), (0..3, 3..4));
        assert_eq!(site.resident_bytes(&(0..4)).unwrap(), 0);
        for page in &site.pages {
            let bytes = fs::read(dir.path().join(&page.name)).unwrap();
            assert_eq!(bytes.len() as u64, page.bytes);
            assert_eq!(page.content.mismatch(0, &bytes), None);
        }
        assert_eq!(site.pages[3].request, b"GET /big/000000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        assert!(site.resident_bytes(&big).unwrap() > 1 << 20);
        // The kernel may have isolated pages in order to reclaim them: they cannot be evicted.
        let is_evicted = [(); 100].iter().any(|()| {
            site.evict(&(0..4)).unwrap();
            site.resident_bytes(&(0..4)).unwrap() == 0
        });
        assert!(is_evicted);
    }
}
