//! Which crate may use which: every arrow goes strictly downward.

use std::process::Command;

use serde_json::Value;

use crate::tree::{assert_none, root};

/// Where in the house a crate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// On a floor: it may use crates of lower floors.
    Floor(u8),
    /// A helper of tests: it is only ever a dev-dependency (but of the bench), and may use the
    /// ground floor.
    Support,
    /// Tests alone: they may use everything, and nothing may use them.
    Tests,
}
use Place::{Floor, Support, Tests};

/// (crate, where it stands, the outside crates it may use; after the bar: for its tests).
const HOUSE: &[(&str, Place, &str)] = &[
    ("haul-disk", Floor(1), "io-uring libc rustix | proptest tempfile"),
    ("haul-append-log", Floor(2), "crc32c parking_lot rustix thiserror | proptest tempfile tokio"),
    (
        "haul-bulk-read",
        Floor(2),
        "blake3 ignore md-5 parking_lot rustix sha2 sha3 thiserror xxhash-rust | proptest tempfile",
    ),
    (
        "haul-line-log",
        Floor(2),
        "memchr parking_lot rustix thiserror | proptest tempfile tracing tracing-appender \
         tracing-subscriber",
    ),
    ("haul-pipe", Floor(2), "parking_lot rustix thiserror | proptest tempfile"),
    ("haul-reactor", Floor(2), "mio rustix socket2 thiserror | tempfile"),
    ("haul-http1", Floor(2), "httparse httpdate memchr thiserror | proptest"),
    ("haul-admin-endpoint", Floor(3), "| tempfile"),
    (
        "haul-file-store",
        Floor(3),
        "bytes crc32c md-5 parking_lot rustix thiserror | proptest tempfile",
    ),
    ("haul-sorted-write", Floor(3), "parking_lot thiserror | proptest rustix tempfile"),
    (
        "haul-duplicates",
        Floor(3),
        "fancy-regex parking_lot regex rustix serde_json thiserror time | proptest tempfile",
    ),
    (
        "haul-s3-server",
        Floor(4),
        "async-trait base64-simd bytes crc-fast form_urlencoded http-body-util hyper hyper-util \
         md-5 mime_guess rustix s3s serde_json socket2 thiserror tokio tracing | tempfile",
    ),
    (
        "haul-file-server",
        Floor(4),
        "memchr mime_guess parking_lot quick_cache rustix serde_json thiserror | proptest tempfile",
    ),
    ("haul-tcp-relay", Floor(4), "crc32c parking_lot rustix thiserror | proptest tempfile"),
    (
        "haul-bench",
        Floor(5),
        "hdrhistogram quick_cache rustix serde_json thiserror wait4 | tempfile",
    ),
    (
        "haul",
        Floor(6),
        "clap clap_complete clap_mangen indicatif memchr parking_lot rustix serde_json tokio tracing \
         tracing-subscriber walkdir | tempfile",
    ),
    (
        "haul-bench-compare",
        Floor(6),
        "clap heed okaywal protobuf raft-engine rocksdb rusqlite rustix tokio walrus-rust | tempfile",
    ),
    ("haul-disk-sim", Support, "clap fuser parking_lot rustix serde_json tempfile tokio"),
    ("haul-test-image", Support, "rustix tempfile"),
    ("haul-acceptance", Tests, "| tempfile"),
    ("haul-tidy", Tests, "| serde_json"),
];

/// Who may use which helper of tests in production: the bench measures on them, and the spinning
/// disk is one file system on another.
const HELPED: &[(&str, &str)] = &[
    ("haul-bench", "haul-disk-sim"),
    ("haul-bench", "haul-test-image"),
    ("haul-disk-sim", "haul-test-image"),
];

/// All manifests of workspaces: what brings native code stands apart.
const WORKSPACES: &[&str] = &["Cargo.toml", "crates/bench-compare/Cargo.toml"];

/// One dependency, as a manifest declares it.
#[derive(Debug)]
struct Arrow<'a> {
    from: &'a str,
    to: &'a str,
    is_outside: bool,
    is_dev: bool,
}

fn place(name: &str) -> Option<Place> {
    HOUSE.iter().find(|row| row.0 == name).map(|row| row.1)
}

fn complaint(arrow: &Arrow<'_>) -> Option<String> {
    let Arrow { from, to, is_outside, is_dev } = *arrow;
    let Some(row) = HOUSE.iter().find(|row| row.0 == from) else {
        return Some(format!("{from} has no row in the table of arrows.rs"));
    };
    if is_outside {
        let (always, in_tests) = row.2.split_once('|').unwrap_or((row.2, ""));
        let has = |names: &str| names.split_whitespace().any(|name| name == to);
        let allowed = has(always) || is_dev && has(in_tests);
        return (!allowed).then(|| format!("{from} uses {to}, which its row does not allow"));
    }
    if HELPED.contains(&(from, to)) {
        return None;
    }
    let why = match (row.1, place(to)?) {
        (_, Tests) => "which is tests alone",
        (_, Support) if !is_dev => "which is only for tests, outside of its dev-dependencies",
        (Support, Support | Floor(2..)) => "which a helper of tests may not",
        (Floor(from), Floor(to)) if to >= from => "which is not on a lower floor",
        _ => return None,
    };
    Some(format!("{from} uses {to}, {why}"))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn arrows_of(package: &Value) -> impl Iterator<Item = Arrow<'_>> {
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies.map(|dependency| Arrow {
        from: text(package, "name"),
        to: text(dependency, "name"),
        is_outside: dependency["path"].is_null(),
        is_dev: text(dependency, "kind") == "dev",
    })
}

fn metadata(manifest: &str) -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .args(["--manifest-path", manifest])
        .current_dir(root())
        .output()
        .expect("cargo tells the packages");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo speaks JSON")
}

#[test]
fn every_arrow_goes_to_a_lower_floor() {
    let all: Vec<_> = WORKSPACES.iter().map(|manifest| metadata(manifest)).collect();
    let packages: Vec<_> =
        all.iter().flat_map(|one| one["packages"].as_array().into_iter().flatten()).collect();
    let mut complaints: Vec<_> = packages
        .iter()
        .copied()
        .flat_map(arrows_of)
        .filter_map(|arrow| complaint(&arrow))
        .collect();
    let names: Vec<_> = packages.iter().map(|package| text(package, "name")).collect();
    let no_row = |name: &&&str| place(name).is_none();
    assert!(names.contains(&"haul") && names.contains(&"haul-bench-compare"), "{names:?}");
    complaints.extend(names.iter().filter(no_row).map(|name| format!("{name} has no row")));
    assert_none(&complaints);
}

#[test]
fn a_wrong_arrow_is_noticed() {
    let wrong =
        |from, to, is_outside, is_dev| complaint(&Arrow { from, to, is_outside, is_dev }).is_some();
    assert!(wrong("haul-disk", "haul-append-log", false, false), "upward");
    assert!(wrong("haul-disk", "haul-append-log", false, true), "upward, for tests");
    assert!(wrong("haul-disk", "haul-disk", false, false), "level");
    assert!(wrong("haul-disk", "haul-test-image", false, false), "test help in production");
    assert!(wrong("haul-test-image", "haul-file-store", false, false), "test help too high");
    assert!(wrong("haul", "haul-tidy", false, true), "tests");
    assert!(wrong("haul-disk", "tokio", true, false), "an outside crate");
    assert!(wrong("haul-disk", "tempfile", true, false), "one for tests in production");
    assert!(wrong("a-new-crate", "haul-disk", false, false), "a crate without a row");

    assert!(!wrong("haul-append-log", "haul-disk", false, false));
    assert!(!wrong("haul-disk", "haul-test-image", false, true));
    assert!(!wrong("haul", "clap", true, false));
    assert!(!wrong("haul-bench", "haul-test-image", false, false), "the bench may");
    assert!(wrong("haul-file-store", "haul-disk-sim", false, false), "the store may not");
    assert!(wrong("haul-test-image", "haul-disk-sim", false, true), "helpers stand side by side");
    assert!(wrong("haul", "haul-test-image", false, false), "test help in the program");
}
