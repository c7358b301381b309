//! The program under test.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::SystemTime;

/// The root of the work tree.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The path of `haul`: what `HAUL_PROGRAM` says, else the one beside this test, built anew when
/// its sources are newer (`cargo test` of this package alone does not build it).
pub(crate) fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        if let Some(chosen) = std::env::var_os("HAUL_PROGRAM") {
            return std::path::absolute(chosen).expect("HAUL_PROGRAM is a path");
        }
        let test = std::env::current_exe().expect("a test knows where it is");
        let profile = test.ancestors().nth(2).expect("tests are in target/PROFILE/deps");
        let program = profile.join("haul");
        if modified(&program) < newest_source() {
            build(profile);
        }
        program
    })
}

fn build(profile: &Path) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--package", "haul"]).current_dir(root());
    cargo.arg("--target-dir").arg(profile.parent().expect("a profile is in the target folder"));
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().expect("cargo starts").success(), "haul does not build");
}

fn modified(path: &Path) -> SystemTime {
    path.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn newest_source() -> SystemTime {
    let crates = std::fs::read_dir(root().join("crates")).into_iter().flatten().flatten();
    let sources = crates.flat_map(|folder| files_below(&folder.path().join("src")));
    sources.map(|file| modified(&file)).max().unwrap()
}

/// Every regular file below a folder; symbolic links are not followed.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
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

/// A command that runs the program without any settings of whoever runs the tests.
pub(crate) fn command() -> Command {
    let mut command = Command::new(path());
    for (name, _) in std::env::vars_os().filter(|(name, _)| starts_with_haul(name)) {
        command.env_remove(name);
    }
    command
}

fn starts_with_haul(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with("HAUL_")
}

/// Runs `haul store WHAT --data DATA ...` to its end.
pub(crate) fn store(what: &str, data: &Path, more: &[&str]) -> Output {
    let mut command = command();
    command.args(["store", what, "--data"]).arg(data).args(more);
    command.output().expect("haul starts")
}

/// What a program said on both of its outputs, for messages of failed tests.
pub(crate) fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}\n{}", output.status, text(&output.stdout), text(&output.stderr))
}

/// Fails unless the program succeeded.
pub(crate) fn assert_success(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}
