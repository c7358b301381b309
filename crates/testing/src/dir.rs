//! Creates temporary directories that are on a disk.

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
