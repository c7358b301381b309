//! Creates temporary directories that are on a disk, and files at long paths.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use tempfile::TempDir;

/// Creates a temporary directory in the target directory of the build, because `/tmp` may be a
/// tmpfs.
///
/// # Panics
/// Panics if the directory cannot be created.
#[must_use]
pub fn disk_dir() -> TempDir {
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(3).expect("tests are in target/PROFILE/deps").join("tmp");
    std::fs::create_dir_all(&target).unwrap();
    tempfile::tempdir_in(target).unwrap()
}

/// Creates the file `f` below `dir`, in a directory whose path is longer than the kernel permits
/// (4096 bytes); returns its path.
///
/// # Panics
/// Panics if a call fails.
#[must_use]
pub fn write_deep_file(dir: &Path, content: &[u8]) -> PathBuf {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = openat(CWD, dir, flags, Mode::empty()).unwrap();
    let mut path = dir.to_owned();
    let name = "x".repeat(100);
    for _ in 0..45 {
        mkdirat(&at, &*name, Mode::RWXU).unwrap();
        at = openat(&at, &*name, flags, Mode::empty()).unwrap();
        path.push(&name);
    }
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(&at, "f", flags, Mode::RUSR | Mode::WUSR).unwrap();
    File::from(file).write_all(content).unwrap();
    path.join("f")
}
