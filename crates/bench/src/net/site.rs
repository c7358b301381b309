//! Creates the files that servers serve, and evicts them from the page cache or reads them into it.

use std::fs::{self, File};
use std::io::{Write, copy, sink};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use haul_disk::{Disk, Open, OsDisk, resident};
use haul_testing::Random;

use super::client::Request;
use super::cores::Cores;
use crate::test_file::{evict_one, evict_until};
use haul_measure::{Error, Result, Watcher};

const CHUNK_BYTES: u64 = 1 << 20;

/// Files of one length in one directory of a site.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    root: PathBuf,
    /// The paths below the root, without the first slash.
    pub(crate) names: Vec<String>,
    pub(crate) bytes: u64,
}

impl Files {
    /// Creates `count` files of `bytes` bytes in the directory `name` below `root`. When this
    /// returns, the files are durable.
    pub(crate) fn create(
        root: &Path,
        name: &str,
        count: usize,
        bytes: u64,
        watcher: &dyn Watcher,
    ) -> Result<Self> {
        let dir = root.join(name);
        fs::create_dir_all(&dir).map_err(Error::other(format!("create {}", dir.display())))?;
        let names: Vec<_> = (0..count).map(|number| format!("{name}/{number:06}")).collect();
        let mut chunk = vec![0; usize::try_from(bytes.min(CHUNK_BYTES)).unwrap_or_default()];
        for (number, name) in names.iter().enumerate() {
            watcher.check()?;
            let path = root.join(name);
            let mut random = Random(bytes ^ (number as u64) << 40);
            let mut write = || -> std::io::Result<()> {
                let mut file = File::create(&path)?;
                for at in (0..bytes).step_by(1 << 20) {
                    // One random number in 64 bytes: enough to notice any shift, and fast.
                    chunk.chunks_mut(64).for_each(|piece| {
                        let number = random.number().to_le_bytes();
                        let length = piece.len().min(number.len());
                        piece[..length].copy_from_slice(&number[..length]);
                    });
                    let length = usize::try_from((bytes - at).min(CHUNK_BYTES)).unwrap_or_default();
                    file.write_all(&chunk[..length])?;
                }
                Ok(())
            };
            write().map_err(Error::other(format!("write {}", path.display())))?;
        }
        rustix::fs::sync();
        Ok(Self { root: root.to_path_buf(), names, bytes })
    }

    /// Returns the first files, at most `count`.
    pub(crate) fn first(&self, count: usize) -> Self {
        Self { names: self.names.iter().take(count).cloned().collect(), ..self.clone() }
    }

    /// Returns a GET request for each file.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.names.iter().map(|name| format!("GET /{name}")).collect()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Downloads each file, and compares all bytes; the files are in the page cache afterwards.
    pub(crate) fn compare(&self, address: SocketAddr) -> Result<()> {
        self.names.iter().try_for_each(|name| {
            let target = format!("/{name}");
            Request::get(address, &target).download(Some(&self.path(name))).map(drop)
        })
    }

    /// Reads the files into the page cache.
    pub(crate) fn load(&self) -> Result<()> {
        self.names.iter().try_for_each(|name| {
            let path = self.path(name);
            let copied = File::open(&path).and_then(|mut file| copy(&mut file, &mut sink()));
            copied.map(drop).map_err(Error::other(format!("read {}", path.display())))
        })
    }

    /// Evicts the files from the page cache.
    ///
    /// # Errors
    /// Returns an error if bytes stay in memory after all attempts, because the kernel still reads
    /// ahead or network packets reference the bytes.
    pub(crate) fn evict(&self, cores: Cores) -> Result<()> {
        evict_until(0, || {
            cores.release_packets()?;
            let mut left = 0;
            self.each(|file| {
                left += evict_one(file)?;
                Ok(())
            })?;
            Ok(left)
        })
    }

    /// Returns the part of the files that is in the page cache, in percent.
    pub(crate) fn cached_percent(&self) -> Result<f64> {
        let mut bytes = 0;
        self.each(|file| {
            bytes += resident(file, 0, u64::MAX)?.resident_bytes;
            Ok(())
        })?;
        Ok(100.0 * bytes as f64 / (self.bytes * self.names.len() as u64) as f64)
    }

    fn each(&self, mut body: impl FnMut(&dyn haul_disk::File) -> Result<()>) -> Result<()> {
        let disk = OsDisk::open(&self.root)?;
        self.names.iter().try_for_each(|name| {
            let file = disk.open(name, Open { read_only: true, ..Open::default() })?;
            body(&*file)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haul_measure::Silent;

    #[test]
    fn files_differ_and_can_be_cached_and_evicted() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let files = Files::create(dir.path(), "a", 2, (1 << 20) + 5, &Silent).unwrap();
        let read = |name: &str| fs::read(files.path(name)).unwrap();
        let contents = [read("a/000000"), read("a/000001")];
        assert!(contents[0] != contents[1] && contents[0].len() == (1 << 20) + 5);
        files.load().unwrap();
        assert!(files.cached_percent().unwrap() > 50.0);
        // The kernel may have isolated pages in order to reclaim them: they cannot be evicted.
        let cores = Cores { server: 0, load: 0 };
        let is_evicted = [(); 100]
            .iter()
            .any(|()| files.evict(cores).is_ok() && files.cached_percent().unwrap() == 0.0);
        assert!(is_evicted);
        assert_eq!(files.first(1).requests(), ["GET /a/000000"]);
    }
}
