//! Decisions about requests.

use crate::pattern;
use crate::policy::condition::{Facts, Key};
use crate::policy::statement::{Effect, Names, Patterns, Policy, Principals, Statement};

/// A request, as seen by policies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access<'a> {
    pub(crate) client: Client<'a>,
    /// The action, such as `s3:GetObject`.
    pub(crate) action: &'a str,
    /// A bucket name, or a bucket name, a slash and a key.
    pub(crate) resource: &'a str,
}

/// The client that sent a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Client<'a> {
    /// The user whose key signed the request; `None` if it is not signed.
    User(Option<&'a str>),
    /// A part of the server that acts for another bucket's owner.
    Service(&'a str),
}

/// A policy's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A statement denies the request, even if others allow it.
    Denied,
    Allowed,
    /// No statement applies.
    Silent,
}

impl Policy {
    /// Decides about a request. A statement that denies it prevails over all statements that allow
    /// it.
    pub(crate) fn evaluate(&self, access: &Access<'_>, facts: &dyn Facts) -> Verdict {
        let mut verdict = Verdict::Silent;
        for statement in self.statements.iter().filter(|one| one.applies(access, facts)) {
            match statement.effect {
                Effect::Deny => return Verdict::Denied,
                Effect::Allow => verdict = Verdict::Allowed,
            }
        }
        verdict
    }

    /// Returns `true` if decisions may depend on an object's present tags.
    pub(crate) fn uses_existing_tags(&self) -> bool {
        let mut conditions = self.statements.iter().flat_map(|statement| &statement.conditions);
        conditions.any(|condition| matches!(condition.key, Key::ExistingTag(_)))
    }
}

impl Statement {
    fn applies(&self, access: &Access<'_>, facts: &dyn Facts) -> bool {
        let is_meant = match (&self.principals, access.client) {
            (Principals::Everyone { .. }, Client::User(_)) => true,
            // As in AWS, a service must be allowed by its name, but a denial of everyone covers it.
            (Principals::Everyone { services, .. }, Client::Service(name)) => {
                self.effect == Effect::Deny || services.iter().any(|listed| listed == name)
            }
            (Principals::Listed(names), client) => names.contain(client),
            (Principals::EveryoneBut(names), client) => !names.contain(client),
        };
        is_meant
            && self.actions.match_action(access.action)
            && self.resources.match_resource(access.resource)
            && self.conditions.iter().all(|condition| condition.holds(facts))
    }
}

impl Names {
    fn contain(&self, client: Client<'_>) -> bool {
        let (names, name) = match client {
            Client::User(user) => (&self.users, user),
            Client::Service(name) => (&self.services, Some(name)),
        };
        name.is_some_and(|name| names.iter().any(|listed| listed == name))
    }
}

impl Patterns {
    /// Ignores case in action names.
    fn match_action(&self, action: &str) -> bool {
        let lower = action.to_ascii_lowercase();
        self.matches(|listed| pattern::matches(&listed.to_ascii_lowercase(), &lower))
    }

    fn match_resource(&self, resource: &str) -> bool {
        self.matches(|listed| pattern::matches(listed, resource))
    }

    fn matches(&self, is_match: impl Fn(&String) -> bool) -> bool {
        match self {
            Self::OneOf(patterns) => patterns.iter().any(is_match),
            Self::NoneOf(patterns) => !patterns.iter().any(is_match),
        }
    }
}
