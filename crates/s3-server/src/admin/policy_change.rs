//! The changes of policies and groups that the console requests. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::access::keys::policies::{Group, PolicyList};
use crate::error::Error;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum PolicyChange {
    /// Adds or replaces a policy, and attaches it to these users and groups only. `shown` is what the
    /// client saw; `None` for a new policy.
    Put {
        policy: String,
        new: PolicyState,
        shown: Option<PolicyState>,
    },
    Remove {
        policy: String,
    },
    /// Gives a group these users only. A group without users and policies disappears. `shown` is what
    /// the client saw; `None` for a new group.
    SetGroup {
        group: String,
        users: BTreeSet<String>,
        shown: Option<BTreeSet<String>>,
    },
}

/// A policy and those that have it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PolicyState {
    text: String,
    users: BTreeSet<String>,
    groups: BTreeSet<String>,
}

impl PolicyState {
    fn from_json(json: &Value) -> Result<Self, String> {
        let (users, groups) = (names(json, "users")?, names(json, "groups")?);
        Ok(Self { text: text(json, "text")?, users, groups })
    }

    /// Returns the present state of a policy.
    fn of(list: &PolicyList, policy: &str) -> Option<Self> {
        let users = list.users().iter().filter(|(_, policies)| policies.contains(policy));
        let has_policy = |group: &Group| group.policies().any(|found| found == policy);
        let groups = list.groups().iter().filter(|(_, group)| has_policy(group));
        Some(Self {
            text: list.text(policy)?.to_owned(),
            users: users.map(|(user, _)| user.clone()).collect(),
            groups: groups.map(|(group, _)| group.clone()).collect(),
        })
    }
}

/// The reason why a change is not applied.
#[derive(Debug)]
pub(super) enum NotApplied {
    Invalid(Error),
    /// There is no policy to remove.
    Missing,
    /// Another client has changed what the client saw.
    Changed,
}

impl PolicyChange {
    /// Parses the change with this name; `None` if it is no change of policies.
    pub(super) fn from_json(name: &str, json: &Value) -> Option<Result<Self, String>> {
        let put = || {
            let (policy, new) = (text(json, "policy")?, PolicyState::from_json(json)?);
            let shown = shown(json, PolicyState::from_json)?;
            Ok(Self::Put { policy, new, shown })
        };
        let group = || {
            let (group, users) = (text(json, "group")?, names(json, "users")?);
            Ok(Self::SetGroup { group, users, shown: shown(json, |json| names(json, "users"))? })
        };
        match name {
            "put-policy" => Some(put()),
            "remove-policy" => Some(text(json, "policy").map(|policy| Self::Remove { policy })),
            "group" => Some(group()),
            _ => None,
        }
    }

    /// Returns the operation's name in the audit log.
    pub(super) fn operation(&self) -> &'static str {
        match self {
            Self::Put { .. } => "PutUserPolicy",
            Self::Remove { .. } => "DeleteUserPolicy",
            Self::SetGroup { .. } => "PutGroup",
        }
    }

    /// Returns what the change gives and to whom, as a field of the audit log.
    pub(super) fn given(&self) -> (&'static str, String) {
        let joined = |names: &BTreeSet<String>| {
            names.iter().map(String::as_str).collect::<Vec<_>>().join(",")
        };
        match self {
            Self::Put { policy, new: PolicyState { text, users, groups }, .. } => {
                let (users, groups) = (joined(users), joined(groups));
                ("policy", format!("{policy}; users={users}; groups={groups}; {text}"))
            }
            Self::Remove { policy } => ("policy", policy.clone()),
            Self::SetGroup { group, users, .. } => {
                ("group", format!("{group}; users={}", joined(users)))
            }
        }
    }

    /// Applies the change. After an error, a part of it may be applied.
    pub(super) fn apply(&self, list: &mut PolicyList) -> Result<(), NotApplied> {
        match self {
            Self::Put { policy, new, shown } => {
                if PolicyState::of(list, policy) != *shown {
                    return Err(NotApplied::Changed);
                }
                list.put(policy, &new.text)?;
                list.set_holders(policy, &new.users, &new.groups)?;
            }
            Self::Remove { policy } => {
                if !list.remove(policy)? {
                    return Err(NotApplied::Missing);
                }
            }
            Self::SetGroup { group, users, shown } => {
                let present = list.groups().get(group);
                let present: Option<BTreeSet<_>> =
                    present.map(|group| group.users().map(str::to_owned).collect());
                if present != *shown {
                    return Err(NotApplied::Changed);
                }
                list.set_group(group, users)?;
            }
        }
        Ok(())
    }
}

impl From<Error> for NotApplied {
    fn from(error: Error) -> Self {
        Self::Invalid(error)
    }
}

fn text(json: &Value, name: &str) -> Result<String, String> {
    let text = json[name].as_str().map(str::to_owned);
    text.ok_or_else(|| format!("the text \"{name}\" is missing"))
}

fn names(json: &Value, name: &str) -> Result<BTreeSet<String>, String> {
    let names = json[name].as_array().and_then(|names| {
        names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()
    });
    names.ok_or_else(|| format!("the list of texts \"{name}\" is missing"))
}

/// Returns what a client saw; `None` if it was nothing.
fn shown<T>(
    json: &Value,
    parse: impl FnOnce(&Value) -> Result<T, String>,
) -> Result<Option<T>, String> {
    match &json["shown"] {
        Value::Null => Ok(None),
        shown => parse(shown).map(Some),
    }
}
