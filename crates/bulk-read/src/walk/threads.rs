//! Starts the threads of a walk.

use std::path::PathBuf;
use std::thread;

use super::events::WalkEvents;
use super::job::Job;
use super::list::Lister;
use super::options::{THREADS_WAITING_MAX, WalkOptions};
use super::pool::Pool;
use super::roots::start_jobs;
use super::shared::Shared;
use crate::tree::Tree;

/// Finds the files below `roots`. A root may be a directory or a file.
///
/// A root that is a symbolic link is followed. Each directory is walked once, even if several paths
/// lead to it, and duplicate roots count once; a file below several roots belongs to the innermost
/// root. Symbolic links to directories are followed last, in the order of their paths. Errors are reported to `events`, and the walk continues. The walk opens only directories
/// and, with [`WalkOptions::ignore_files`], ignore files.
pub fn walk(roots: &[PathBuf], options: &WalkOptions<'_>, events: &dyn WalkEvents) -> Tree {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = match options.threads {
        Some(threads) => [threads.max(1); 3],
        None => [1, cores, cores.max(THREADS_WAITING_MAX)],
    };
    let [first, min, threads_max] = threads;
    let shared = Shared::new(options, events, Pool::new(first, min, threads_max));
    let jobs = start_jobs(&shared, roots);
    list_all(&shared, jobs, threads_max);
    follow_links(&shared, threads_max);
    let mut tree = shared.into_tree();
    if options.sort {
        tree.sort();
    }
    tree
}

/// Lists the directories of `jobs`, and all below them, with `threads` threads.
fn list_all(shared: &Shared<'_>, jobs: Vec<(u64, Job)>, threads: usize) {
    if jobs.is_empty() {
        return;
    }
    shared.pool.push(jobs);
    thread::scope(|scope| {
        // A failed spawn is harmless: the calling thread walks, too.
        for _ in 1..threads {
            let walk = || Lister::new(shared).run();
            if thread::Builder::new().spawn_scoped(scope, walk).is_err() {
                break;
            }
        }
        Lister::new(shared).run();
    });
}

/// Follows the links to directories one after the other, each to its end before the next. So the
/// path at which a directory is found does not depend on the speed of the threads: it is the own
/// path of the directory if that is below a root, else that of the first link to it.
fn follow_links(shared: &Shared<'_>, threads: usize) {
    let mut lister = Lister::new(shared);
    loop {
        let links = shared.take_links();
        if links.is_empty() {
            break;
        }
        for link in links {
            let mut below = Vec::new();
            lister.list_one(link, &mut below);
            list_all(shared, below, threads);
        }
    }
    lister.report();
}
