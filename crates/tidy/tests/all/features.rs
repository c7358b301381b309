//! Checks that libraries have the same features whether the program alone or the whole workspace is
//! built, so that no library is compiled twice: see `docs/decisions/0024-dependency-costs.md`.

use std::collections::BTreeSet;
use std::process::Command;

use crate::tree::{assert_none, root};

/// Returns each library that the selected packages use, with its version and its features. A library
/// occurs twice if build scripts and macros use it with other features than programs.
fn libraries(packages: &[&str], edges: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--prefix", "none", "--format", "{p} [{f}]", "--edges", edges])
        .args(packages)
        .current_dir(root())
        .output()
        .expect("cargo tree runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("cargo tree prints UTF-8");
    lines.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

fn name(library: &str) -> &str {
    library.split(' ').next().unwrap_or_default()
}

#[test]
fn program_and_workspace_use_libraries_with_the_same_features() {
    let program = libraries(&["--package", "haul"], "normal,no-proc-macro");
    let names: BTreeSet<_> = program.iter().map(|library| name(library)).collect();
    assert!(names.contains("rustix"), "{names:?}");
    let workspace = libraries(&["--workspace"], "normal,no-proc-macro");
    let in_program = |library: &&String| names.contains(name(library));
    let mut differing: Vec<_> =
        workspace.iter().filter(in_program).filter(|it| !program.contains(*it)).cloned().collect();
    // The workspace has macros that the program does not have, and each may use its own libraries.
    let (program, workspace) =
        (libraries(&["--package", "haul"], "no-dev"), libraries(&["--workspace"], "no-dev"));
    differing.extend(program.difference(&workspace).cloned());
    assert_none(&differing);
}
