//! Checks that the tests that a page names as those of its promises exist.

use crate::tree::{Source, assert_none, files};

/// The head of a table of promises, whose second column names a test.
const HEAD: &str = "| promise | test |";

fn violations(files: &[Source]) -> Vec<String> {
    let has_test = |name: &str| {
        let function = format!("fn {name}(");
        files.iter().any(|file| file.is_rust() && file.text.contains(&function))
    };
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let tables = file.text.split(HEAD).skip(1);
        let rows =
            tables.flat_map(|table| table.lines().skip(2).take_while(|it| it.starts_with('|')));
        for row in rows {
            let test = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
            let name = test.trim().trim_matches('`');
            if name.is_empty() || !has_test(name) {
                violations.push(format!("{}: no test `{name}`", file.path));
            }
        }
    }
    violations
}

#[test]
fn tests_of_promises_exist() {
    assert!(files().iter().any(|file| file.text.contains(HEAD)));
    assert_none(&violations(files()));
}

#[test]
fn promise_without_a_test_is_reported() {
    let page =
        format!("{HEAD}\n|---|---|\n| one | `exists` |\n| two | `absent` |\n| three | |\n\n|");
    let code = Source::new("crates/a/tests/all/b.rs", "#[test]\nfn exists() {}\n");
    assert_eq!(violations(&[Source::new("docs/a.md", &page), code]).len(), 2);
}
