//! Holds the state that the threads of a walk share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::events::WalkEvents;
use super::job::Job;
use super::options::WalkOptions;
use super::pool::Pool;
use super::visited::Visited;
use crate::tree::Tree;

/// The state shared by the threads of a walk.
pub(super) struct Shared<'a> {
    pub(super) options: &'a WalkOptions<'a>,
    pub(super) events: &'a dyn WalkEvents,
    pub(super) pool: Pool<Job>,
    pub(super) tree: Mutex<Tree>,
    pub(super) visited: Mutex<Visited>,
    /// The symbolic links to directories that the walk has found and not yet followed.
    links: Mutex<Vec<Job>>,
    /// The number of directories kept open for their subdirectories.
    pub(super) open_dirs: Arc<AtomicUsize>,
    files: AtomicU64,
    bytes: AtomicU64,
}

impl<'a> Shared<'a> {
    /// Creates the state of a walk.
    pub(super) fn new(
        options: &'a WalkOptions<'a>,
        events: &'a dyn WalkEvents,
        pool: Pool<Job>,
    ) -> Self {
        Self {
            options,
            events,
            pool,
            tree: Mutex::default(),
            visited: Mutex::default(),
            links: Mutex::default(),
            open_dirs: Arc::default(),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Adds `files` and `bytes` to the totals of the walk and reports the totals as progress.
    pub(super) fn add_found(&self, files: u64, bytes: u64) {
        let files = self.files.fetch_add(files, Ordering::Relaxed) + files;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.events.progress(files, bytes);
    }

    /// Adds a symbolic link to a directory, to be followed later.
    pub(super) fn add_link(&self, job: Job) {
        self.links.lock().push(job);
    }

    /// Removes the links found so far and returns them in the order of the roots, then of their
    /// paths.
    pub(super) fn take_links(&self) -> Vec<Job> {
        let mut links = std::mem::take(&mut *self.links.lock());
        let tree = self.tree.lock();
        links.sort_by_cached_key(|job| {
            let mut path = Vec::new();
            tree.dir_path_into(job.dir, &mut path);
            (job.root, path)
        });
        links
    }

    /// Returns the tree with the files found.
    pub(super) fn into_tree(self) -> Tree {
        self.tree.into_inner()
    }
}
