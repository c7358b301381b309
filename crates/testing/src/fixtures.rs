//! Directories that released versions of a crate wrote, as archives beside its tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::{disk_dir, files_below};

/// Extracts each archive `NAME-VERSION.tar.gz` in the folder `tests/fixtures` of the crate at
/// `crate_dir` into a temporary directory. Returns the versions with the directories.
///
/// # Panics
/// Panics if there is no such archive, or one cannot be extracted.
#[must_use]
pub fn release_fixtures(crate_dir: &str, name: &str) -> Vec<(String, TempDir)> {
    let folder = Path::new(crate_dir).join("tests/fixtures");
    let mut archives: Vec<_> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    archives.sort_unstable();
    let version = |archive: &PathBuf| {
        let file = archive.file_name()?.to_str()?;
        let version = file.strip_prefix(name)?.strip_prefix('-')?.strip_suffix(".tar.gz")?;
        version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
    };
    let extracted = archives.iter().filter_map(|archive| {
        let (version, dir) = (version(archive)?, disk_dir());
        tar(&["--extract", "--gzip"], archive, dir.path());
        Some((version, dir))
    });
    let extracted: Vec<_> = extracted.collect();
    assert!(!extracted.is_empty(), "{} has no archive {name}-VERSION.tar.gz", folder.display());
    extracted
}

/// Writes `dir` as an archive `NAME-VERSION.tar.gz` into the directory `HAUL_FIXTURES`, if this
/// variable is set: `CONTRIBUTING.md` states when to add an archive.
///
/// # Panics
/// Panics if the archive cannot be written.
pub fn save(dir: &Path, name: &str, version: &str) {
    if let Some(target) = std::env::var_os("HAUL_FIXTURES") {
        let archive = Path::new(&target).join(format!("{name}-{version}.tar.gz"));
        let options = ["--create", "--gzip", "--sort=name", "--owner=0", "--group=0", "."];
        tar(&options, &archive, dir);
    }
}

/// Runs tar in `dir`.
fn tar(options: &[&str], archive: &Path, dir: &Path) {
    let mut tar = Command::new("tar");
    tar.arg("--directory").arg(dir).arg("--file").arg(archive).args(options);
    assert!(tar.status().unwrap().success(), "{tar:?}");
}

/// Copies all files below `from` to the same places below `to`, as a kill of their writer at this
/// moment would leave them.
///
/// # Panics
/// Panics if a file cannot be copied, unless it was removed meanwhile.
pub fn copy_files(from: &Path, to: &Path) {
    for file in files_below(from) {
        let copy = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        if let Err(error) = fs::copy(&file, &copy) {
            assert!(!file.exists(), "{}: {error}", file.display());
        }
    }
}
