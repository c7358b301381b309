//! Checks that the readme of each published crate shows the crate's example. `.ci/run package` checks
//! the files of the packages.

use serde_json::Value;

use crate::dependencies::{metadata, text};
use crate::tree::{assert_none, root};

/// Each readme has one of these sections.
const SECTIONS: [&str; 2] = ["\n## Durability\n", "\n## Promises\n"];

/// Returns the code of an example as a readme shows it: without the comment and the attributes at
/// the beginning.
fn shown(example: &str) -> &str {
    let is_head =
        |line: &str| line.is_empty() || line.starts_with("//!") || line.starts_with("#![");
    let mut rest = example;
    while let Some((_, after)) = rest.split_once('\n').filter(|(line, _)| is_head(line)) {
        rest = after;
    }
    rest
}

/// Returns the problems of the readme of a crate. `read` reads a file of its folder.
fn problems(name: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut problems = Vec::new();
    let readme = read("README.md").unwrap_or_default();
    if !readme.starts_with(&format!("# {name}\n")) {
        problems.push(format!("{name}: README.md must begin with the name"));
    }
    if let Some(folder) = name.strip_prefix("haul-") {
        if !SECTIONS.iter().any(|section| readme.contains(section)) {
            problems
                .push(format!("{name}: README.md has no section \"Durability\" or \"Promises\""));
        }
        let path = format!("examples/{}.rs", folder.replace('-', "_"));
        let example = read(&path).unwrap_or_default();
        if example.is_empty() || !readme.contains(&format!("\n```rust\n{}```\n", shown(&example))) {
            problems.push(format!("{name}: README.md does not show {path}"));
        }
    }
    problems
}

#[test]
fn readmes_show_examples_and_promises() {
    let metadata = metadata("Cargo.toml");
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let published: Vec<_> = packages.filter(|package| package["publish"].is_null()).collect();
    assert!(published.len() > 20, "{}", published.len());
    let problems = |package: &&Value| {
        let folder = root().join(text(package, "manifest_path").trim_end_matches("Cargo.toml"));
        problems(text(package, "name"), |path| std::fs::read_to_string(folder.join(path)).ok())
    };
    assert_none(&published.iter().flat_map(problems).collect::<Vec<_>>());
}

#[test]
fn readmes_that_lack_something_are_reported() {
    let example = "//! Does it.\n#![expect(x, reason = \"y\")]\n\nuse a::b;\n\nf();\n";
    let readme = "# haul-a\n\n```rust\nuse a::b;\n\nf();\n```\n\n## Promises\n";
    for (readme, example, expected) in [
        (readme, example, 0),
        (readme, &*example.replace("f()", "g()"), 1),
        (&readme.replace("Promises", "More"), example, 1),
        ("# haul-b\n", "", 3),
    ] {
        let read = |path: &str| Some(if path == "README.md" { readme } else { example }.to_owned());
        assert_eq!(problems("haul-a", read).len(), expected, "{readme}");
    }
}
