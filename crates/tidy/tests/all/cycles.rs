//! Checks that the imports between the files of a crate form no cycles.

use std::collections::BTreeSet;

use crate::imports::Crate;
use crate::tree::{Source, assert_none, files};

/// Crates that have import cycles, with the number of files on cycles in each. The numbers may only
/// decrease.
const KNOTS: &[(&str, usize)] = &[("crates/file-server/src/", 14)];

/// Returns the folders of libraries and programs: `crates/disk/src/`, `crates/bench/src/bin/x/`.
fn roots(files: &[Source]) -> BTreeSet<String> {
    let root = |file: &Source| {
        let (folder, below) = file.path.split_once("/src/")?;
        let program = below.strip_prefix("bin/").and_then(|below| below.split_once('/'));
        Some(match program {
            Some((program, _)) => format!("{folder}/src/bin/{program}/"),
            None => format!("{folder}/src/"),
        })
    };
    files.iter().filter(|file| file.is_production()).filter_map(root).collect()
}

#[test]
fn imports_form_no_cycles() {
    let mut complaints = Vec::new();
    for root in roots(files()) {
        let is_own = |file: &&Source| {
            file.is_production()
                && file.path.starts_with(&root)
                && (root.contains("/bin/") || !file.path[root.len()..].starts_with("bin/"))
        };
        let graph = Crate::new(&root, files().iter().filter(is_own));
        let found = graph.files_on_cycles();
        let allowed = KNOTS.iter().find(|(knot, _)| *knot == root).map_or(0, |(_, files)| *files);
        if found.len() > allowed {
            let short = |file: &str| file.trim_start_matches(&root).to_owned();
            let edges = graph.edges();
            let arrow = |file: &&str| {
                let to: Vec<_> = edges[*file].intersection(&found).map(|to| short(to)).collect();
                format!("  {} -> {}", short(file), to.join(" "))
            };
            complaints.push(format!(
                "{root}: {} files on import cycles, {allowed} allowed\n{}",
                found.len(),
                found.iter().map(arrow).collect::<Vec<_>>().join("\n")
            ));
        } else if found.len() < allowed {
            complaints
                .push(format!("{root}: only {} files on cycles: lower its number", found.len()));
        }
    }
    assert_none(&complaints);
}
