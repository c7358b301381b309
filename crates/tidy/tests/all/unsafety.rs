//! Where `unsafe` may stand.

use crate::tree::{Source, assert_none, files, has_word};

/// The only modules that may have any. A rival's call may be unsafe where it maps its file.
const ALLOWED: &[&str] = &[
    "crates/bench-compare/src/lmdb_pages.rs",
    "crates/disk/src/buffer.rs",
    "crates/disk/src/map.rs",
    "crates/disk/src/ring.rs",
    "crates/disk/src/sys.rs",
];

fn complaints(files: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let lines: Vec<_> = file.text.lines().collect();
        for (number, line) in file.code().filter(|(_, line)| has_word(line, "unsafe")) {
            let at = format!("{}:{number}", file.path);
            if !ALLOWED.contains(&file.path.as_str()) {
                complaints.push(format!("{at}: unsafe may stand only in {ALLOWED:?}"));
            } else if !line.contains("unsafe fn") && !has_reason(&lines[..number - 1]) {
                complaints.push(format!("{at}: no \"SAFETY:\" before it says why it is sound"));
            }
        }
    }
    complaints
}

/// Whether the comment directly above says why, looking over one line of the same statement.
fn has_reason(above: &[&str]) -> bool {
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    let skipped = usize::from(above.last().is_some_and(|line| !is_comment(line)));
    let comment = above.iter().rev().skip(skipped).copied().take_while(is_comment);
    comment.into_iter().any(|line| line.contains("SAFETY:"))
}

#[test]
fn unsafe_stands_only_where_it_is_expected_and_explained() {
    assert_none(&complaints(files()));
}

#[test]
fn an_unexpected_or_unexplained_unsafe_is_noticed() {
    let block = "// SAFETY: it is zero.\nunsafe { zero() }\n";
    let bare = "// It is zero.\nunsafe { zero() }\n";
    let allowed = ALLOWED[0];
    assert_eq!(complaints(&[Source::new("crates/file-store/src/lib.rs", block)]).len(), 1);
    assert_eq!(complaints(&[Source::new(allowed, bare)]).len(), 1);
    let fine = "// SAFETY: it is zero,\n// always.\nlet zero =\n    unsafe { zero() };\n";
    let speech = "// unsafe\n#![expect(unsafe_code)]\n";
    assert_none(&complaints(&[Source::new(allowed, fine), Source::new("a.rs", speech)]));
}
