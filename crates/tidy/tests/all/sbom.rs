//! Checks the list of linked libraries that a release contains, and their licenses.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::tree::{assert_none, root};

/// The licenses that libraries of the program may have. All of them permit any use, if the program
/// comes with their text.
const LICENSES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// `true` if the expression permits to select only licenses of [`LICENSES`].
fn is_permissive(expression: &str) -> bool {
    let is_listed = |license: &str| LICENSES.contains(&license.trim().trim_matches(['(', ')']));
    // No expression in use has an AND within parentheses beside an OR.
    expression.split(" OR ").any(|choice| choice.split(" AND ").all(is_listed))
        || expression.split(" AND ").all(|part| part.split(" OR ").any(is_listed))
}

fn list() -> Value {
    let output = Command::new(root().join("packaging/sbom")).arg("--offline").output();
    let output = output.expect("python3 runs packaging/sbom");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("the list is JSON")
}

#[test]
fn list_has_all_linked_libraries_with_permissive_licenses() {
    let list = list();
    assert_eq!((&list["bomFormat"], &list["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    assert_eq!(list["metadata"]["component"]["name"], "haul");
    let components = list["components"].as_array().expect("there are components");
    let names: BTreeSet<_> = components.iter().filter_map(|one| one["name"].as_str()).collect();
    for name in ["clap", "haul-disk", "haul-s3-server", "ring", "rustls", "s3s", "tokio"] {
        assert!(names.contains(name), "{name} is missing");
    }
    for name in ["cc", "clap_derive", "haul-bench", "haul-testing", "proptest", "tempfile"] {
        assert!(!names.contains(name), "{name} is not linked");
    }
    let complaint = |component: &Value| {
        let name = component["name"].as_str().unwrap_or_default();
        let license = component["licenses"][0]["expression"].as_str().unwrap_or_default();
        let is_own = name.starts_with("haul-");
        let has_checksum = component["hashes"][0]["content"].as_str().is_some();
        if !is_permissive(license) {
            return Some(format!("{name}: the license is {license:?}"));
        }
        (has_checksum == is_own).then(|| format!("{name}: has checksum: {has_checksum}"))
    };
    assert_none(&components.iter().filter_map(complaint).collect::<Vec<_>>());
    let known: BTreeSet<_> = components.iter().map(|one| one["bom-ref"].as_str()).collect();
    let edges = list["dependencies"].as_array().into_iter().flatten();
    let targets: Vec<_> =
        edges.flat_map(|edge| edge["dependsOn"].as_array().into_iter().flatten()).collect();
    assert!(targets.len() > components.len());
    assert!(targets.iter().all(|target| known.contains(&target.as_str())));
}

#[test]
fn other_licenses_are_refused() {
    for (expression, expected) in [
        ("MIT", true),
        ("MIT OR Apache-2.0", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("GPL-3.0 OR MIT", true),
        ("Apache-2.0 AND ISC", true),
        ("GPL-3.0", false),
        ("MIT AND MPL-2.0", false),
        ("", false),
    ] {
        assert_eq!(is_permissive(expression), expected, "{expression}");
    }
}
