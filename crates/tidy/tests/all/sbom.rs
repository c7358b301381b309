//! Checks the list of linked libraries that a release contains. `deny.toml` has the licenses that
//! are allowed.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::tree::{assert_none, root};

/// The maximum number of packages of other authors that the program may link. The number only grows
/// for a dependency that a page of `docs/decisions` defends.
const OUTSIDE_MAX: usize = 255;

/// Libraries for benchmarks, tests and builds.
const WORKSHOP: &[&str] =
    &["cc", "clap_derive", "fuser", "haul-bench", "haul-disk-sim", "haul-testing", "proptest"];

#[test]
fn list_has_all_linked_libraries_and_no_workshop() {
    let output = Command::new(root().join("packaging/sbom")).arg("--offline").output();
    let output = output.expect("python3 runs packaging/sbom");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let list: Value = serde_json::from_slice(&output.stdout).expect("the list is JSON");
    assert_eq!((&list["bomFormat"], &list["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    assert_eq!(list["metadata"]["component"]["name"], "haul");
    let components = list["components"].as_array().expect("there are components");
    let name = |component: &Value| component["name"].as_str().unwrap_or_default().to_owned();
    let names: BTreeSet<_> = components.iter().map(name).collect();
    for name in ["clap", "haul-disk", "haul-s3-server", "ring", "rustls", "quick-xml", "tokio"] {
        assert!(names.contains(name), "{name} is missing");
    }
    let workshop: Vec<_> = WORKSHOP.iter().filter(|name| names.contains(**name)).collect();
    assert!(workshop.is_empty(), "haul links {workshop:?}");
    let outside = names.iter().filter(|name| !name.starts_with("haul-")).count();
    assert!(outside <= OUTSIDE_MAX, "haul links {outside} packages of other authors");
    let complaint = |component: &Value| {
        let name = name(component);
        let has_license = component["licenses"][0]["expression"].is_string();
        let has_checksum = component["hashes"][0]["content"].is_string();
        let is_right = has_license && has_checksum != name.starts_with("haul-");
        (!is_right).then(|| format!("{name}: license: {has_license}, checksum: {has_checksum}"))
    };
    assert_none(&components.iter().filter_map(complaint).collect::<Vec<_>>());
    let known: BTreeSet<_> = components.iter().map(|one| one["bom-ref"].as_str()).collect();
    let edges = list["dependencies"].as_array().into_iter().flatten();
    let targets: Vec<_> =
        edges.flat_map(|edge| edge["dependsOn"].as_array().into_iter().flatten()).collect();
    assert!(targets.len() > components.len());
    assert!(targets.iter().all(|target| known.contains(&target.as_str())));
}
