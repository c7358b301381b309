//! Executes the page for operators from top to bottom, on a machine that boots a fresh Debian.

mod disk;
mod install;
mod operator;
mod restore;
mod runbook;
mod services;

use super::block::Block;
use super::section;
use operator::Operator;

const PAGE: &str = "docs/operations.md";

/// Executes the blocks of a section, after it has produced the situation of the section.
type Run = fn(&Operator, Vec<Block>);

/// The sections with blocks, in the order of the page.
const SECTIONS: [(&str, Run); 15] = [
    ("Debian package", install::debian_package),
    ("Container", install::container),
    ("Kubernetes", install::kubernetes),
    ("Services", services::services),
    ("Configuration", services::configuration),
    ("Upgrade and remove", install::upgrade_and_remove),
    ("Check a machine", services::check_machine),
    ("The disk is full", runbook::full_disk),
    ("The disk refuses files", runbook::refused_files),
    ("A quota is used up", runbook::quota),
    ("Events are not delivered", runbook::events),
    ("Damage is reported", runbook::damage),
    ("Syncs are slow", disk::slow_syncs),
    ("A failed sync", disk::failed_sync),
    ("Restore from a copy", restore::restore),
];

/// Returns the headings of the sections that are executed.
pub(super) fn sections() -> Vec<&'static str> {
    SECTIONS.iter().map(|(heading, _)| *heading).collect()
}

#[test]
fn operator_follows_the_page() {
    let Some(operator) = Operator::new() else { return };
    for (heading, run) in SECTIONS {
        println!("\n# {heading}");
        run(&operator, section(PAGE, heading));
    }
}
