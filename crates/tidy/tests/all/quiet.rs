//! Checks that libraries do not directly access the terminal, the environment or files.

use std::collections::BTreeSet;

use crate::exceptions::{Exception, Use, violations};
use crate::imports::paths;
use crate::tree::{Source, assert_none, files, has_word};

/// Macros and functions that write to the terminal.
const OUTPUT: &[&str] =
    &["println!", "print!", "eprintln!", "eprint!", "dbg!", "io::stdout", "io::stderr"];

/// Libraries that may write to the terminal, and the reason of each.
const PRINTING: &[Exception] = &[
    ("cli-common", "is the output, the progress and the messages of the programs"),
    ("disk-sim", "prints to a test the crash state that failed, and how many there were"),
    ("testing", "prints why a test is skipped, its seed, and which mount is left behind"),
];

/// Libraries that may read the environment, and the reason of each.
const ENVIRONMENT: &[Exception] = &[
    ("bench", "looks in PATH for the programs it measures"),
    ("disk-sim", "names the seed and the test in the command that replays a crash"),
    ("testing", "finds the programs under test, takes SEED, and skips no test if CI is set"),
];

/// Libraries that may use `std::fs`, and the reason of each.
const FILES: &[Exception] = &[
    ("admin-endpoint", "reads the metrics of the process from /proc"),
    ("bench", "prepares test files and reads the counters of the kernel"),
    ("bulk-read", "keeps the cache of digests in a file at any path"),
    ("checksums", "reads the beginning of a file by any path to detect the hash of its list"),
    ("cli-common", "writes the manual pages, shell completions and pictures of the programs"),
    ("disk", "owns files, and reads /proc and /sys"),
    ("disk-sim", "backs the simulated block device by a file, and serves it by FUSE"),
    ("duplicates", "compares and replaces files that other programs own, by any path"),
    ("measure", "reads the load of the machine from /proc"),
    ("page-cache", "reads the size of the memory from /proc"),
    ("reactor", "removes the stale unix socket it is about to bind"),
    ("testing", "makes images of file systems, and reads the documentation, for tests"),
    ("tls", "reads certificates and private keys by any path"),
    ("transfer", "reads and writes trees of any names below directory descriptors"),
];

/// A rule for libraries, and the libraries that may break the rule.
struct Rule {
    text: &'static str,
    breaks: fn(&Source) -> bool,
    exceptions: &'static [Exception],
}

const RULES: &[Rule] = &[
    Rule { text: "a library does not print", breaks: prints, exceptions: PRINTING },
    Rule {
        text: "a library does not read the environment",
        breaks: |file| has_path(file, "env"),
        exceptions: ENVIRONMENT,
    },
    Rule {
        text: "a library accesses files through haul_disk",
        breaks: |file| has_path(file, "fs"),
        exceptions: FILES,
    },
];

fn prints(file: &Source) -> bool {
    file.code().any(|(_, line)| OUTPUT.iter().any(|word| has_word(&line, word)))
}

/// `true` if the file uses this module of `std`.
fn has_path(file: &Source, module: &str) -> bool {
    paths(file).iter().any(|path| path.starts_with(&["std", module].map(Into::into)))
}

/// Returns the files of libraries that break a rule.
fn uses(files: &[Source], breaks: fn(&Source) -> bool) -> BTreeSet<Use> {
    let libraries: BTreeSet<_> = files
        .iter()
        .filter(|file| file.path.ends_with("/src/lib.rs"))
        .filter_map(Source::crate_folder)
        .collect();
    let used = |file: &Source| {
        let folder = file.crate_folder().filter(|folder| libraries.contains(folder))?;
        let is_program = file.path.contains("/src/bin/") || file.path.ends_with("/src/main.rs");
        (file.is_production() && !is_program && breaks(file))
            .then(|| Use { folder: folder.to_owned(), place: file.path.clone() })
    };
    files.iter().filter_map(used).collect()
}

#[test]
fn libraries_are_quiet() {
    let broken = |rule: &Rule| violations(rule.text, &uses(files(), rule.breaks), rule.exceptions);
    assert_none(&RULES.iter().flat_map(broken).collect::<Vec<_>>());
}

#[test]
fn a_loud_library_is_reported() {
    let broken = |path: &str, text: &str| -> Vec<usize> {
        let tree = [Source::new("crates/a/src/lib.rs", ""), Source::new(path, text)];
        let is_broken = |rule: &usize| !uses(&tree, RULES[*rule].breaks).is_empty();
        (0..RULES.len()).filter(is_broken).collect()
    };
    for (text, rules) in [
        ("    println!(\"hello\");\n", &[0][..]),
        ("    dbg!(x);\n", &[0]),
        ("    writeln!(io::stderr(), \"hello\").ok();\n", &[0]),
        ("    let home = std::env::var(HOME);\n", &[1]),
        ("use std::fs::read;\n", &[2]),
        ("use std::{env, fs};\n", &[1, 2]),
        ("use std::{fmt, io};\n    writeln!(f, \"hello\")?;\n", &[]),
        ("    let version = env!(\"CARGO_PKG_VERSION\");\n", &[]),
        ("// println!(\"hello\"), std::fs\n", &[]),
        ("\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n", &[]),
    ] {
        assert_eq!(broken("crates/a/src/b.rs", text), rules, "{text}");
    }
    let text = "use std::fs::read;\n";
    for path in ["crates/a/tests/all/main.rs", "crates/a/src/main.rs", "crates/a/src/bin/b/c.rs"] {
        assert!(broken(path, text).is_empty(), "{path}");
    }
    assert!(broken("crates/b/src/main.rs", text).is_empty(), "not a library");
}
