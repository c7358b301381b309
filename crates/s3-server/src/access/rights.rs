//! Rights, and the part of a store to which they apply.

use std::fmt;
use std::str::FromStr;

use crate::request::name::is_bucket_name;

/// The bucket name in a grant for all buckets.
const ALL_BUCKETS: &str = "*";

/// A right to objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Read objects and their metadata.
    Read,
    /// Store and overwrite objects, including parts of uploads.
    Write,
    /// List the keys of objects and unfinished uploads.
    List,
    /// Delete objects.
    Delete,
    /// All other rights, the bucket's lifecycle rules, and the creation and deletion of the bucket.
    Admin,
}

impl Right {
    const ALL: [Self; 5] = [Self::Read, Self::Write, Self::List, Self::Delete, Self::Admin];

    /// Returns the right's name, as key files and users write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::List => "list",
            Self::Delete => "delete",
            Self::Admin => "admin",
        }
    }
}

/// A set of rights. Its text is the rights' names, separated by commas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// Returns `true` if the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the rights in this set, in a fixed order.
    pub fn iter(self) -> impl Iterator<Item = Right> {
        Right::ALL.into_iter().filter(move |right| self.0 & Self::bit(*right) != 0)
    }

    /// Returns `true` if the set has the right, or [`Right::Admin`].
    #[must_use]
    pub fn allow(self, right: Right) -> bool {
        self.0 & (Self::bit(right) | Self::bit(Right::Admin)) != 0
    }

    /// Returns `true` if the set names this right itself; [`Right::Admin`] does not imply it.
    #[must_use]
    pub fn contains(self, right: Right) -> bool {
        self.0 & Self::bit(right) != 0
    }

    fn bit(right: Right) -> u8 {
        1 << right as u8
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<I: IntoIterator<Item = Right>>(rights: I) -> Self {
        Self(rights.into_iter().fold(0, |set, right| set | Self::bit(right)))
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(Right::name).collect();
        f.write_str(&names.join(","))
    }
}

impl FromStr for Rights {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = |name: &str| {
            let right = Right::ALL.into_iter().find(|right| right.name() == name);
            right.ok_or_else(|| {
                format!("\"{name}\" is no right: use read, write, list, delete or admin")
            })
        };
        text.split(',').map(parse).collect()
    }
}

/// The objects to which rights are granted: all keys with a prefix, in one bucket or in all
/// buckets. As text, `BUCKET` or `BUCKET/PREFIX`; the bucket `*` means all buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The bucket name, or `*`.
    pub bucket: String,
    /// The prefix that the keys have; empty for all keys.
    pub prefix: String,
}

impl Scope {
    /// Returns `true` if the scope can contain keys in the bucket.
    pub(super) fn is_of(&self, bucket: &str) -> bool {
        self.bucket == ALL_BUCKETS || self.bucket == bucket
    }

    /// Returns `true` if one key can be in both scopes.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_same_bucket = self.is_of(&other.bucket) || other.is_of(&self.bucket);
        let (prefix, other) = (&self.prefix, &other.prefix);
        is_same_bucket && (prefix.starts_with(other) || other.starts_with(prefix))
    }

    /// Returns `true` if all keys that begin with `key` are in the scope.
    pub(super) fn contains(&self, bucket: &str, key: &str) -> bool {
        self.is_of(bucket) && key.starts_with(&self.prefix)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix.as_str() {
            "" => f.write_str(&self.bucket),
            prefix => write!(f, "{}/{prefix}", self.bucket),
        }
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (bucket, prefix) = text.split_once('/').unwrap_or((text, ""));
        if bucket != ALL_BUCKETS && !is_bucket_name(bucket) {
            return Err(format!("\"{bucket}\" cannot be the name of a bucket"));
        }
        Ok(Self { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

/// Rights to the objects in a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The objects.
    pub scope: Scope,
    /// The rights to them.
    pub rights: Rights,
}

impl Grant {
    /// Returns `true` if the grant allows the right to all keys that begin with `key`.
    pub(crate) fn allows(&self, right: Right, bucket: &str, key: &str) -> bool {
        self.rights.allow(right) && self.scope.contains(bucket, key)
    }
}

/// Adds rights to the grant with this scope, or a new grant.
pub(super) fn add(grants: &mut Vec<Grant>, scope: Scope, rights: Rights) {
    match grants.iter_mut().find(|grant| grant.scope == scope) {
        Some(grant) => grant.rights = grant.rights.with(rights),
        None => grants.push(Grant { scope, rights }),
    }
}

/// Removes rights from each grant whose scope lies within `scope`; returns `false` if there was
/// nothing to remove.
pub(super) fn remove(grants: &mut Vec<Grant>, scope: &Scope, rights: Rights) -> bool {
    let before = grants.clone();
    for grant in grants.iter_mut() {
        if scope.contains(&grant.scope.bucket, &grant.scope.prefix) {
            grant.rights = grant.rights.without(rights);
        }
    }
    grants.retain(|grant| !grant.rights.is_empty());
    *grants != before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(list: &[(&str, &str)]) -> Vec<Grant> {
        let mut grants = Vec::new();
        for (scope, rights) in list {
            add(&mut grants, scope.parse().unwrap(), rights.parse().unwrap());
        }
        grants
    }

    #[test]
    fn rights_and_scopes_are_written_as_they_are_read() {
        for text in ["read", "read,write,list,delete,admin", "list,delete"] {
            assert_eq!(text.parse::<Rights>().unwrap().to_string(), text);
        }
        assert_eq!("list,read,list".parse::<Rights>().unwrap().to_string(), "read,list");
        for text in ["", "reads", "read,", "Read", "read write"] {
            assert!(text.parse::<Rights>().is_err(), "{text}");
        }
        for text in ["bucket", "bucket/a/b", "*", "*/logs/", "bucket//a"] {
            assert_eq!(text.parse::<Scope>().unwrap().to_string(), text);
        }
        for text in ["", "/", "a", "Bucket", "b*", "**"] {
            assert!(text.parse::<Scope>().is_err(), "{text}");
        }
    }

    #[test]
    fn scopes_with_common_keys_overlap() {
        for (one, other, is_overlap) in [
            ("bucket", "bucket", true),
            ("bucket", "bucket/a/", true),
            ("bucket/a/b", "bucket/a/", true),
            ("bucket/a/", "bucket/b/", false),
            ("bucket", "other", false),
            ("*", "bucket/a/", true),
            ("*/a/", "bucket", true),
            ("*/a/", "bucket/b/", false),
        ] {
            let [first, second] = [one, other].map(|text| text.parse::<Scope>().unwrap());
            assert_eq!(first.overlaps(&second), is_overlap, "{one} {other}");
            assert_eq!(second.overlaps(&first), is_overlap, "{other} {one}");
        }
    }

    #[test]
    fn admin_has_all_rights() {
        let admin: Rights = "admin".parse().unwrap();
        assert!(Right::ALL.into_iter().all(|right| admin.allow(right)));
        let all_but_admin: Rights = "read,write,list,delete".parse().unwrap();
        assert!(!all_but_admin.allow(Right::Admin));
        assert!(!admin.contains(Right::Read));
    }

    #[test]
    fn rights_of_one_scope_are_one_grant() {
        let found = grants(&[("bucket", "read"), ("bucket/a", "read"), ("bucket", "list")]);
        assert_eq!(found, grants(&[("bucket", "read,list"), ("bucket/a", "read")]));
    }

    #[test]
    fn rights_are_removed_from_all_grants_within_a_scope() {
        let all =
            [("*", "read"), ("bucket", "read,list"), ("bucket/a/", "read"), ("other", "list")];
        for (scope, rights, left) in [
            ("bucket", "read", &[("*", "read"), ("bucket", "list"), ("other", "list")][..]),
            ("bucket/a", "read", &[("*", "read"), ("bucket", "read,list"), ("other", "list")]),
            ("*", "read", &[("bucket", "list"), ("other", "list")]),
            ("*", "read,list,delete", &[]),
        ] {
            let mut found = grants(&all);
            assert!(remove(&mut found, &scope.parse().unwrap(), rights.parse().unwrap()));
            assert_eq!(found, grants(left), "{scope}");
        }
        let mut found = grants(&all);
        assert!(!remove(&mut found, &"bucket".parse().unwrap(), "write".parse().unwrap()));
        assert!(!remove(&mut found, &"none".parse().unwrap(), "read".parse().unwrap()));
        assert_eq!(found, grants(&all));
    }
}
