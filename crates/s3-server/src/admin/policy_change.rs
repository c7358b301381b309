//! The changes of policies and groups that the console requests. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::access::keys::policies::PolicyList;
use crate::error::Result;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum PolicyChange {
    /// Adds or replaces a policy, and attaches it to these users and groups only.
    Put {
        policy: String,
        text: String,
        users: BTreeSet<String>,
        groups: BTreeSet<String>,
    },
    Remove {
        policy: String,
    },
    /// Gives a group these users only. A group without users and policies disappears.
    SetGroup {
        group: String,
        users: BTreeSet<String>,
    },
}

impl PolicyChange {
    /// Parses the change with this name; `None` if it is no change of policies.
    pub(super) fn from_json(name: &str, json: &Value) -> Option<std::result::Result<Self, String>> {
        let text = |name: &str| {
            let text = json[name].as_str().map(str::to_owned);
            text.ok_or_else(|| format!("the text \"{name}\" is missing"))
        };
        let names = |name: &str| {
            let names = json[name].as_array().and_then(|names| {
                names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()
            });
            names.ok_or_else(|| format!("the list of texts \"{name}\" is missing"))
        };
        let put = || {
            let (policy, text) = (text("policy")?, text("text")?);
            Ok(Self::Put { policy, text, users: names("users")?, groups: names("groups")? })
        };
        match name {
            "put-policy" => Some(put()),
            "remove-policy" => Some(text("policy").map(|policy| Self::Remove { policy })),
            "group" => Some(
                text("group")
                    .and_then(|group| Ok(Self::SetGroup { group, users: names("users")? })),
            ),
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
            Self::Put { policy, text, users, groups } => {
                let (users, groups) = (joined(users), joined(groups));
                ("policy", format!("{policy}; users={users}; groups={groups}; {text}"))
            }
            Self::Remove { policy } => ("policy", policy.clone()),
            Self::SetGroup { group, users } => {
                ("group", format!("{group}; users={}", joined(users)))
            }
        }
    }

    /// Applies the change. Returns `false` if there is no policy to remove.
    pub(super) fn apply(&self, list: &mut PolicyList) -> Result<bool> {
        match self {
            Self::Put { policy, text, users, groups } => {
                list.put(policy, text)?;
                list.set_holders(policy, users, groups)?;
            }
            Self::Remove { policy } => return list.remove(policy),
            Self::SetGroup { group, users } => list.set_group(group, users)?,
        }
        Ok(true)
    }
}
