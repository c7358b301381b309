//! Checks that only a few modules contain `unsafe`, and that each use states its reason.

use crate::tree::{Source, assert_none, files, has_word};

/// The only modules with `unsafe`. In the comparison of logs, opening LMDB is unsafe, because LMDB
/// maps its file into memory. Crash tests change settings of the heap.
const ALLOWED: &[&str] = &[
    "crates/bench-compare/src/lmdb_pages.rs",
    "crates/disk-sim/src/memory/heap.rs",
    "crates/disk/src/access/buffer.rs",
    "crates/disk/src/access/map.rs",
    "crates/disk/src/access/ring.rs",
    "crates/disk/src/sys.rs",
    "crates/md5-lanes/src/kernels.rs",
    "crates/md5-lanes/src/pending.rs",
];

fn violations(files: &[Source]) -> Vec<String> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let lines: Vec<_> = file.text.lines().collect();
        for (number, line) in file.code().filter(|(_, line)| has_word(line, "unsafe")) {
            let at = format!("{}:{number}", file.path);
            if !ALLOWED.contains(&file.path.as_str()) {
                violations.push(format!("{at}: unsafe is allowed only in {ALLOWED:?}"));
            } else if !line.contains("unsafe fn") && !has_safety_comment(&lines[..number - 1]) {
                violations.push(format!("{at}: unsafe without a preceding \"SAFETY:\" comment"));
            }
        }
    }
    violations
}

/// `true` if a comment with `SAFETY:` is directly above, or above the preceding line, which may
/// belong to the same statement.
fn has_safety_comment(above: &[&str]) -> bool {
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    let skipped = usize::from(above.last().is_some_and(|line| !is_comment(line)));
    let comment = above.iter().rev().skip(skipped).copied().take_while(is_comment);
    comment.into_iter().any(|line| line.contains("SAFETY:"))
}

#[test]
fn unsafe_is_in_allowed_modules_with_safety_comments() {
    assert_none(&violations(files()));
}

#[test]
fn unexpected_or_undocumented_unsafe_is_reported() {
    let block = "// SAFETY: it is zero.\nunsafe { zero() }\n";
    let undocumented = "// It is zero.\nunsafe { zero() }\n";
    let allowed = ALLOWED[0];
    assert_eq!(violations(&[Source::new("crates/file-store/src/lib.rs", block)]).len(), 1);
    assert_eq!(violations(&[Source::new(allowed, undocumented)]).len(), 1);
    let documented = "// SAFETY: it is zero,\n// always.\nlet zero =\n    unsafe { zero() };\n";
    let comment = "// unsafe\n#![expect(unsafe_code)]\n";
    assert_none(&violations(&[Source::new(allowed, documented), Source::new("a.rs", comment)]));
}
