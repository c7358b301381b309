//! Compares the options of `fclones group`, `remove`, `link`, `dedupe` and `move` with `haul dups`.
//!
//! The files `groups.txt` and `actions.txt` have the results of fclones 0.35.0 on a fixed tree. If
//! fclones is installed, the tests also verify these files; the message of a failed test has the
//! new content.

mod actions;
mod groups;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::helper::TestDir;

/// A difference between the programs that the documentation lists.
const DIFFERS: &str = "DIFFERS ";

/// Creates the tree.
fn place() -> TestDir {
    let place = TestDir::on_disk();
    for (name, text) in [
        ("t/a/1", "one"),
        ("t/b/1", "one"),
        ("t/b/c/1", "one"),
        ("t/b/c/d/1", "one"),
        ("t/a/two", "two!"),
        ("t/b/two", "two!"),
        ("t/a/Upper.TXT", "upper"),
        ("t/b/upper.txt", "upper"),
        ("t/a/.hid", "hidden"),
        ("t/b/hid", "hidden"),
        ("t/b/.gitignore", "ignored*"),
        ("t/b/ignored", "ignored"),
        ("t/a/ign", "ignored"),
        ("t/h/l1", "hard link"),
        ("t/h/other", "hard link"),
        ("t/unique", "a unique file"),
    ] {
        place.write(name, text);
        next_tick();
    }
    fs::hard_link(place.path("t/h/l1"), place.path("t/h/l2")).unwrap();
    fs::create_dir(place.path("t/s")).unwrap();
    symlink("../a/two", place.path("t/s/file")).unwrap();
    symlink("../h", place.path("t/s/dir")).unwrap();
    for bytes in [1000, 1024, 500_000, 524_288, 1_000_000, 1_048_576] {
        for copy in ["x", "y"] {
            place.write(format!("t/z/{bytes}{copy}"), vec![7; bytes]);
        }
    }
    place
}

/// Waits until a new file gets later timestamps than all files before it.
fn next_tick() {
    let now = SystemTime::now();
    while now.elapsed().unwrap_or_default() < Duration::from_millis(20) {
        std::thread::yield_now();
    }
}

/// Runs a program with `arguments`, and returns its stdout; an error has the exit code.
fn output(place: &TestDir, mut command: Command, input: &str) -> Result<String, i32> {
    command
        .current_dir(place.path(""))
        .env("XDG_CACHE_HOME", place.path("cache"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    match output.status.code() {
        Some(0) => Ok(String::from_utf8(output.stdout).unwrap()),
        code => Err(code.unwrap_or(-1)),
    }
}

/// Returns the command for `haul dups` or, if it is installed, for fclones.
fn program(place: &TestDir, is_fclones: bool, subcommand: &str) -> Option<Command> {
    if !is_fclones {
        let words = ["dups", subcommand];
        let words = if subcommand == "group" { &words[..1] } else { &words[..] };
        return Some(place.command(words));
    }
    let mut command = Command::new("fclones");
    command.arg(subcommand);
    match Command::new("fclones").arg("--version").output() {
        Ok(version) if version.stdout.ends_with(b" 0.35.0\n") => Some(command),
        _ => None,
    }
}

/// Parses a table: each case begins with a line `$ OPTIONS`, and its result follows.
fn table(text: &str) -> BTreeMap<&str, &str> {
    let cases = text.split("\n$ ").skip(1).filter_map(|case| case.split_once('\n'));
    cases.map(|(options, result)| (options, result.trim_end())).collect()
}

/// Verifies the results of all cases against a table. `run` returns the result of a case for one of
/// the programs, or `None` if the program is not installed. A case whose result differs from that
/// of fclones on purpose begins with [`DIFFERS`].
fn verify(cases: &[&str], text: &str, run: impl Fn(&str, bool) -> Option<String>) {
    let expected = table(text);
    let (mut found, mut wrong) = (String::new(), Vec::new());
    for case in cases {
        let options = case.strip_prefix(DIFFERS).unwrap_or(case);
        if let Some(theirs) = run(options, true) {
            found.push_str(&format!("$ {options}\n{theirs}\n\n"));
        }
        let ours = run(options, false).unwrap();
        let is_equal = expected.get(options).is_some_and(|expected| *expected == ours);
        if is_equal == case.starts_with(DIFFERS) {
            wrong.push(format!("{case}\n{ours}"));
        }
    }
    assert!(
        found.is_empty() || table(&format!("\n{found}")) == expected,
        "the new table is:\n{found}"
    );
    assert!(wrong.is_empty(), "wrong results of haul:\n{}", wrong.join("\n\n"));
}

/// Splits options into words; `'` quotes blanks.
fn words(options: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in options.split('\'').enumerate() {
        match number % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}
