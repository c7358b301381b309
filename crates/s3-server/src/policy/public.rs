//! Finds policies that allow access to everyone.

use crate::policy::condition::{Condition, Key};
use crate::policy::operand::Operand;
use crate::policy::statement::{Effect, Policy, Principals};

/// A network with at least this number of prefix bits counts as a restriction, as in S3.
const PUBLIC_NETWORK_BITS: u32 = 8;

impl Policy {
    /// Returns `true` if a statement allows something to everyone, without a condition that
    /// restricts it to networks or users.
    pub(crate) fn is_public(&self) -> bool {
        self.statements.iter().any(|statement| {
            statement.effect == Effect::Allow
                && !matches!(statement.principals, Principals::Listed(_))
                && !statement.conditions.iter().any(restricts)
        })
    }
}

fn restricts(condition: &Condition) -> bool {
    if condition.is_negated || condition.holds_without_value {
        return false;
    }
    condition.operands.iter().all(|operand| match (&condition.key, operand) {
        (Key::SourceIp, Operand::Network(_, bits)) => *bits >= PUBLIC_NETWORK_BITS,
        (Key::User, Operand::Text(_) | Operand::TextIgnoringCase(_)) => true,
        (Key::User, Operand::Pattern(pattern)) => !pattern.contains(['*', '?']),
        _ => false,
    })
}
