//! Runs the commands of a page in bash, which stops at the first command that fails.

use std::path::Path;
use std::process::{Command, Output};

use crate::program;

/// Shell commands that precede those of a page. They make the shell stop at the first failing line,
/// report this line, and kill all servers.
pub(super) const PROLOGUE: &str = r#"
set -e
trap 'echo "this line failed: $BASH_COMMAND" >&2' ERR
trap 'jobs -p | xargs -r kill' EXIT
"#;

/// Returns a `PATH` with `haul` and the Python that has boto3.
fn search_path() -> String {
    let python = std::env::var("HAUL_PYTHON").unwrap_or_default();
    let folder = |path: &Path| path.parent().map(|path| path.display().to_string());
    let folders = [folder(program::path()), folder(Path::new(&python))].into_iter().flatten();
    let path = std::env::var("PATH").unwrap_or_default();
    folders.filter(|folder| !folder.is_empty()).chain([path]).collect::<Vec<_>>().join(":")
}

/// Runs commands in a directory, and prints their output.
pub(super) fn run(dir: &Path, script: &str) -> Output {
    let mut shell = Command::new("timeout");
    shell.args(["120", "bash", "-c"]).arg([PROLOGUE, script].concat());
    shell.env("PATH", search_path()).env_remove("HAUL_ACCESS_KEY").env_remove("HAUL_SECRET_KEY");
    // Make curl fail on HTTP errors.
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join(".curlrc"), "fail\n").unwrap();
    shell.env("CURL_HOME", home.path());
    let output = shell.current_dir(dir).output().unwrap();
    println!("{}", program::output_text(&output));
    output
}
