//! Checks that each crate uses only workspace crates of lower layers, and only the external crates
//! listed for it in this file.

use std::process::Command;

use serde_json::Value;

use crate::tree::{assert_none, root};

/// The layer of a crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    /// A level: the crate may use crates of lower levels.
    Level(u8),
    /// Test support: the crate may use crates of level 1. Only the crates in [`SUPPORT_USERS`] may
    /// use test support outside of dev-dependencies.
    Support,
    /// Only tests: the crate may use every crate, and no crate may use it.
    Tests,
}
use Layer::{Level, Support, Tests};

/// Each crate with its layer and its allowed external dependencies; after `|`, the external
/// dependencies allowed only in tests.
const LAYERS: &[(&str, Layer, &str)] = &[
    ("haul-sync", Level(0), "parking_lot rustix shuttle"),
    ("haul-units", Level(1), ""),
    ("haul-crc", Level(1), "crc-fast | proptest"),
    ("haul-md5-lanes", Level(1), "parking_lot | md-5 proptest"),
    ("haul-disk", Level(1), "io-uring libc rustix | proptest tempfile"),
    ("haul-append-log", Level(2), "lz4_flex rustix thiserror | proptest tempfile tokio"),
    (
        "haul-bulk-read",
        Level(2),
        "blake3 ignore md-5 parking_lot rustix sha1 sha2 sha3 thiserror xxhash-rust | proptest \
         tempfile",
    ),
    (
        "haul-line-log",
        Level(2),
        "memchr parking_lot rustix thiserror time zstd | proptest tempfile tracing \
         tracing-appender tracing-subscriber",
    ),
    ("haul-measure", Level(2), "hdrhistogram rustix thiserror | tempfile"),
    ("haul-pipe", Level(2), "parking_lot rustix thiserror | proptest tempfile"),
    ("haul-tls", Level(2), "parking_lot rustls rustls-webpki thiserror | rcgen tempfile"),
    ("haul-reactor", Level(1), "mio parking_lot rustix socket2 thiserror | tempfile"),
    ("haul-http1", Level(2), "httparse memchr thiserror time | proptest"),
    (
        "haul-http-engine",
        Level(3),
        "bytes http http-body parking_lot rustix time | http-body-util proptest serde_json tempfile",
    ),
    ("haul-admin-endpoint", Level(3), "rustix serde_json | tempfile"),
    (
        "haul-file-store",
        Level(3),
        "bytes form_urlencoded md-5 parking_lot rustix siphasher thiserror zstd | proptest tempfile",
    ),
    ("haul-tuning", Level(3), ""),
    ("haul-checksums", Level(3), "parking_lot | tempfile"),
    ("haul-page-cache", Level(3), "rustix serde_json | tempfile"),
    ("haul-sorted-write", Level(3), "parking_lot thiserror | proptest rustix tempfile"),
    (
        "haul-duplicates",
        Level(3),
        "fancy-regex parking_lot regex rustix serde_json thiserror time | proptest tempfile",
    ),
    (
        "haul-s3-server",
        Level(4),
        "arc-swap async-trait base64-simd bytes crc-fast form_urlencoded http-body-util hyper md-5 \
         memchr mime_guess parking_lot quick_cache ring rustix s3s serde_json socket2 thiserror time \
         tokio tracing | tempfile",
    ),
    (
        "haul-file-server",
        Level(4),
        "bytes memchr mime_guess parking_lot quick_cache rustix serde_json thiserror time \
         | proptest tempfile",
    ),
    (
        "haul-replicate",
        Level(4),
        "bytes futures-util object_store parking_lot reqwest rustix rustls thiserror tokio url \
         | async-trait proptest tempfile",
    ),
    ("haul-transfer", Level(4), "bytes parking_lot rustix thiserror walkdir | tempfile"),
    ("haul-tcp-relay", Level(4), "parking_lot rustix thiserror | proptest tempfile"),
    ("haul-cli-common", Level(5), "clap clap_complete clap_mangen indicatif rustix tokio"),
    (
        "haul-bench",
        Level(6),
        "bytes clap clap_complete http-body-util hyper quick_cache ring rustix rustls serde_json \
         time tokio wait4 | tempfile",
    ),
    (
        "haul",
        Level(6),
        "clap clap_complete indicatif parking_lot rustix serde_json tokio toml tracing \
         tracing-subscriber | tempfile",
    ),
    (
        "haul-bench-compare",
        Level(7),
        "clap fjall heed okaywal protobuf raft-engine rocksdb rusqlite rustix tokio walrus-rust \
         | tempfile",
    ),
    ("haul-disk-sim", Support, "clap fuser libc parking_lot rustix serde_json tempfile tokio"),
    ("haul-testing", Support, "rcgen rustix rustls tempfile"),
    (
        "haul-acceptance",
        Tests,
        "| futures-util object_store reqwest rustls serde_json tempfile tokio",
    ),
    ("haul-fuzz", Tests, "libfuzzer-sys object_store ring serde_json tempfile tokio toml"),
    ("haul-tidy", Tests, "| serde_json"),
];

/// Pairs of a crate and the test support that it may use in production: the bench measures with
/// test support, and the simulated disk uses loop devices and random numbers.
const SUPPORT_USERS: &[(&str, &str)] = &[
    ("haul-bench", "haul-disk-sim"),
    ("haul-bench", "haul-testing"),
    ("haul-disk-sim", "haul-testing"),
];

/// The crate that uses no other crate of the workspace, so that the tests of each crate can use it
/// without a cycle.
const TEST_HELPERS: &str = "haul-testing";

/// The manifests of all workspaces. Crates with native dependencies have a separate workspace.
const WORKSPACES: &[&str] = &["Cargo.toml", "crates/bench-compare/Cargo.toml"];

/// A dependency declared in a manifest.
#[derive(Debug)]
struct Dependency<'a> {
    from: &'a str,
    to: &'a str,
    is_external: bool,
    is_dev: bool,
}

fn layer(name: &str) -> Option<Layer> {
    LAYERS.iter().find(|row| row.0 == name).map(|row| row.1)
}

fn violation(dependency: &Dependency<'_>) -> Option<String> {
    let Dependency { from, to, is_external, is_dev } = *dependency;
    let Some(row) = LAYERS.iter().find(|row| row.0 == from) else {
        return Some(format!("{from} has no row in LAYERS of dependencies.rs"));
    };
    if is_external {
        let (always, in_tests) = row.2.split_once('|').unwrap_or((row.2, ""));
        let has = |names: &str| names.split_whitespace().any(|name| name == to);
        let allowed = has(always) || is_dev && has(in_tests);
        return (!allowed)
            .then(|| format!("{from} uses {to}, which its row in LAYERS does not allow"));
    }
    if SUPPORT_USERS.contains(&(from, to)) {
        return None;
    }
    let reason = match (row.1, layer(to)?) {
        (_, Tests) => "which consists only of tests",
        (Tests, _) => return None,
        _ if from == TEST_HELPERS => "which could then not use it in its tests",
        (_, Support) if !is_dev => "which is test support, outside of dev-dependencies",
        (Support, Support | Level(2..)) => "which test support may not use",
        (Level(from), Level(to)) if to >= from => "which is not on a lower level",
        _ => return None,
    };
    Some(format!("{from} uses {to}, {reason}"))
}

pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn dependencies_of(package: &Value) -> impl Iterator<Item = Dependency<'_>> {
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies.map(|dependency| Dependency {
        from: text(package, "name"),
        to: text(dependency, "name"),
        is_external: dependency["path"].is_null(),
        is_dev: text(dependency, "kind") == "dev",
    })
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

#[test]
fn dependencies_go_to_lower_layers() {
    let all: Vec<_> = WORKSPACES.iter().map(|manifest| metadata(manifest)).collect();
    let packages: Vec<_> = all
        .iter()
        .flat_map(|workspace| workspace["packages"].as_array().into_iter().flatten())
        .collect();
    let mut violations: Vec<_> = packages
        .iter()
        .copied()
        .flat_map(dependencies_of)
        .filter_map(|dependency| violation(&dependency))
        .collect();
    let names: Vec<_> = packages.iter().map(|package| text(package, "name")).collect();
    let no_row = |name: &&&str| layer(name).is_none();
    assert!(names.contains(&"haul") && names.contains(&"haul-bench-compare"), "{names:?}");
    violations.extend(names.iter().filter(no_row).map(|name| format!("{name} has no row")));
    assert_none(&violations);
}

#[test]
fn wrong_dependency_is_reported() {
    let wrong = |from, to, is_external, is_dev| {
        violation(&Dependency { from, to, is_external, is_dev }).is_some()
    };
    assert!(wrong("haul-disk", "haul-append-log", false, false), "upward");
    assert!(wrong("haul-disk", "haul-append-log", false, true), "upward, for tests");
    assert!(wrong("haul-disk", "haul-disk", false, false), "same level");
    assert!(wrong("haul-disk", "haul-testing", false, false), "test support in production");
    assert!(wrong("haul-disk-sim", "haul-file-store", false, false), "test support above level 1");
    assert!(wrong("haul-testing", "haul-disk", false, false), "test helpers above a crate");
    assert!(wrong("haul", "haul-tidy", false, true), "tests");
    assert!(wrong("haul-disk", "tokio", true, false), "an external crate");
    assert!(wrong("haul-disk", "tempfile", true, false), "a dev-dependency in production");
    assert!(wrong("a-new-crate", "haul-disk", false, false), "a crate without a row");

    assert!(!wrong("haul-append-log", "haul-disk", false, false));
    assert!(!wrong("haul-disk", "haul-testing", false, true));
    assert!(!wrong("haul", "clap", true, false));
    assert!(!wrong("haul-bench", "haul-testing", false, false), "the bench may");
    assert!(wrong("haul-file-store", "haul-disk-sim", false, false), "the store may not");
    assert!(wrong("haul-testing", "haul-disk-sim", false, true), "test support among itself");
    assert!(wrong("haul", "haul-testing", false, false), "test support in the program");
    assert!(!wrong("haul-fuzz", "haul-disk-sim", false, false), "a crate of tests");
}
