//! Checks that words which stand for something forbidden, such as I/O in a plan, are only where a
//! reason permits them.

use std::collections::BTreeSet;

use crate::modules::paths;
use crate::tree::{Source, assert_none, files, has_word};

/// A rule for the code of some files.
struct Rule {
    text: &'static str,
    /// Words and paths, separated by spaces. Imported names have their full paths.
    words: &'static str,
    applies: fn(&Source) -> bool,
    /// Files, or folders of crates, that may break the rule, with the reasons.
    exceptions: &'static [(&'static str, &'static str)],
}

const RULES: &[Rule] = &[
    Rule {
        text: "unsafe code is in few modules",
        words: "unsafe",
        applies: Source::is_rust,
        exceptions: &[
            ("crates/bench-compare/src/small_files/lmdb.rs", "LMDB maps its file into memory"),
            ("crates/disk-sim/src/memory/heap.rs", "crash tests change settings of the heap"),
            ("crates/disk/src/access/buffer.rs", "allocates aligned memory"),
            ("crates/disk/src/access/map.rs", "maps files into memory"),
            ("crates/disk/src/access/ring.rs", "hands buffers to io_uring"),
            ("crates/disk/src/sys.rs", "calls what rustix lacks"),
            ("crates/md5-lanes/src/kernels.rs", "needs the vector instructions of the processor"),
            ("crates/md5-lanes/src/pending.rs", "lends buffers to the thread that hashes them"),
        ],
    },
    Rule {
        text: "a library does not print",
        words: "println! print! eprintln! eprint! dbg! io::stdout io::stderr",
        applies: is_library,
        exceptions: &[
            ("crates/cli-common/", "is the output and the messages of the programs"),
            ("crates/disk-sim/", "prints to a test the crash state that failed"),
            ("crates/testing/", "prints why a test is skipped, and its seed"),
        ],
    },
    Rule {
        text: "a library does not read the environment",
        words: "std::env env::var",
        applies: is_library,
        exceptions: &[
            ("crates/bench/", "looks in PATH for the programs it measures"),
            ("crates/disk-sim/", "names the seed and the test in the command that replays a crash"),
            ("crates/testing/", "finds the programs under test, takes SEED"),
        ],
    },
    Rule {
        text: "formats, names and plans are pure: they do no I/O",
        words: "std::fs std::io std::net std::process std::env rustix libc tokio haul_disk::File \
                haul_disk::Disk haul_disk::OsDisk",
        applies: is_pure,
        exceptions: &[],
    },
];

/// The names of files that contain only pure functions. Those in folders `plan` are pure, too.
const PURE: &str = "format.rs names.rs plan.rs sysfs.rs mounts.rs units.rs request.rs \
                    rotation_policy.rs segment_header.rs record_header.rs";

fn is_library(file: &Source) -> bool {
    let is_program = file.path.contains("/src/bin/") || file.path.ends_with("/src/main.rs");
    let is_program = is_program || matches!(file.crate_folder(), Some("cli" | "bench-compare"));
    file.is_production() && !is_program
}

fn is_pure(file: &Source) -> bool {
    let is_named = PURE.split(' ').any(|name| name == file.name());
    file.is_production() && (is_named || file.path.contains("/plan/"))
}

/// Returns the code of a file, followed by the imported names with their full paths.
fn code_and_paths(file: &Source) -> String {
    let paths = paths(file).into_iter().map(|path| path.join("::"));
    paths.fold(file.code().to_owned(), |code, path| code + "\n" + &path)
}

fn violations(rule: &Rule, files: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    let mut unused: BTreeSet<_> = rule.exceptions.iter().map(|(place, _)| *place).collect();
    for file in files.iter().filter(|file| (rule.applies)(file)) {
        // Most files have not even the last part of a path.
        let last = |word: &&str| file.text.contains(word.rsplit("::").next().unwrap_or(word));
        let mut found: Vec<_> = rule.words.split(' ').filter(last).collect();
        if !found.is_empty() {
            let code = code_and_paths(file);
            found.retain(|word| has_word(&code, word));
        }
        match rule.exceptions.iter().find(|(place, _)| file.path.starts_with(place)) {
            _ if found.is_empty() => {}
            Some((place, _)) => drop(unused.remove(place)),
            None => violations.push(format!("{}: {found:?}: {}", file.path, rule.text)),
        }
    }
    violations.extend(unused.iter().map(|it| format!("{it} needs no exception: {}", rule.text)));
    violations
}

#[test]
fn code_has_forbidden_words_only_where_a_reason_permits_them() {
    assert_none(&RULES.iter().flat_map(|rule| violations(rule, files())).collect::<Vec<_>>());
}

#[test]
fn forbidden_words_and_needless_exceptions_are_reported() {
    let broken = |path: &str, text: &str| -> Vec<usize> {
        let files = [Source::new(path, text)];
        let is_broken = |rule: &usize| {
            let rule = Rule { exceptions: &[], ..RULES[*rule] };
            !violations(&rule, &files).is_empty()
        };
        (0..RULES.len()).filter(is_broken).collect()
    };
    for (text, rules) in [
        ("    println!(\"hello\");\n", &[1][..]),
        ("    writeln!(io::stderr(), \"hello\").ok();\n", &[1]),
        ("use std::{env, fs};\n", &[2, 3]),
        ("use haul_disk::{\n    File, Op,\n};\n", &[3]),
        ("    unsafe { zero() }\n", &[0]),
        ("use std::fmt;\n    writeln!(f, \"hello\")?; // std::fs\n", &[]),
        ("    let version = env!(\"unsafe\");\n", &[]),
        ("\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n", &[]),
    ] {
        assert_eq!(broken("crates/a/src/plan/b.rs", text), rules, "{text}");
    }
    assert_eq!(broken("crates/a/src/b.rs", "use std::{env, fs};\n"), [2]);
    for path in ["crates/a/src/bin/b/c.rs", "crates/a/tests/all/plan.rs"] {
        assert!(broken(path, "use std::{env, fs};\n").is_empty(), "{path}");
    }
    assert_eq!(violations(&RULES[0], &[]).len(), RULES[0].exceptions.len());
}

/// Texts that no file contains: paths and package hosts of one machine, marks of deferred work,
/// which belongs into the issue tracker, and of an unfinished merge. They are written in pieces, so
/// that this file does not contain them.
const NOWHERE: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("crates", ".io"),
    concat!("py", "pi.org"),
    concat!("npm", "js.org"),
    concat!("proxy.golang", ".org"),
    concat!("deb.debian", ".org"),
    concat!("TO", "DO:"),
    concat!("FIX", "ME"),
    concat!("\n<<<<", "<<< "),
    concat!("\n>>>>", ">>> "),
];

/// A word that may mean "passed to the kernel" or "durable". Only devices have requests of this
/// name, and writers a method.
const AMBIGUOUS: &str = concat!("flu", "sh");

/// The libraries that make bytes durable.
const DURABLE: &[&str] = &["disk", "append-log", "file-store", "sorted-write", "line-log"];

fn text_violations(file: &Source) -> Vec<String> {
    let mut found: Vec<_> = NOWHERE.iter().filter(|it| file.text.contains(**it)).copied().collect();
    // Cargo writes the host of its registry into lock files.
    found.retain(|_| file.name() != "Cargo.lock");
    if file.crate_folder().is_some_and(|folder| DURABLE.contains(&folder)) {
        let is_own = |line: &&str| {
            let rest = [" request", "_request", "()", "(&mut self)"].iter();
            let rest = rest.fold(line.to_lowercase(), |line, it| {
                line.replace(&format!("{AMBIGUOUS}{it}"), "")
            });
            rest.contains(AMBIGUOUS) && !rest.contains("write cache")
        };
        found.extend(file.text.lines().filter(is_own));
    }
    found.iter().map(|text| format!("{}: {}", file.path, text.trim())).collect()
}

#[test]
fn files_have_no_forbidden_text() {
    assert_none(&files().iter().flat_map(text_violations).collect::<Vec<_>>());
}

#[test]
fn forbidden_text_is_reported() {
    for text in NOWHERE {
        let file = |path: &str| Source::new(path, &format!("a{text}b"));
        assert_eq!(text_violations(&file("docs/a.md")).len(), 1, "{text}");
        assert_eq!(text_violations(&file("Cargo.lock")).len(), 0, "{text}");
    }
    let count = |path: &str, text: String| text_violations(&Source::new(path, &text)).len();
    assert_eq!(count("crates/disk/src/a.rs", format!("fn {AMBIGUOUS}_all() {{}}")), 1);
    assert_eq!(
        count("crates/disk/src/a.rs", format!("b.{AMBIGUOUS}()?; // a {AMBIGUOUS} request")),
        0
    );
    assert_eq!(count("crates/cli/src/a.rs", AMBIGUOUS.to_owned()), 0);
}
