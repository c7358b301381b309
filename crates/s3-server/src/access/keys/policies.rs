//! Named policies, and the users and groups that have them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::access::keys::names::check_user;
use crate::error::{Error, Result};
use crate::policy::statement::Policy;

/// The maximum length of the name of a policy or a group, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// A policy of users, as it was given and as it is evaluated.
#[derive(Debug, Clone)]
pub(super) struct NamedPolicy {
    pub(super) text: String,
    pub(super) policy: Arc<Policy>,
}

impl NamedPolicy {
    pub(super) fn parse(text: &str) -> std::result::Result<Self, String> {
        Ok(Self { policy: Arc::new(Policy::parse_for_users(text)?), text: text.to_owned() })
    }
}

impl PartialEq for NamedPolicy {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NamedPolicy {}

/// A group: its users, and the policies that all of them have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    pub(super) users: BTreeSet<String>,
    pub(super) policies: BTreeSet<String>,
}

impl Group {
    /// Returns the users, sorted by name.
    pub fn users(&self) -> impl Iterator<Item = &str> {
        self.users.iter().map(String::as_str)
    }

    /// Returns the names of the policies, sorted.
    pub fn policies(&self) -> impl Iterator<Item = &str> {
        self.policies.iter().map(String::as_str)
    }

    fn is_empty(&self) -> bool {
        self.users.is_empty() && self.policies.is_empty()
    }
}

/// The owner of an attached policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyHolder<'a> {
    /// A user, by its name. The user need not have a key.
    User(&'a str),
    /// A group, by its name.
    Group(&'a str),
}

impl PolicyHolder<'_> {
    fn check(self) -> Result<()> {
        match self {
            Self::User(user) => check_user(user),
            Self::Group(group) => check_name(group, "group"),
        }
    }
}

/// A server's named policies, and the users and groups that have them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyList {
    pub(super) named: BTreeMap<String, NamedPolicy>,
    pub(super) groups: BTreeMap<String, Group>,
    pub(super) users: BTreeMap<String, BTreeSet<String>>,
}

impl PolicyList {
    /// Returns the names and the texts of all policies, sorted by name.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.named.iter().map(|(name, named)| (name.as_str(), named.text.as_str()))
    }

    /// Returns the text of a policy.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.named.get(name).map(|named| named.text.as_str())
    }

    /// Returns the groups, sorted by name.
    #[must_use]
    pub fn groups(&self) -> &BTreeMap<String, Group> {
        &self.groups
    }

    /// Returns the users that have policies of their own, with the names of these.
    #[must_use]
    pub fn users(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.users
    }

    /// Adds a policy, or replaces the policy with this name.
    ///
    /// # Errors
    /// [`Error::Keys`] for an invalid name; [`Error::Policy`] if the text is malformed, or has parts
    /// that a server would not enforce.
    pub fn put(&mut self, name: &str, text: &str) -> Result<()> {
        check_name(name, "policy")?;
        let named = NamedPolicy::parse(text).map_err(|why| Error::Policy { why })?;
        self.named.insert(name.to_owned(), named);
        Ok(())
    }

    /// Removes a policy. Returns `false` if there is none with this name.
    ///
    /// # Errors
    /// [`Error::Keys`] if a user or a group has the policy.
    pub fn remove(&mut self, name: &str) -> Result<bool> {
        let users = self.users.iter().filter(|(_, policies)| policies.contains(name));
        let groups = self.groups.iter().filter(|(_, group)| group.policies.contains(name));
        let holders: Vec<String> = users
            .map(|(user, _)| format!("the user {user}"))
            .chain(groups.map(|(group, _)| format!("the group {group}")))
            .collect();
        if !holders.is_empty() {
            let why = format!("the policy {name} is attached to {}", holders.join(", "));
            return Err(Error::Keys { why });
        }
        Ok(self.named.remove(name).is_some())
    }

    /// Attaches a policy to a user or a group. Returns `false` if it was attached before.
    ///
    /// # Errors
    /// [`Error::Keys`] if there is no such policy or group, or if the name of the holder is invalid.
    pub fn attach(&mut self, name: &str, holder: PolicyHolder<'_>) -> Result<bool> {
        holder.check()?;
        // A misspelled name would give the policy to nobody.
        if let PolicyHolder::Group(group) = holder
            && !self.groups.contains_key(group)
        {
            return Err(Error::Keys { why: format!("there is no group {group}") });
        }
        self.attach_to(name, holder)
    }

    /// Attaches a policy like [`Self::attach`], also to a group that is then created: in a file, a
    /// group may have policies and no users.
    pub(super) fn attach_to(&mut self, name: &str, holder: PolicyHolder<'_>) -> Result<bool> {
        holder.check()?;
        if !self.named.contains_key(name) {
            return Err(Error::Keys { why: format!("there is no policy {name}") });
        }
        let policies = match holder {
            PolicyHolder::User(user) => self.users.entry(user.to_owned()).or_default(),
            PolicyHolder::Group(group) => {
                &mut self.groups.entry(group.to_owned()).or_default().policies
            }
        };
        Ok(policies.insert(name.to_owned()))
    }

    /// Detaches a policy from a user or a group. Returns `false` if it was not attached.
    pub fn detach(&mut self, name: &str, holder: PolicyHolder<'_>) -> bool {
        let policies = match holder {
            PolicyHolder::User(user) => self.users.get_mut(user),
            PolicyHolder::Group(group) => {
                self.groups.get_mut(group).map(|group| &mut group.policies)
            }
        };
        let is_detached = policies.is_some_and(|policies| policies.remove(name));
        self.drop_empty();
        is_detached
    }

    /// Attaches a policy to these users and groups, and detaches it from all others.
    ///
    /// # Errors
    /// [`Error::Keys`] if there is no such policy or group, or if a name is invalid. Some holders may
    /// have changed then.
    pub(crate) fn set_holders(
        &mut self,
        name: &str,
        users: &BTreeSet<String>,
        groups: &BTreeSet<String>,
    ) -> Result<()> {
        for policies in self.users.values_mut() {
            policies.remove(name);
        }
        for group in self.groups.values_mut() {
            group.policies.remove(name);
        }
        let users = users.iter().map(|user| PolicyHolder::User(user));
        let groups = groups.iter().map(|group| PolicyHolder::Group(group));
        for holder in users.chain(groups) {
            self.attach(name, holder)?;
        }
        self.drop_empty();
        Ok(())
    }

    /// Gives a group these users, and no others. A group without users and policies disappears.
    ///
    /// # Errors
    /// [`Error::Keys`] if a name is invalid.
    pub(crate) fn set_group(&mut self, group: &str, users: &BTreeSet<String>) -> Result<()> {
        check_name(group, "group")?;
        users.iter().try_for_each(|user| check_user(user))?;
        self.groups.entry(group.to_owned()).or_default().users.clone_from(users);
        self.drop_empty();
        Ok(())
    }

    /// Adds users to a group, which is created if it does not exist.
    ///
    /// # Errors
    /// [`Error::Keys`] if a name is invalid.
    pub fn add_to_group(&mut self, group: &str, users: &[String]) -> Result<()> {
        check_name(group, "group")?;
        users.iter().try_for_each(|user| check_user(user))?;
        let found = self.groups.entry(group.to_owned()).or_default();
        found.users.extend(users.iter().cloned());
        self.drop_empty();
        Ok(())
    }

    /// Removes users from a group, which disappears if it has neither users nor policies. Returns
    /// `false` if the group had none of the users.
    pub fn remove_from_group(&mut self, group: &str, users: &[String]) -> bool {
        let Some(found) = self.groups.get_mut(group) else { return false };
        let before = found.users.len();
        found.users.retain(|user| !users.contains(user));
        let is_changed = found.users.len() < before;
        self.drop_empty();
        is_changed
    }

    /// Returns the names of a user's policies, including those of its groups, sorted.
    #[must_use]
    pub fn names_for_user(&self, user: &str) -> BTreeSet<&str> {
        let own = self.users.get(user).into_iter().flatten();
        let groups = self.groups.values().filter(|group| group.users.contains(user));
        own.chain(groups.flat_map(|group| &group.policies)).map(String::as_str).collect()
    }

    /// Returns the policies with these names. Names without a policy give none.
    pub(super) fn named<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Arc<[Arc<Policy>]> {
        let found = names.into_iter().filter_map(|name| self.named.get(name));
        found.map(|named| Arc::clone(&named.policy)).collect()
    }

    /// Returns `true` if there are no policies and no groups.
    pub(super) fn is_empty(&self) -> bool {
        self.named.is_empty() && self.groups.is_empty() && self.users.is_empty()
    }

    fn drop_empty(&mut self) {
        self.groups.retain(|_, group| !group.is_empty());
        self.users.retain(|_, policies| !policies.is_empty());
    }
}

/// Fails if a name cannot be that of a policy or a group.
pub(super) fn check_name(name: &str, what: &str) -> Result<()> {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"._@+-=".contains(&byte);
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_valid) {
        return Ok(());
    }
    let why = format!(
        "\"{name}\" cannot be a {what}: a name has 1 to {NAME_BYTES_MAX} letters, digits or \
         characters of . _ @ + - ="
    );
    Err(Error::Keys { why })
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: &str = r#"{"Statement": {"Effect": "Allow", "Action": "s3:GetObject",
        "Resource": "arn:aws:s3:::*"}}"#;

    fn users(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn user_has_its_policies_and_those_of_its_groups() {
        let mut list = PolicyList::default();
        for name in ["a", "b", "c"] {
            list.put(name, READ).unwrap();
        }
        assert!(list.attach("a", PolicyHolder::User("ann")).unwrap());
        assert!(!list.attach("a", PolicyHolder::User("ann")).unwrap());
        let why = list.attach("b", PolicyHolder::Group("staff")).unwrap_err().to_string();
        assert!(why.contains("there is no group staff") && list.groups().is_empty(), "{why}");
        list.add_to_group("staff", &users(&["ann", "ben"])).unwrap();
        assert!(list.attach("b", PolicyHolder::Group("staff")).unwrap());
        list.add_to_group("others", &users(&["ben"])).unwrap();
        assert!(list.attach("c", PolicyHolder::Group("others")).unwrap());
        let names = |list: &PolicyList, user| {
            list.names_for_user(user).into_iter().collect::<Vec<_>>().join(",")
        };
        assert_eq!(
            ["ann", "ben", "cat"].map(|user| names(&list, user)),
            ["a,b", "b,c", ""].map(String::from)
        );
        assert!(list.remove_from_group("staff", &users(&["ann"])));
        assert!(!list.remove_from_group("staff", &users(&["ann"])));
        assert_eq!(names(&list, "ann"), "a");
        for (name, holder) in [("a", "the user ann"), ("b", "the group staff")] {
            let why = list.remove(name).unwrap_err().to_string();
            assert!(why.contains(&format!("attached to {holder}")), "{why}");
        }
        assert!(list.detach("a", PolicyHolder::User("ann")));
        assert!(!list.detach("a", PolicyHolder::User("ann")));
        assert!(list.remove("a").unwrap() && !list.remove("a").unwrap());
        assert!(list.users.is_empty(), "users without policies are not stored");
    }

    #[test]
    fn invalid_names_and_policies_are_refused() {
        let mut list = PolicyList::default();
        for name in ["", "a b", "a/b", "ä", &"a".repeat(129)] {
            assert!(list.put(name, READ).is_err(), "{name}");
            assert!(list.add_to_group(name, &users(&["ann"])).is_err(), "{name}");
        }
        assert!(list.put("a", "{").is_err());
        assert!(
            list.put("a", &READ.replace("\"Effect\"", "\"Principal\": \"*\", \"Effect\"")).is_err()
        );
        list.put("a", READ).unwrap();
        assert!(list.attach("b", PolicyHolder::User("ann")).is_err());
        for user in ["haul", "anonymous", "oidc:ann", ""] {
            assert!(list.attach("a", PolicyHolder::User(user)).is_err(), "{user}");
            assert!(list.add_to_group("g", &users(&[user])).is_err(), "{user}");
        }
    }
}
