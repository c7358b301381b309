//! Checks that each published crate has the metadata that a registry shows, and a readme that shows
//! the crate's example. `.ci/run package` checks the files of the packages.

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

/// Returns the problems of a published package. `read` reads a file of its folder.
fn problems(package: &Value, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut problems = Vec::new();
    let name = text(package, "name");
    for field in ["description", "license", "repository", "readme", "rust_version"] {
        if text(package, field).is_empty() {
            problems.push(format!("{name} has no {field}"));
        }
    }
    for list in ["keywords", "categories"] {
        if !package[list].as_array().is_some_and(|list| (1..=5).contains(&list.len())) {
            problems.push(format!("{name} must have one to five {list}"));
        }
    }
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
fn published_crates_have_what_their_packages_need() {
    let metadata = metadata("Cargo.toml");
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let published: Vec<_> = packages.filter(|package| package["publish"].is_null()).collect();
    assert!(published.len() > 20, "{}", published.len());
    let problems = |package: &&Value| {
        let folder = root().join(text(package, "manifest_path").trim_end_matches("Cargo.toml"));
        problems(package, |path| std::fs::read_to_string(folder.join(path)).ok())
    };
    assert_none(&published.iter().flat_map(problems).collect::<Vec<_>>());
}

#[test]
fn packages_that_lack_something_are_reported() {
    let package = serde_json::json!({
        "name": "haul-a", "description": "d", "license": "MIT", "repository": "r",
        "readme": "README.md", "rust_version": "1.95", "keywords": ["storage"],
        "categories": ["filesystem"],
    });
    let example = "//! Does it.\n#![expect(x, reason = \"y\")]\n\nuse a::b;\n\nf();\n";
    assert_eq!(shown(example), "use a::b;\n\nf();\n");
    let readme = "# haul-a\n\n```rust\nuse a::b;\n\nf();\n```\n\n## Promises\n";
    let count = |package: &Value, readme: &str, example: &str| {
        let read = |path: &str| Some(if path == "README.md" { readme } else { example }.to_owned());
        problems(package, read).len()
    };
    assert_eq!(count(&package, readme, example), 0);
    assert_eq!(count(&package, readme, &example.replace("f()", "g()")), 1);
    assert_eq!(count(&package, &readme.replace("Promises", "More"), example), 1);
    assert_eq!(count(&package, "# haul-b\n", ""), 3);
    let mut bare = package.clone();
    for field in ["description", "repository", "keywords", "categories"] {
        bare[field] = Value::Null;
    }
    assert_eq!(count(&bare, readme, example), 4);
}
