//! Checks that the program `haul` links no simulator, no test helper and no benchmark.

use std::collections::BTreeSet;
use std::process::Command;

use crate::tree::root;

/// Packages the program `haul` must not link.
const WORKSHOP: &[&str] = &["haul-bench", "haul-disk-sim", "haul-testing", "fuser", "wait4"];

/// The maximum number of packages from outside this workspace that the program may link. The number
/// only grows for a dependency that a page of `docs/decisions` defends, such as rustls with its
/// cryptography and the parser of configuration files in decision 4, and the clients of object stores
/// in decision 14.
const OUTSIDE_MAX: usize = 237;

#[test]
fn the_product_links_no_workshop() {
    let args = ["tree", "--package", "haul", "--edges", "normal,build", "--prefix", "none"];
    let output = Command::new(env!("CARGO")).args(args).current_dir(root()).output();
    let output = output.expect("cargo lists dependencies");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let list = String::from_utf8(output.stdout).expect("names are plain");
    let packages: BTreeSet<_> =
        list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let linked: Vec<_> = WORKSHOP.iter().filter(|name| packages.contains(**name)).collect();
    assert!(linked.is_empty(), "haul links {linked:?}");
    let is_outside = |name: &&&str| **name != "haul" && !name.starts_with("haul-");
    let outside = packages.iter().filter(is_outside).count();
    assert!(outside <= OUTSIDE_MAX, "haul links {outside} packages of other authors");
}
