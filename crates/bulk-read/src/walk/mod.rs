//! Finding the files: directories are shared among threads, each is listed in one go and its
//! files are looked at in the order of their inodes.

mod entry;
mod ignored;
mod list;
mod pace;
mod pool;
mod roots;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

use crate::error::Error;
use crate::tree::Tree;
use list::Lister;
use pool::Pool;

/// A test a path has to pass.
pub type Accept<'a> = &'a (dyn Fn(&Path) -> bool + Sync);

/// Which files a walk is about. The default takes every regular file that is not hidden.
#[derive(Clone)]
pub struct WalkOptions<'a> {
    /// How deep below a root a file may lie: 1 for what is directly in it, 0 for roots that are
    /// files themselves.
    pub depth_max: Option<usize>,
    /// Takes names that begin with a dot, too. Roots are taken whatever their name.
    pub hidden: bool,
    /// Goes where symbolic links lead, to directories and to files.
    pub follow_links: bool,
    /// Lists symbolic links that lead to files; the numbers and bytes are those of the file.
    pub report_links: bool,
    /// Stays on the file system of each root.
    pub one_file_system: bool,
    /// Leaves out what `.gitignore`, `.fdignore` and `.ignore` in the directories walked say.
    pub ignore_files: bool,
    /// The smallest length that is taken.
    pub bytes_min: u64,
    /// The greatest length that is taken.
    pub bytes_max: u64,
    /// Asked of each file, by its whole path, before the kernel is asked anything.
    pub accept: Option<Accept<'a>>,
    /// Asked of each directory below a root before it is opened.
    pub accept_dir: Option<Accept<'a>>,
    /// How many threads walk. By default there are as many as processors, and up to
    /// [`THREADS_WAITING_MAX`] where they mostly wait for the disk.
    pub threads: Option<usize>,
    /// Puts the files in the order of their paths: part by part, byte by byte, root by root.
    pub sort: bool,
    /// Ends the walk soon once it is true; the tree then has what was found until then.
    pub stop: Option<&'a AtomicBool>,
}

/// The most threads a walk takes by itself.
pub const THREADS_WAITING_MAX: usize = 16;

impl Default for WalkOptions<'_> {
    fn default() -> Self {
        Self {
            depth_max: None,
            hidden: false,
            follow_links: false,
            report_links: false,
            one_file_system: false,
            ignore_files: false,
            bytes_min: 0,
            bytes_max: u64::MAX,
            accept: None,
            accept_dir: None,
            threads: None,
            sort: false,
            stop: None,
        }
    }
}

/// Why something with a name was left out, other than by the options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Skipped {
    /// A pipe, socket or device: it is never opened.
    NotAFile,
    /// A directory, or root, that was walked already under another name: a bind mount, a link
    /// back up, a root given twice.
    SeenBefore,
    /// A symbolic link to be followed, that leads nowhere.
    DanglingLink,
}

/// Hears what a walk meets. It is called from several threads.
pub trait WalkEvents: Sync {
    /// Something could not be listed. The walk goes on.
    fn failed(&self, error: Error);

    /// Something was left out, not because of the options.
    fn skipped(&self, _path: &Path, _why: Skipped) {}

    /// How many files were found so far, and how long they are together. Called now and then.
    fn progress(&self, _files: u64, _bytes: u64) {}
}

/// How many files are found between two calls of [`WalkEvents::progress`] by one thread.
const PROGRESS_FILES: u64 = 1024;

/// What all threads of a walk share.
struct Shared<'a> {
    options: &'a WalkOptions<'a>,
    events: &'a dyn WalkEvents,
    pool: Pool<list::Job>,
    tree: Mutex<Tree>,
    seen: Mutex<roots::Seen>,
    /// How many descriptors of directories are kept for what is below them.
    held: Arc<AtomicUsize>,
    files: AtomicU64,
    bytes: AtomicU64,
}

impl Shared<'_> {
    fn is_stopped(&self) -> bool {
        self.options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Tells how far it is, `files` and `bytes` further than last time.
    fn found(&self, files: u64, bytes: u64) {
        let files = self.files.fetch_add(files, Ordering::Relaxed) + files;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.events.progress(files, bytes);
    }
}

/// Finds the files below `roots`, which may be files themselves, and remembers them.
///
/// A root that is a symbolic link is followed. Each directory is walked once, however many ways
/// lead to it, and a root given twice counts once; what lies below several roots is told below the
/// innermost. What cannot be listed is told to `events`, and
/// the walk goes on. Nothing but directories is opened, and `.gitignore` and its like where
/// [`WalkOptions::ignore_files`] asks for them.
pub fn walk(roots: &[PathBuf], options: &WalkOptions<'_>, events: &dyn WalkEvents) -> Tree {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (fewest, most) = match options.threads {
        Some(threads) => (threads.max(1), threads.max(1)),
        None => (cores, cores.max(THREADS_WAITING_MAX)),
    };
    let shared = Shared {
        options,
        events,
        pool: Pool::new(fewest, most),
        tree: Mutex::default(),
        seen: Mutex::default(),
        held: Arc::default(),
        files: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    };
    let jobs = roots::begin(&shared, roots);
    if !jobs.is_empty() {
        shared.pool.put(jobs);
        thread::scope(|scope| {
            // One that cannot be started is not missed: this thread walks too.
            for _ in 1..most {
                let walk = || Lister::new(&shared).run();
                if thread::Builder::new().spawn_scoped(scope, walk).is_err() {
                    break;
                }
            }
            Lister::new(&shared).run();
        });
    }
    let mut tree = shared.tree.into_inner();
    if options.sort {
        tree.sort();
    }
    tree
}
