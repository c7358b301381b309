//! Checks that each crate uses only crates of lower layers, which `ARCHITECTURE.md` shows, and only
//! libraries of other authors that decision 4 lists.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::tree::{assert_none, files, has_word, root};

/// The manifests of all workspaces. Crates with native dependencies have a separate workspace.
const WORKSPACES: &[&str] = &["Cargo.toml", "crates/bench-compare/Cargo.toml"];

/// Crates marked T in `ARCHITECTURE.md` that others may use in their tests.
const SUPPORT: &[&str] = &["disk-sim", "testing"];

/// Pairs of a crate and the test support that it may use in production: the bench measures with
/// test support, and the simulated disk uses loop devices and random numbers.
const SUPPORT_USERS: &[(&str, &str)] =
    &[("bench", "disk-sim"), ("bench", "testing"), ("disk-sim", "testing")];

/// Crates below the programs that may use an async runtime in production.
const ASYNC: &[&str] = &["s3-server", "replicate", "disk-sim"];

/// The level of each crate; `None` for those marked T.
type Layers<'a> = BTreeMap<&'a str, Option<u32>>;

/// A dependency that a manifest declares.
struct Dependency<'a> {
    from: &'a str,
    to: &'a str,
    is_dev: bool,
}

/// Reads the layers in the page: lines such as `L1   crc, md5-lanes     checksums`.
fn layers(page: &str) -> Layers<'_> {
    let block = page.split("\n## Layers\n").nth(1).and_then(|rest| rest.split("```").nth(1));
    let (mut layers, mut level) = (Layers::new(), None);
    for line in block.into_iter().flat_map(str::lines) {
        let Some((mark, names)) = line.split_at_checked(5) else { continue };
        if !mark.trim().is_empty() {
            level = mark.trim().strip_prefix('L').and_then(|number| number.parse().ok());
        }
        let names = names.split("  ").next().unwrap_or_default();
        layers.extend(names.split(", ").map(|name| (name.trim(), level)));
    }
    layers
}

/// Returns the reason why a crate may not use another one of this project.
fn violation(layers: &Layers<'_>, dependency: &Dependency<'_>) -> Option<String> {
    let Dependency { from, to, is_dev } = *dependency;
    let (Some(own), Some(other)) = (layers.get(from), layers.get(to)) else {
        return Some(format!("ARCHITECTURE.md does not show {from} or {to}"));
    };
    let reason = match (own, other) {
        _ if SUPPORT_USERS.contains(&(from, to)) => return None,
        // So that the tests of each crate can use it without a cycle.
        _ if from == "testing" => "its tests could then not use it",
        (None, Some(2..)) if from == "disk-sim" => "it is above level 1",
        (_, None) if from == "disk-sim" || !SUPPORT.contains(&to) => "it consists of tests",
        (Some(_), None) if !is_dev => "it is test support",
        (Some(own), Some(other)) if other >= own => "it is not on a lower level",
        _ => return None,
    };
    Some(format!("{from} may not use {to}: {reason}"))
}

pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

pub(crate) fn metadata(manifest: &str) -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .args(["--manifest-path", manifest])
        .current_dir(root())
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

/// Returns the name of a crate in `ARCHITECTURE.md`.
fn short(package: &str) -> &str {
    if package == "haul" { "cli" } else { package.trim_start_matches("haul-") }
}

#[test]
fn dependencies_go_to_lower_layers() {
    let page = |path: &str| files().iter().find(|file| file.path == path).map_or("", |it| &it.text);
    let layers = layers(page("ARCHITECTURE.md"));
    let libraries = page("docs/decisions/0004-dependencies.md");
    let mut violations = Vec::new();
    for workspace in WORKSPACES {
        for package in metadata(workspace)["packages"].as_array().into_iter().flatten() {
            let from = short(text(package, "name"));
            for dependency in package["dependencies"].as_array().into_iter().flatten() {
                let to = text(dependency, "name");
                let is_dev = text(dependency, "kind") == "dev";
                if !dependency["path"].is_null() {
                    let dependency = Dependency { from, to: short(to), is_dev };
                    violations.extend(violation(&layers, &dependency));
                } else if !has_word(libraries, to) {
                    violations.push(format!("decision 4 does not list {to}, which {from} uses"));
                }
                let is_low = layers.get(from).is_none_or(|level| level.is_some_and(|it| it < 6));
                if to == "tokio" && !is_dev && is_low && !ASYNC.contains(&from) {
                    violations.push(format!("{from} may not use an async runtime"));
                }
            }
        }
    }
    assert_none(&violations);
}

#[test]
fn wrong_dependency_is_reported() {
    let page = "\n## Layers\n\n```\nL6   cli       it\n     bench     it\n      ▼\nL2   log       it\n\
                L1   disk, crc  it\n\nT    disk-sim  it\n     testing   it\n     tidy, f  it\n```\n";
    let layers = layers(page);
    for (from, to, is_dev, expected) in [
        ("log", "disk", false, false),
        ("disk", "log", true, true),
        ("disk", "crc", false, true),
        ("disk", "testing", true, false),
        ("cli", "testing", false, true),
        ("bench", "testing", false, false),
        ("disk-sim", "crc", false, false),
        ("disk-sim", "log", false, true),
        ("testing", "disk", true, true),
        ("testing", "disk-sim", true, true),
        ("tidy", "cli", false, false),
        ("f", "disk-sim", false, false),
        ("cli", "tidy", true, true),
        ("new", "disk", false, true),
    ] {
        let found = violation(&layers, &Dependency { from, to, is_dev });
        assert_eq!(found.is_some(), expected, "{from} {to} {found:?}");
    }
}
