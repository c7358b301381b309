//! Tests that each kind of failure has one exit code in all commands.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::process::{Command, Stdio};

use crate::helper::{Finished, TestDir};
use crate::wal::three_segments;

/// For each command, arguments with a path that does not exist. Commands without paths have none.
/// `file` is a regular file, and `d` a directory.
const MISSING: &[(&str, &[&str])] = &[
    ("serve", &["--config", "none"]),
    ("serve", &["--credentials", "none"]),
    ("serve", &["--event-targets", "none"]),
    ("serve", &["--keys", "none", "--sealing-key", "none"]),
    ("serve", &["--tls-cert", "none", "--tls-key", "none"]),
    ("serve", &["--remote", "s3://b/p", "--remote-options", "none"]),
    ("serve", &["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", "file/none"]),
    ("keys add-encryption-key", &["none/keys"]),
    ("keys init", &["--keys", "none/keys", "--sealing-key", "none/key"]),
    ("keys create", &["a", "--sealing-key", "none"]),
    ("keys list", &["--sealing-key", "none"]),
    ("keys show", &["a", "--sealing-key", "none"]),
    ("keys allow", &["a", "metrics", "--sealing-key", "none"]),
    ("keys forbid", &["a", "metrics", "--sealing-key", "none"]),
    ("keys disable", &["a", "--sealing-key", "none"]),
    ("keys enable", &["a", "--sealing-key", "none"]),
    ("keys remove", &["a", "--sealing-key", "none"]),
    ("keys rotate", &["a", "--sealing-key", "none"]),
    ("keys set", &["a", "--quota", "none", "--sealing-key", "none"]),
    ("keys policy put", &["a", "none"]),
    ("keys policy list", &["--sealing-key", "none"]),
    ("keys policy show", &["a", "--sealing-key", "none"]),
    ("keys policy remove", &["a", "--sealing-key", "none"]),
    ("keys policy attach", &["a", "--user", "b", "--sealing-key", "none"]),
    ("keys policy detach", &["a", "--group", "b", "--sealing-key", "none"]),
    ("keys group add", &["a", "b", "--sealing-key", "none"]),
    ("keys group remove", &["a", "b", "--sealing-key", "none"]),
    ("keys group list", &["--sealing-key", "none"]),
    ("import-s3", &["--from", "http://127.0.0.1:1", "--from-credentials", "none"]),
    ("import-s3", &["--from", "http://127.0.0.1:1", "--to-credentials", "none"]),
    ("files", &["none", "--listen", "127.0.0.1:0"]),
    ("doctor", &["none"]),
    ("files", &["d", "--listen", "127.0.0.1:0", "--access-log", "file/none"]),
    ("relay", &["--to", "127.0.0.1:1", "--tls-cert", "none", "--tls-key", "none"]),
    ("store import", &["b-1", "none"]),
    ("store import-tar", &["b-1", "none"]),
    ("store export", &["b-1", "file/none"]),
    ("store export-tar", &["b-1", "none/tar"]),
    ("store put", &["b-1/k", "none"]),
    ("store get", &["b-1/k", "none/file"]),
    ("store ls", &["--data", "none"]),
    ("store stat", &["b-1/k", "--data", "none"]),
    ("store rm", &["b-1/k", "--data", "none"]),
    ("store mb", &["b-2", "--data", "file/none"]),
    ("store rb", &["b-1", "--data", "none"]),
    ("store verify", &["--data", "none"]),
    ("store compact", &["--data", "none"]),
    ("store map", &["--data", "none"]),
    ("store map", &["--svg", "none/file"]),
    ("store accept-damage", &["--data", "none"]),
    ("store versioning", &["b-1", "--data", "none"]),
    ("store lifecycle show", &["b-1", "--data", "none"]),
    ("store lifecycle set", &["b-1", "none"]),
    ("store lifecycle remove", &["b-1", "--data", "none"]),
    ("store lifecycle run", &["--data", "none"]),
    ("store snapshot", &["to", "--data", "none"]),
    ("store restore", &["--remote", "s3://b/p", "--remote-options", "none", "--data", "new"]),
    ("log", &["file/none"]),
    ("log show", &["none"]),
    ("wal dump", &["none"]),
    ("wal verify", &["none"]),
    ("wal tail", &["none"]),
    ("wal copy", &["none", "to"]),
    ("wal cut", &["none", "3:4096"]),
    ("keys add-encryption-key", &["none/keys"]),
    ("cache status", &["none"]),
    ("cache warm", &["none"]),
    ("cache evict", &["none"]),
    ("probe", &["none"]),
    ("tune", &["none"]),
    ("dups", &["none"]),
    ("dups", &["d", "none"]),
    ("dups", &["d", "--output", "none/report"]),
    ("dups", &["d", "--svg", "none/picture"]),
    ("dups remove", &["none"]),
    ("dups link", &["none"]),
    ("dups symlink", &["none"]),
    ("dups dedupe", &["none"]),
    ("dups move", &["to", "none"]),
    ("dups blocks", &["none"]),
    ("patch", &["none"]),
    ("patch", &["file", "--list", "none"]),
    ("sum", &["none"]),
    ("sum", &["d", "none"]),
    ("sum", &["--check", "none"]),
    ("sum", &["--files-from", "none"]),
    ("man", &["none"]),
];

/// The commands without a path. `bench` runs another program.
const WITHOUT_PATH: &[&str] = &["bench", "completions", "events", "health"];

/// Returns the words of all commands that have no subcommands, and of `dups` and `log`, from the
/// names of their manual pages.
fn commands(place: &TestDir) -> BTreeSet<String> {
    fs::create_dir(place.path("man")).unwrap();
    place.run(&["man", "man"]).code(0);
    let pages = fs::read_dir(place.path("man")).unwrap().map(|page| page.unwrap().file_name());
    let names = pages.map(|page| page.to_str().unwrap().trim_end_matches(".1").to_owned());
    let groups = [
        "haul",
        "haul-keys",
        "haul-keys-policy",
        "haul-keys-group",
        "haul-store",
        "haul-store-lifecycle",
        "haul-wal",
        "haul-cache",
    ];
    let words = |name: String| -> String {
        let name = name.strip_prefix("haul-").unwrap();
        // Only these names of commands have a hyphen.
        let hyphens =
            ["import-tar", "export-tar", "import-s3", "accept-damage", "add-encryption-key"];
        match hyphens.iter().find_map(|hyphen| Some((name.strip_suffix(hyphen)?, hyphen))) {
            Some((group, hyphen)) => format!("{}{hyphen}", group.replace('-', " ")),
            None => name.replace('-', " "),
        }
    };
    names.filter(|name| !groups.contains(&name.as_str())).map(words).collect()
}

fn run(place: &TestDir, command: &str, arguments: &[&str]) -> Finished {
    let words: Vec<_> = command.split(' ').chain(arguments.iter().copied()).collect();
    place.run(&words)
}

#[test]
fn missing_path_exits_3_in_all_commands() {
    let place = TestDir::new();
    place.write("file", "content");
    place.write("d/a", "1");
    place.run(&["store", "mb", "b-1"]).code(0);
    place.run_with(&["store", "put", "b-1/k"], b"x").code(0);
    let mut tested: BTreeSet<String> = WITHOUT_PATH.iter().map(|name| (*name).to_owned()).collect();
    for (command, arguments) in MISSING {
        let ended = run(&place, command, arguments);
        let stderr = ended.stderr();
        assert_eq!(ended.0.status.code(), Some(3), "{command} {arguments:?}: {stderr}");
        assert!(stderr.contains("none"), "{command} {arguments:?}: {stderr}");
        tested.insert((*command).to_owned());
    }
    let mut left: Vec<_> = fs::read_dir(place.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["d", "file", "haul-data"], "nothing was created");
    let untested: Vec<_> = commands(&place).difference(&tested).cloned().collect();
    assert_eq!(untested, [""; 0], "commands that the table lacks");
}

#[test]
fn invalid_option_exits_2_in_all_commands() {
    let place = TestDir::new();
    for command in commands(&place).iter().filter(|name| *name != "bench") {
        let ended = run(&place, command, &["--no-such-option"]).code(2);
        let ended = ended.stderr_contains(&["--no-such-option", "--help"]);
        assert_eq!(ended.stdout(), b"", "{command}");
    }
}

/// Runs a command with a stdout that is full.
fn run_full(place: &TestDir, words: &[&str]) -> Finished {
    let full = File::options().write(true).open("/dev/full").unwrap();
    Finished(place.command(words).stdout(full).output().unwrap())
}

/// Runs a command with a stdout that is closed, as by `>&-` in a shell.
fn run_closed(place: &TestDir, words: &[&str]) -> Finished {
    run_redirected(place, words, ">&-")
}

/// Runs a command with a redirection of a shell.
fn run_redirected(place: &TestDir, words: &[&str], redirection: &str) -> Finished {
    let direct = place.command(words);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec \"$@\" {redirection}"), "sh"]);
    shell.arg(direct.get_program()).args(direct.get_args()).current_dir(place.path(""));
    for (name, value) in direct.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    Finished(shell.stdin(Stdio::null()).output().unwrap())
}

#[test]
fn stdin_that_cannot_be_read_is_not_an_empty_one() {
    let place = TestDir::on_disk();
    place.run(&["store", "mb", "b-1"]).code(0);
    place.write("target", "content");
    place.write("sum-of-nothing", place.run_with(&["sum", "-"], b"").code(0).stdout());
    for words in [
        &["store", "put", "b-1/k"][..],
        &["store", "import-tar", "b-1"],
        &["store", "lifecycle", "set", "b-1", "-"],
        &["sum"],
        &["sum", "-"],
        &["sum", "--files-from", "-"],
        &["sum", "--check", "-"],
        &["sum", "--check", "sum-of-nothing"],
        &["dups", "--stdin"],
        &["dups", "remove"],
        &["patch", "target"],
        &["log", "lines"],
    ] {
        for redirection in ["<&-", "0>/dev/null"] {
            let ended = run_redirected(&place, words, redirection);
            let stderr = ended.stderr();
            let code = ended.0.status.code();
            assert!(code.is_some_and(|code| code > 0), "{words:?} {redirection}: {stderr}");
            assert!(stderr.contains("not connected"), "{words:?} {redirection}: {stderr}");
        }
    }
    place.run(&["store", "get", "b-1/k"]).code(1);
}

#[test]
fn command_without_output_needs_no_stdout() {
    let place = TestDir::on_disk();
    place.write("list", place.run(&["sum", "."]).code(0).stdout());
    run_closed(&place, &["store", "mb", "b-1"]).code(0);
    run_closed(&place, &["sum", "--check", "list", "--status"]).code(1);
}

#[test]
fn help_that_cannot_be_written_exits_1() {
    let place = TestDir::new();
    let all = commands(&place);
    let all = all.iter().filter(|name| *name != "bench");
    for command in all.map(String::as_str).chain([""]) {
        for help in ["--help", "-h"] {
            let words: Vec<_> = command.split_whitespace().chain([help]).collect();
            run_full(&place, &words).code(1).stderr_contains(&["cannot write to stdout"]);
        }
    }
    run_full(&place, &["--version"]).code(1).stderr_contains(&["cannot write to stdout"]);
}

#[test]
fn output_that_cannot_be_written_exits_1() {
    check_outputs(run_full);
}

#[test]
fn output_to_a_closed_stdout_exits_1() {
    check_outputs(run_closed);
}

#[test]
fn output_to_a_stdout_that_is_open_for_reading_exits_1() {
    check_outputs(|place, words| run_redirected(place, words, "1</dev/null"));
}

/// Runs each command that prints something with a stdout that cannot be written.
fn check_outputs(run: fn(&TestDir, &[&str]) -> Finished) {
    let place = TestDir::on_disk();
    place.write("d/a", "equal");
    place.write("d/b", "equal");
    place.write("records", "0 d/a\n");
    place.write("target", [0; 10]);
    place.run(&["store", "import", "b-1", "d"]).code(0);
    place.run_with(&["log", "lines"], b"line\n").code(0);
    place.write("report", place.run(&["dups", "d"]).code(0).stdout());
    place.write("sums", place.run(&["sum", "d"]).code(0).stdout());
    let newest = three_segments(&place).last().unwrap().lsn.to_string();
    for words in [
        &["store", "import", "b-1", "d", "--json"][..],
        &["store", "export", "b-1", "copy", "--json"],
        &["store", "export-tar", "b-1"],
        &["store", "export-tar", "b-1", "a.tar", "--json"],
        &["store", "import-tar", "b-1", "a.tar", "--json"],
        &["store", "put", "b-1/a", "d/a", "--json"],
        &["store", "get", "b-1/a"],
        &["store", "get", "b-1/a", "copy-of-a", "--json"],
        &["store", "ls", "b-1"],
        &["store", "stat", "b-1/a"],
        &["store", "verify"],
        &["store", "accept-damage"],
        &["store", "compact"],
        &["store", "map"],
        &["store", "snapshot", "snapshot"],
        &["store", "rm", "b-1/a", "--json"],
        &["log", "lines", "--json"],
        &["log", "show", "lines"],
        &["wal", "dump", "log"],
        &["wal", "verify", "log"],
        &["wal", "tail", "log"],
        &["wal", "copy", "log", "log-copy"],
        &["wal", "cut", "--after", "log", &newest],
        &["cache", "status", "d"],
        &["cache", "warm", "d"],
        &["cache", "evict", "d"],
        &["probe", "."],
        &["tune", "."],
        &["dups", "d"],
        &["dups", "remove", "--dry-run", "report"],
        &["dups", "link", "--json", "report"],
        &["dups", "blocks", "--json", "--min", "1", "--dry-run", "d"],
        &["patch", "target", "--list", "records"],
        &["sum", "d"],
        &["sum", "--check", "sums"],
        &["completions", "bash"],
        &["man"],
    ] {
        let ended = run(&place, words);
        let stderr = ended.stderr();
        assert_eq!(ended.0.status.code(), Some(1), "{words:?}: {stderr}");
        assert!(stderr.contains("cannot write"), "{words:?}: {stderr}");
    }
}
