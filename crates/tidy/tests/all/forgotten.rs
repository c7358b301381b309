//! A test file that nobody names is never run.

use crate::tree::{Source, assert_none, files, has_word};

fn complaints(files: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && file.name() != "main.rs") {
        let Some((folder, below)) = file.path.split_once("/tests/all/") else { continue };
        let module = below.trim_end_matches(".rs").split('/').next().unwrap_or(below);
        let main = format!("{folder}/tests/all/main.rs");
        let named = |line: &str| has_word(line, &format!("mod {module}")) && line.ends_with(';');
        let main_names_it =
            files.iter().any(|file| file.path == main && file.text.lines().any(named));
        if !main_names_it {
            complaints.push(format!("{}: {main} does not say \"mod {module};\"", file.path));
        }
    }
    complaints
}

#[test]
fn every_test_file_is_named_in_its_main() {
    assert_none(&complaints(files()));
}

#[test]
fn a_forgotten_test_file_is_noticed() {
    let main = Source::new("crates/a/tests/all/main.rs", "mod reading;\nmod writing_much;\n");
    let found = |name: &str| {
        let file = Source::new(&format!("crates/a/tests/all/{name}"), "");
        complaints(&[main.clone(), file]).len()
    };
    assert_eq!([found("reading.rs"), found("writing_much.rs"), found("reading/deep.rs")], [0; 3]);
    assert_eq!(found("writing.rs"), 1);
}
