//! Checks that no file has markers of an unfinished merge.

use crate::tree::{Source, assert_none, files};

fn violations(files: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            // The middle marker alone may also underline a title.
            let is_marker = ["<<<<<<< ", ">>>>>>> "].iter().any(|it| line.starts_with(it));
            if is_marker {
                violations.push(format!("{}:{}: marker of a merge", file.path, index + 1));
            }
        }
    }
    violations
}

#[test]
fn no_file_has_markers_of_a_merge() {
    assert_none(&violations(files()));
}

#[test]
fn marker_of_a_merge_is_reported() {
    let file = Source::new("docs/a.md", "one\n<<<<<<< ours\ntwo\n=======\n>>>>>>> theirs\n");
    assert_eq!(violations(&[file]).len(), 2);
}
