//! Compares the places that break a rule with the crates that may break the rule.

use std::collections::BTreeSet;

/// The folder of a crate that may do what a rule forbids, and the reason.
pub(crate) type Exception = (&'static str, &'static str);

/// A place in the code that does what a rule forbids, and the folder of its crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    pub(crate) folder: String,
    pub(crate) place: String,
}

/// Returns a message for each use in a crate without an exception, and for each exception that is
/// not needed or has no reason.
pub(crate) fn violations(
    rule: &str,
    uses: &BTreeSet<Use>,
    exceptions: &[Exception],
) -> Vec<String> {
    let is_excepted = |used: &&Use| exceptions.iter().any(|(folder, _)| *folder == used.folder);
    let denied = uses.iter().filter(|used| !is_excepted(used));
    let mut violations: Vec<_> = denied.map(|used| format!("{}: {rule}", used.place)).collect();
    for (number, (folder, reason)) in exceptions.iter().enumerate() {
        let is_listed_before = exceptions[..number].iter().any(|(other, _)| other == folder);
        if is_listed_before || !uses.iter().any(|used| used.folder == *folder) {
            violations.push(format!("{folder}: its exception is not needed: remove it ({rule})"));
        }
        if reason.split_whitespace().count() < 3 {
            violations.push(format!("{folder}: its exception has no reason ({rule})"));
        }
    }
    violations
}

#[test]
fn uses_without_exception_and_exceptions_without_use_are_reported() {
    let uses = |folders: &[&str]| -> BTreeSet<Use> {
        let used = |folder: &&str| Use { folder: (*folder).to_owned(), place: "x".to_owned() };
        folders.iter().map(used).collect()
    };
    let count = |folders: &[&str], exceptions: &[Exception]| {
        violations("forbidden", &uses(folders), exceptions).len()
    };
    let a = ("a", "it is the owner");
    assert_eq!([count(&[], &[]), count(&["a"], &[]), count(&["a", "b"], &[])], [0, 1, 2]);
    assert_eq!([count(&["a"], &[a]), count(&["a", "b"], &[a]), count(&[], &[a])], [0, 1, 1]);
    assert_eq!([count(&["a"], &[a, a]), count(&["a"], &[("a", "so")])], [1, 1]);
}
