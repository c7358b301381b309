//! Finds and prints the grants that still give rights after they were removed from a scope.

use haul_s3_server::{Grant, Rights, Scope};

use super::show::grant_text;

/// Returns the grants that give one of the rights to objects of the scope.
pub(super) fn remaining(grants: &[Grant], scope: &Scope, rights: Rights) -> Vec<Grant> {
    let gives = |grant: &&Grant| {
        grant.scope.overlaps(scope) && rights.iter().any(|right| grant.rights.allow(right))
    };
    grants.iter().filter(gives).cloned().collect()
}

/// Returns a line for each grant: the rights that it still gives, and the grant.
pub(super) fn lines(remaining: &[Grant], rights: Rights) -> Vec<String> {
    let line = |grant: &Grant| {
        let given: Rights = rights.iter().filter(|right| grant.rights.allow(*right)).collect();
        let verb = if given.iter().count() == 1 { "remains" } else { "remain" };
        format!("{given} {verb} through the grant {}", grant_text(grant))
    };
    remaining.iter().map(line).collect()
}
