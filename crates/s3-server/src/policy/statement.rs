//! The model of a policy.

use crate::policy::condition::Condition;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(super) statements: Vec<Statement>,
}

/// A rule that applies to a request if all its parts match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) effect: Effect,
    pub(super) principals: Principals,
    /// Actions such as `s3:GetObject`.
    pub(super) actions: Patterns,
    /// A bucket name, or a bucket name, a slash and a key.
    pub(super) resources: Patterns,
    pub(super) conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Allow,
    Deny,
}

/// The clients to which a statement applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Principals {
    /// All clients, including clients that do not sign their requests, and these services.
    Everyone {
        /// The users that the statement names in addition to everyone.
        users: Vec<String>,
        services: Vec<String>,
    },
    Listed(Names),
    /// All clients except these.
    EveryoneBut(Names),
}

/// Client names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) users: Vec<String>,
    /// Services, such as the delivery of access logs.
    pub(super) services: Vec<String>,
}

/// Patterns, one of which must match, or none of which may match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Patterns {
    OneOf(Vec<String>),
    NoneOf(Vec<String>),
}
