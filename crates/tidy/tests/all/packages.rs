//! Checks that each published crate has the metadata, the licences, the readme and the example that
//! belong into its package, and that the readme shows the example.

use serde_json::Value;

use crate::dependencies::{metadata, text};
use crate::tree::{assert_none, root};

/// The categories that the crates use. A package with another one might be refused: the registry of
/// packages has a fixed list.
const CATEGORIES: &[&str] = &[
    "algorithms",
    "command-line-interface",
    "command-line-utilities",
    "database-implementations",
    "filesystem",
    "hardware-support",
    "network-programming",
    "os::linux-apis",
    "parser-implementations",
    "value-formatting",
    "web-programming",
    "web-programming::http-server",
];

/// The maximum number of lines of code of an example, without `use` declarations.
const EXAMPLE_LINES_MAX: usize = 40;

/// Each readme has one of these sections.
const SECTIONS: [&str; 2] = ["\n## Durability\n", "\n## Promises\n"];

/// Returns the code of an example as a readme shows it: without the comment and the attributes at
/// the beginning.
fn shown(example: &str) -> &str {
    let is_head = |line: &str| line.starts_with("//!") || line.starts_with("#![");
    let mut rest = example;
    while let Some((line, after)) = rest.split_once('\n') {
        if !is_head(line) && !line.is_empty() {
            break;
        }
        rest = after;
    }
    rest
}

/// Counts the lines of code of an example, without `use` declarations.
fn code_lines(example: &str) -> usize {
    let mut in_use = false;
    let is_code = |line: &&str| {
        in_use |= line.starts_with("use ");
        let is_counted = !in_use && !line.trim().is_empty() && !line.trim().starts_with("//");
        in_use &= !line.ends_with(';');
        is_counted
    };
    shown(example).lines().filter(is_code).count()
}

/// Returns the problems of the readme and the example of a library.
fn page_problems(readme: &str, example: Option<&str>) -> Vec<String> {
    let mut problems = Vec::new();
    if !SECTIONS.iter().any(|section| readme.contains(section)) {
        problems.push("the readme has no section \"Durability\" or \"Promises\"".to_owned());
    }
    let Some(example) = example else {
        problems.push("it has no example with the name of its folder".to_owned());
        return problems;
    };
    if !readme.contains(&format!("\n```rust\n{}```\n", shown(example))) {
        problems.push("the readme does not show the example as it is".to_owned());
    }
    let lines = code_lines(example);
    if lines > EXAMPLE_LINES_MAX {
        problems.push(format!("{lines} lines of code in the example exceed {EXAMPLE_LINES_MAX}"));
    }
    problems
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn is_published(package: &Value) -> bool {
    package["publish"].is_null()
}

/// Returns the problems of the metadata of a published package.
fn metadata_problems(package: &Value, all: &[&Value]) -> Vec<String> {
    let mut problems = Vec::new();
    for field in ["description", "license", "repository", "readme", "rust_version"] {
        if text(package, field).is_empty() {
            problems.push(format!("it has no {field}"));
        }
    }
    let keywords = strings(&package["keywords"]);
    let is_valid = |word: &&str| {
        word.len() <= 20 && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    if keywords.is_empty() || keywords.len() > 5 || !keywords.iter().all(is_valid) {
        problems.push(format!("its keywords must be one to five words: {keywords:?}"));
    }
    let categories = strings(&package["categories"]);
    if categories.is_empty() || !categories.iter().all(|slug| CATEGORIES.contains(slug)) {
        problems.push(format!("its categories must be listed in packages.rs: {categories:?}"));
    }
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let name = text(dependency, "name");
        let Some(other) = all.iter().find(|other| text(other, "name") == name) else { continue };
        let is_dev = text(dependency, "kind") == "dev";
        let required = format!("^{}", text(other, "version"));
        match (is_published(other), text(dependency, "req")) {
            (true, req) if req != required => {
                problems.push(format!("it requires {name} {req} instead of {required}"));
            }
            (false, _) if !is_dev => problems.push(format!("it needs {name}, not published")),
            (false, req) if req != "*" => {
                problems.push(format!("its dev-dependency {name}, not published, has a version"));
            }
            _ => {}
        }
    }
    problems
}

/// Returns the problems of a published package. `read` reads a file of its folder.
fn problems(package: &Value, all: &[&Value], read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut problems = metadata_problems(package, all);
    let name = text(package, "name");
    for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
        if read(license).is_none() || read(license) != read(&format!("../../{license}")) {
            problems.push(format!("it has no link to {license}"));
        }
    }
    let readme = read("README.md").unwrap_or_default();
    if !readme.starts_with(&format!("# {name}\n")) {
        problems.push("its README.md must begin with its name".to_owned());
    }
    if let Some(folder) = name.strip_prefix("haul-") {
        let example = read(&format!("examples/{}.rs", folder.replace('-', "_")));
        problems.extend(page_problems(&readme, example.as_deref()));
    }
    problems.iter().map(|problem| format!("{name}: {problem}")).collect()
}

#[test]
fn published_crates_have_what_their_packages_need() {
    let metadata = metadata("Cargo.toml");
    let all: Vec<_> = metadata["packages"].as_array().into_iter().flatten().collect();
    let published: Vec<_> = all.iter().filter(|package| is_published(package)).collect();
    assert!(published.len() > 20, "{}", published.len());
    let mut found = Vec::new();
    for package in published {
        let folder = root().join(text(package, "manifest_path").trim_end_matches("Cargo.toml"));
        let read = |path: &str| std::fs::read_to_string(folder.join(path)).ok();
        found.extend(problems(package, &all, read));
    }
    assert_none(&found);
}

#[test]
fn packages_that_lack_something_are_reported() {
    let dependency = |name: &str, req: &str, kind: Option<&str>| -> Value {
        serde_json::json!({ "name": name, "req": req, "kind": kind })
    };
    let package = |dependencies: Vec<Value>| -> Value {
        serde_json::json!({
            "name": "haul-a", "version": "1.2.3", "description": "d", "license": "MIT",
            "repository": "r", "readme": "README.md", "rust_version": "1.95", "publish": null,
            "keywords": ["storage"], "categories": ["filesystem"], "dependencies": dependencies,
        })
    };
    let internal = serde_json::json!({ "name": "haul-t", "version": "1.2.3", "publish": [] });
    let example = "//! Does it.\n#![expect(x, reason = \"y\")]\n\nuse a::{\n    b,\n};\n\nf();\n";
    assert_eq!((shown(example), code_lines(example)), ("use a::{\n    b,\n};\n\nf();\n", 1));
    let readme = format!("# haul-a\n\n```rust\n{}```\n\n## Promises\n", shown(example));
    let count = |package: &Value, readme: &str, example: &str| {
        let read = |path: &str| match path {
            "README.md" => Some(readme.to_owned()),
            "examples/a.rs" => Some(example.to_owned()),
            _ => Some("license".to_owned()),
        };
        problems(package, &[package, &internal], read).len()
    };
    let right = package(vec![
        dependency("haul-a", "^1.2.3", None),
        dependency("haul-t", "*", Some("dev")),
        dependency("other", "^1", None),
    ]);
    assert_eq!(count(&right, &readme, example), 0);
    assert_eq!(count(&right, &readme, &example.replace("f()", "g()")), 1);
    assert_eq!(count(&right, &readme.replace("Promises", "More"), example), 1);
    assert_eq!(page_problems(&readme, None).len(), 1);
    let long = "f();\n".repeat(EXAMPLE_LINES_MAX + 1);
    let readme_of_long = format!("# haul-a\n\n```rust\n{long}```\n\n## Durability\n");
    assert_eq!(count(&right, &readme_of_long, &long), 1);
    for wrong in [
        dependency("haul-a", "*", None),
        dependency("haul-t", "*", None),
        dependency("haul-t", "^1.2.3", Some("dev")),
    ] {
        assert_eq!(count(&package(vec![wrong]), &readme, example), 1);
    }
    let mut bare = right.clone();
    for field in ["description", "repository", "keywords", "categories"] {
        bare[field] = Value::Null;
    }
    assert_eq!(count(&bare, &readme, example), 4);
}

/// Returns the names in backticks in the section "Releases" after the words that introduce the
/// order of publishing.
fn publishing_order(page: &str) -> Vec<String> {
    let text = page.split("in the order of the layers").nth(1).unwrap_or_default();
    let names = text.split("If it stops").next().unwrap_or_default().split('`');
    let full = |name: &str| if name == "haul" { name.to_owned() } else { format!("haul-{name}") };
    names.skip(1).step_by(2).map(full).collect()
}

#[test]
fn publishing_order_has_each_crate_after_those_that_it_needs() {
    let page = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let order = publishing_order(&page);
    let place = |name: &str| order.iter().position(|other| other == name);
    let metadata = metadata("Cargo.toml");
    let all = metadata["packages"].as_array().into_iter().flatten();
    let mut found = Vec::new();
    for package in all.filter(|package| is_published(package)) {
        let name = text(package, "name");
        let Some(own) = place(name) else {
            found.push(format!("{name} is missing in the order of publishing"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let needed = text(dependency, "name");
            if !dependency["path"].is_null() && place(needed).is_some_and(|other| other >= own) {
                found.push(format!("{name} needs {needed}, which is published after it"));
            }
        }
    }
    assert_none(&found);
}
