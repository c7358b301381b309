//! Starts the threads of a walk.

use std::path::PathBuf;
use std::thread;

use super::events::WalkEvents;
use super::list::Lister;
use super::options::{THREADS_WAITING_MAX, WalkOptions};
use super::roots::start_jobs;
use super::shared::Shared;
use crate::tree::Tree;

/// Finds the files below `roots`. A root may be a directory or a file.
///
/// A root that is a symbolic link is followed. Each directory is walked once, even if several paths
/// lead to it, and duplicate roots count once; a file below several roots belongs to the innermost
/// root. Errors are reported to `events`, and the walk continues. The walk opens only directories
/// and, with [`WalkOptions::ignore_files`], ignore files.
pub fn walk(roots: &[PathBuf], options: &WalkOptions<'_>, events: &dyn WalkEvents) -> Tree {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (threads_min, threads_max) = match options.threads {
        Some(threads) => (threads.max(1), threads.max(1)),
        None => (cores, cores.max(THREADS_WAITING_MAX)),
    };
    let shared = Shared::new(options, events, threads_min, threads_max);
    let jobs = start_jobs(&shared, roots);
    if !jobs.is_empty() {
        shared.pool.push(jobs);
        thread::scope(|scope| {
            // A failed spawn is harmless: the calling thread walks, too.
            for _ in 1..threads_max {
                let walk = || Lister::new(&shared).run();
                if thread::Builder::new().spawn_scoped(scope, walk).is_err() {
                    break;
                }
            }
            Lister::new(&shared).run();
        });
    }
    let mut tree = shared.into_tree();
    if options.sort {
        tree.sort();
    }
    tree
}
