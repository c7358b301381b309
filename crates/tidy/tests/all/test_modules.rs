//! Checks that every test file is declared as a module; otherwise its tests would never run.

use crate::tree::{Source, assert_none, files, has_word};

fn violations(files: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && file.name() != "main.rs") {
        let Some((folder, below)) = file.path.split_once("/tests/all/") else { continue };
        let module = below.trim_end_matches(".rs").split('/').next().unwrap_or(below);
        let main = format!("{folder}/tests/all/main.rs");
        let declares = |line: &str| has_word(line, &format!("mod {module}")) && line.ends_with(';');
        let is_declared =
            files.iter().any(|file| file.path == main && file.text.lines().any(declares));
        if !is_declared {
            violations.push(format!("{}: {main} has no \"mod {module};\"", file.path));
        }
    }
    violations
}

#[test]
fn every_test_file_is_declared() {
    assert_none(&violations(files()));
}

#[test]
fn undeclared_test_file_is_reported() {
    let main = Source::new("crates/a/tests/all/main.rs", "mod reading;\nmod writing_much;\n");
    let count = |name: &str| {
        let file = Source::new(&format!("crates/a/tests/all/{name}"), "");
        violations(&[main.clone(), file]).len()
    };
    assert_eq!([count("reading.rs"), count("writing_much.rs"), count("reading/deep.rs")], [0; 3]);
    assert_eq!(count("writing.rs"), 1);
}
