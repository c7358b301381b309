//! Finds the programs under test, and builds them if necessary.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::SystemTime;

/// Returns the root directory of the work tree.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the path of a program of this workspace, beside the running test. The program is built
/// first if any source is newer, because `cargo test` of one package does not build the programs of
/// other packages.
///
/// # Panics
/// Panics if the program does not build.
#[must_use]
pub fn program(package: &str) -> PathBuf {
    static BUILDING: Mutex<()> = Mutex::new(());
    let test = std::env::current_exe().expect("a test knows its path");
    let profile = test.ancestors().nth(2).expect("tests are in target/PROFILE/deps");
    let program = profile.join(package);
    let _one = BUILDING.lock();
    if modified(&program) < newest_source() {
        build(package, profile);
    }
    program
}

fn build(package: &str, profile: &Path) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--package", package]).current_dir(root());
    cargo.arg("--target-dir").arg(profile.parent().expect("a profile is in the target folder"));
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().expect("cargo starts").success(), "{package} does not build");
}

fn modified(path: &Path) -> SystemTime {
    path.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn newest_source() -> SystemTime {
    let crates = std::fs::read_dir(root().join("crates")).into_iter().flatten().flatten();
    let sources = crates.flat_map(|folder| files_below(&folder.path().join("src")));
    sources.map(|file| modified(&file)).max().unwrap()
}

/// Returns all regular files below a directory. Symbolic links are not followed.
#[must_use]
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files
}
