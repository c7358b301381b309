//! Defines the options of a walk.

use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A predicate on paths.
pub type PathFilter<'a> = &'a (dyn Fn(&Path) -> bool + Sync);

/// Options of a walk. By default a walk finds every regular file that is not hidden.
#[derive(Clone)]
pub struct WalkOptions<'a> {
    /// The maximum depth of a file below its root: 1 for a file directly in the root, 0 for a root
    /// that is a file itself.
    pub depth_max: Option<usize>,
    /// `true` to include files and directories whose names begin with a dot. Roots are always
    /// included.
    pub hidden: bool,
    /// `true` to follow symbolic links, to directories and to files.
    pub follow_links: bool,
    /// `true` to list symbolic links to files, with the metadata and content of their targets, but
    /// not to follow links to directories.
    pub report_links: bool,
    /// `true` to skip directories that are on another file system than their root.
    pub one_file_system: bool,
    /// `true` to apply the `.gitignore`, `.fdignore` and `.ignore` files in the directories walked.
    pub ignore_files: bool,
    /// The minimum file length, in bytes.
    pub bytes_min: u64,
    /// The maximum file length, in bytes.
    pub bytes_max: u64,
    /// A filter that receives the full path of a file, before any system call for that file; the
    /// walk lists the files for which it returns `true`. `None` lists all files.
    pub accept: Option<PathFilter<'a>>,
    /// A filter that receives the full path of a directory below a root, before it is opened; the
    /// walk enters the directories for which it returns `true`. `None` enters all directories.
    pub accept_dir: Option<PathFilter<'a>>,
    /// The number of threads. By default a walk starts with one thread; then one thread per CPU
    /// walks, and up to [`THREADS_WAITING_MAX`] threads while they mostly wait for the disk.
    pub threads: Option<usize>,
    /// `true` to sort the files by root, then by path, bytewise per component.
    pub sort: bool,
    /// A flag that cancels the walk; the returned tree then contains the files found so far.
    pub stop: Option<&'a AtomicBool>,
}

/// The maximum number of threads that a walk starts by default on a machine with fewer CPUs; on a
/// larger machine the maximum is the number of CPUs.
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
