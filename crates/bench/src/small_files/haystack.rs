//! Counts the reads of a simulated drive for a cold small file: for a plain file, and for an object
//! of the file store.
//!
//! Text 000 describes the store of photos that Facebook built: a file costs a read of its inode and
//! one of its data, an object of the store only one read, because its place is in memory.
//!
//! # Sources
//! \[Haystack10\]: the number of disk operations for a photo in files, and in their store.

use std::fs;
use std::path::{Path, PathBuf};

use haul_disk_sim::{Backing, Counters};
use haul_file_store::{Options as StoreOptions, Store};
use haul_measure::{Error, Result, Watcher};
use haul_testing::{Random, noise};

use super::objects::{evict_below, fill, key, numbered};
use crate::benchmark::Benchmark;
use crate::contest::{Contest, Field, Outcome, Stage, new_report, number};
use crate::log::{Failure, failed};
use crate::named::named;
use crate::options::{count, rounds, size_in};
use crate::report::Report;
use crate::simulated::{Drive, EXT4, SimulatedDisk};

/// The benchmark `haystack`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct HaystackBench {
    /// Model of the simulated drive
    #[arg(long, value_name = "NAME", default_value = "deskstar-7k1000.c")]
    pub drive: Drive,
    /// Number of directories, of which one file each is read in a round
    #[arg(long, value_name = "N", default_value = "200", value_parser = count(1..=10_000))]
    pub dirs: usize,
    /// Number of files in each directory
    #[arg(long, value_name = "N", default_value = "100", value_parser = count(1..=10_000))]
    pub files: usize,
    /// Length of each file, 64 B to 64KiB
    #[arg(long, value_name = "SIZE", default_value = "4KiB")]
    #[arg(value_parser = size_in(64..=64 << 10, "64 B to 64KiB"))]
    pub size: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
}

named! {
    /// The place of the bytes, and the state of the caches before the reads.
    enum Method {
        /// Plain files; nothing is cached.
        Cold = "files",
        /// Plain files; the directories were listed before.
        Listed = "files, names cached",
        /// As [`Method::Listed`], and the kernel also reads the neighbours of an inode.
        ListedAhead = "files, names cached, inode readahead",
        /// Objects of an open file store.
        Store = "file store",
    }
}

impl Method {
    /// Returns the mount options. By default a read of an inode brings the 511 inodes around it,
    /// which helps only if they are read before they are evicted.
    const fn mount_options(self) -> &'static str {
        match self {
            Self::ListedAhead => "noinit_itable",
            _ => "noinit_itable,inode_readahead_blks=0",
        }
    }
}

/// The reads of one round.
#[derive(Debug, Clone, Copy)]
struct Round {
    files: usize,
    requests: Counters,
}

impl Round {
    fn each(&self, number: u64) -> f64 {
        number as f64 / self.files as f64
    }
}

const FIELDS: &[Field<Method, Round>] = &[
    Field::label("way", "method", |method| method.name().into()),
    number("reads", "reads/file", 2).spread(4, reads),
    number("read_bytes", "B/file", 0).median(|round| Some(round.each(round.requests.bytes_read))),
    number("seeks", "seeks/file", 2).median(|it| Some(it.each(it.requests.seeks))),
    number("service_ms", "service ms/file", 2)
        .median(|it| Some(it.each(it.requests.service_ns()) / 1e6)),
    number("files", "files", 0).rank(5).median(|round| Some(round.files as f64)),
];

fn reads(round: &Round) -> Option<f64> {
    Some(round.each(round.requests.reads))
}

const BUCKET: &str = "photos";
const STORE: &str = "store";
const TREE: &str = "tree";

/// The length of a volume of the store, of which several fit on the disk.
const VOLUME_BYTES: u64 = 32 << 20;

/// The free space of the disk: for metadata, and for the volumes that the store prepares.
const FREE_BYTES: u64 = 1 << 30;

impl Benchmark for HaystackBench {
    const NAME: &'static str = "haystack";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let mut report = new_report(Self::NAME, FIELDS, self.note());
        watcher.step(0, 1, "writing the files");
        let photos = Photos::new(self, watcher)?;
        let mut contest = Contest::new(FIELDS, Method::ALL);
        let mut round = 0;
        contest.run(&Stage::only(self.rounds, watcher), |method| {
            round += 1;
            photos.read(*method, round).map(Outcome::Measured)
        })?;
        let table = format!("{} (simulated), ext4", self.drive.name());
        contest.report(&mut report, &table, |_| String::new());
        let [cold, listed, ahead, store] = Method::ALL;
        for (name, method) in [
            ("reads_per_cold_file", cold),
            ("reads_per_listed_file", listed),
            ("reads_per_listed_file_with_readahead", ahead),
            ("reads_per_object", store),
        ] {
            report.amount(name, contest.samples(&method, reads));
        }
        report.ratio("listed_files_vs_objects", contest.ratio(&listed, &store, reads));
        report.ratio("cold_files_vs_objects", contest.ratio(&cold, &store, reads));
        Ok(report)
    }
}

/// A simulated disk with a tree of files, and a store with as many objects of the same bytes.
struct Photos<'a> {
    disk: SimulatedDisk,
    bench: &'a HaystackBench,
    content: Vec<u8>,
}

fn store_options() -> StoreOptions {
    StoreOptions { volume_bytes: VOLUME_BYTES, ..StoreOptions::default() }
}

fn path(dir: usize, file: usize) -> PathBuf {
    PathBuf::from(format!("{TREE}/{dir:05}/{file:05}"))
}

impl<'a> Photos<'a> {
    fn new(bench: &'a HaystackBench, watcher: &dyn Watcher) -> Result<Self> {
        let HaystackBench { dirs, files, size, .. } = *bench;
        let data_bytes = (dirs * files) as u64 * size.next_multiple_of(4096);
        let bytes = (FREE_BYTES + 4 * data_bytes).next_multiple_of(1 << 20);
        let disk = SimulatedDisk::new(&bench.drive, bytes, Backing::Memory, EXT4)?;
        let content = noise(1, usize::try_from(size).unwrap_or(usize::MAX));
        let photos = Self { disk, bench, content };
        let mounted = photos.disk.mount()?;
        let root = mounted.path();
        photos.write_tree(&root, watcher)?;
        photos.write_store(&root.join(STORE)).map_err(failed("use the file store"))?;
        drop(mounted);
        Ok(photos)
    }

    fn write_tree(&self, root: &Path, watcher: &dyn Watcher) -> Result<()> {
        for dir in 0..self.bench.dirs {
            watcher.check()?;
            let wrong = || Error::other("write the files");
            fs::create_dir_all(root.join(format!("{TREE}/{dir:05}"))).map_err(wrong())?;
            for file in 0..self.bench.files {
                fs::write(root.join(path(dir, file)), self.bytes(dir, file)).map_err(wrong())?;
            }
        }
        Ok(())
    }

    fn write_store(&self, dir: &Path) -> Result<(), Failure> {
        let (store, _recovered) = Store::open(dir, store_options())?;
        store.create_bucket(BUCKET)?;
        fill(&store, BUCKET, &self.content, self.number(self.bench.dirs, 0))?;
        Ok(store.close()?)
    }

    /// Returns the number of the object with the bytes of a file.
    fn number(&self, dir: usize, file: usize) -> u64 {
        (dir * self.bench.files + file) as u64
    }

    fn bytes(&self, dir: usize, file: usize) -> Vec<u8> {
        numbered(&self.content, self.number(dir, file))
    }

    /// Mounts the disk with cold caches, and reads a file of each directory, in random order.
    fn read(&self, method: Method, round: u64) -> Result<Round> {
        let mut random = Random(round);
        let mut chosen: Vec<_> =
            (0..self.bench.dirs).map(|dir| (dir, random.index(self.bench.files))).collect();
        chosen.sort_by_cached_key(|_| random.number());
        let mounted = self.disk.mount_cold_with(method.mount_options())?;
        let root = mounted.path();
        let requests = match method {
            Method::Store => self
                .read_objects(&root.join(STORE), &chosen)
                .map_err(failed("use the file store"))?,
            _ => {
                if method != Method::Cold {
                    list(&root.join(TREE)).map_err(Error::other("list the files"))?;
                }
                self.read_files(&root, &chosen)?
            }
        };
        Ok(Round { files: chosen.len(), requests })
    }

    fn read_files(&self, root: &Path, chosen: &[(usize, usize)]) -> Result<Counters> {
        let before = self.disk.counters();
        for (dir, file) in chosen.iter().copied() {
            let path = root.join(path(dir, file));
            let bytes =
                fs::read(&path).map_err(Error::other(format!("read {}", path.display())))?;
            if bytes != self.bytes(dir, file) {
                return Err(Error::Missing(format!("{} has wrong bytes", path.display())));
            }
        }
        Ok(self.disk.counters().since(&before))
    }

    fn read_objects(&self, dir: &Path, chosen: &[(usize, usize)]) -> Result<Counters, Failure> {
        let (store, _recovered) = Store::open(dir, store_options())?;
        evict_below(dir)?;
        let before = self.disk.counters();
        for (dir, file) in chosen.iter().copied() {
            let key = key(self.number(dir, file));
            let bytes = store.get(BUCKET, &key)?.read(0, self.content.len())?;
            if bytes[..] != self.bytes(dir, file) {
                return Err(format!("{key} has wrong bytes").into());
            }
        }
        let requests = self.disk.counters().since(&before);
        store.close()?;
        Ok(requests)
    }
}

/// Reads all directories below `dir`, which brings the names into memory, but not the inodes.
fn list(dir: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        for file in fs::read_dir(entry?.path())? {
            file?;
        }
    }
    Ok(())
}

impl HaystackBench {
    fn note(&self) -> String {
        let Self { dirs, files, size, rounds, .. } = self;
        format!(
            "{dirs} directories with {files} files of {size} B each, and a file store with the \
             same bytes, on a simulated disk. A round reads a random file of each directory, in \
             random order; {rounds} interleaved rounds. The disk is mounted before each, so that \
             nothing of it is cached; names are cached by listing the directories, and the store \
             is opened and evicted from the page cache. Reads are requests to the drive. Inodes \
             are read one block at a time (inode_readahead_blks=0) as if the table of inodes was \
             much longer than the memory; one row has the default of the kernel, which reads 512 \
             inodes at once. The text: 2 reads for the inode and the data, 1 for an object.",
        )
    }
}
