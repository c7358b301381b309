//! Keys, and the list of a server's keys, which a key file contains.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use base64_simd::URL_SAFE_NO_PAD as BASE64;
use haul_file_store::Quota;
use ring::rand::{SecureRandom, SystemRandom};

use crate::access::keys::names::{ACCESS_KEY_CHARACTERS, check_user};
use crate::access::keys::policies::PolicyList;
use crate::access::rights::{self, Grant, Right, Rights, Scope};
use crate::error::{Error, Result};

/// The prefix of generated access keys.
const ACCESS_KEY_PREFIX: &str = "HAUL";

/// The number of random characters in an access key, of 5 bits each.
const ACCESS_KEY_RANDOM: usize = 16;

/// The number of random bytes in a secret key, which has 40 characters.
const SECRET_KEY_RANDOM: usize = 30;

/// A key pair with its rights.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    /// The access key, sent with every request.
    pub access_key: String,
    /// The secret key, which is never sent.
    pub secret_key: String,
    /// The user, which owns the buckets that it creates. A user may have several keys.
    pub user: String,
    /// The time at which the key was created.
    pub created: SystemTime,
    /// The time at which the key expires: it is then rejected.
    pub expires: Option<SystemTime>,
    /// `true` if the key is rejected until it is enabled again.
    pub is_disabled: bool,
    /// `true` if the key may create buckets of any name.
    pub creates_buckets: bool,
    /// `true` if the key may read the metrics at the admin address.
    pub reads_metrics: bool,
    /// The rights to objects.
    pub grants: Vec<Grant>,
}

impl Key {
    /// Adds rights to a scope.
    ///
    /// # Errors
    /// [`Error::Keys`] if `admin` is granted for a part of a bucket: settings apply to the whole
    /// bucket.
    pub fn allow(&mut self, scope: Scope, rights: Rights) -> Result<()> {
        check(&scope, rights)?;
        rights::add(&mut self.grants, scope, rights);
        Ok(())
    }

    /// Replaces the rights to exactly this scope; empty rights remove the grant.
    pub(crate) fn set(&mut self, scope: Scope, rights: Rights) -> Result<()> {
        check(&scope, rights)?;
        self.grants.retain(|grant| grant.scope != scope || !rights.is_empty());
        match self.grants.iter_mut().find(|grant| grant.scope == scope) {
            Some(grant) => grant.rights = rights,
            None if rights.is_empty() => {}
            None => self.grants.push(Grant { scope, rights }),
        }
        Ok(())
    }

    /// Removes rights from all grants within a scope. Returns `false` if there were none.
    pub fn forbid(&mut self, scope: &Scope, rights: Rights) -> bool {
        rights::remove(&mut self.grants, scope, rights)
    }

    /// Returns `true` if the key is rejected at the time `now`.
    #[must_use]
    pub fn is_refused(&self, now: SystemTime) -> bool {
        self.is_disabled || self.expires.is_some_and(|expires| expires <= now)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("access_key", &self.access_key)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// Fails if `admin` is granted for a part of a bucket.
pub(super) fn check(scope: &Scope, rights: Rights) -> Result<()> {
    if rights.contains(Right::Admin) && !scope.prefix.is_empty() {
        return invalid(format!("admin is a right to a whole bucket, and not to {scope}"));
    }
    Ok(())
}

/// A server's keys, and the rights of requests without a signature.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyList {
    pub(super) keys: Vec<Key>,
    pub(in crate::access) anonymous: Vec<Grant>,
    pub(super) quotas: BTreeMap<String, Quota>,
    pub(super) policies: PolicyList,
}

impl KeyList {
    /// Returns all keys, in creation order.
    #[must_use]
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Returns the rights of requests without a signature.
    #[must_use]
    pub fn anonymous(&self) -> &[Grant] {
        &self.anonymous
    }

    /// Returns the quotas of users who have one. A user without keys keeps its quota and its
    /// buckets.
    #[must_use]
    pub fn quotas(&self) -> &BTreeMap<String, Quota> {
        &self.quotas
    }

    /// Returns a user's quota.
    #[must_use]
    pub fn quota(&self, user: &str) -> Quota {
        self.quotas.get(user).copied().unwrap_or_default()
    }

    /// Sets a user's quota; one without limits removes it.
    ///
    /// # Errors
    /// [`Error::Keys`] if the user name is invalid.
    pub fn set_quota(&mut self, user: &str, quota: Quota) -> Result<()> {
        check_user(user)?;
        match quota.is_limited() {
            true => drop(self.quotas.insert(user.to_owned(), quota)),
            false => drop(self.quotas.remove(user)),
        }
        Ok(())
    }

    /// Returns the policies of users and groups. A user without keys keeps its policies.
    #[must_use]
    pub fn policies(&self) -> &PolicyList {
        &self.policies
    }

    /// Returns the policies of users and groups, for changes.
    pub fn policies_mut(&mut self) -> &mut PolicyList {
        &mut self.policies
    }

    /// Returns the key with this access key.
    pub fn key_mut(&mut self, access_key: &str) -> Option<&mut Key> {
        self.keys.iter_mut().find(|key| key.access_key == access_key)
    }

    /// Adds a key with a random access key and secret key, and without rights.
    ///
    /// # Errors
    /// [`Error::Keys`] if the user name is invalid, or the kernel has no random bytes.
    pub fn create(&mut self, user: &str, created: SystemTime) -> Result<&mut Key> {
        check_user(user)?;
        let (mut access, mut secret) = ([0; ACCESS_KEY_RANDOM], [0; SECRET_KEY_RANDOM]);
        let random = SystemRandom::new();
        if random.fill(&mut access).and_then(|()| random.fill(&mut secret)).is_err() {
            return invalid("no random bytes are available".to_owned());
        }
        let character = |byte: &u8| char::from(ACCESS_KEY_CHARACTERS[usize::from(byte % 32)]);
        let random: String = access.iter().map(character).collect();
        Ok(self.keys.push_mut(Key {
            access_key: format!("{ACCESS_KEY_PREFIX}{random}"),
            secret_key: BASE64.encode_to_string(secret),
            user: user.to_owned(),
            created,
            expires: None,
            is_disabled: false,
            creates_buckets: false,
            reads_metrics: false,
            grants: Vec::new(),
        }))
    }

    /// Removes a key; returns `false` if there is none with this access key.
    pub fn remove(&mut self, access_key: &str) -> bool {
        let before = self.keys.len();
        self.keys.retain(|key| key.access_key != access_key);
        self.keys.len() < before
    }

    /// Adds rights for requests without a signature.
    ///
    /// # Errors
    /// [`Error::Keys`] for rights other than `read` and `list`.
    pub fn allow_anonymous(&mut self, scope: Scope, rights: Rights) -> Result<()> {
        check_anonymous(rights)?;
        rights::add(&mut self.anonymous, scope, rights);
        Ok(())
    }

    /// Removes rights for requests without a signature within a scope. Returns `false` if there
    /// were none.
    pub fn forbid_anonymous(&mut self, scope: &Scope, rights: Rights) -> bool {
        rights::remove(&mut self.anonymous, scope, rights)
    }
}

/// Fails for rights that requests without a signature cannot have.
pub(super) fn check_anonymous(rights: Rights) -> Result<()> {
    if rights.iter().all(|right| matches!(right, Right::Read | Right::List)) {
        return Ok(());
    }
    invalid("requests without a signature can have the rights read and list only".to_owned())
}

fn invalid<T>(why: String) -> Result<T> {
    Err(Error::Keys { why })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn keys_are_random_and_valid() {
        let mut list = KeyList::default();
        let new = |list: &mut KeyList| list.create("alice", UNIX_EPOCH).unwrap().clone();
        let (first, second) = (new(&mut list), new(&mut list));
        assert_eq!((first.access_key.len(), first.secret_key.len()), (20, 40));
        assert!(first.access_key.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_ne!(first.access_key, second.access_key);
        assert_ne!(first.secret_key, second.secret_key);
        assert!(!format!("{list:?}").contains(&first.secret_key));
        assert!(list.remove(&first.access_key) && !list.remove(&first.access_key));
        assert_eq!(list.keys(), [second]);
    }

    #[test]
    fn invalid_users_are_refused() {
        let mut list = KeyList::default();
        for user in ["", "haul", "anonymous", "a b", "a/b", "ä", &"a".repeat(65)] {
            assert!(list.create(user, UNIX_EPOCH).is_err(), "{user}");
        }
        assert!(list.create("backup@host-1.example", UNIX_EPOCH).is_ok());
    }

    #[test]
    fn rights_without_meaning_are_refused() {
        let mut list = KeyList::default();
        let (bucket, part): (Scope, Scope) = ("b-1".parse().unwrap(), "b-1/a".parse().unwrap());
        let rights = |text: &str| text.parse::<Rights>().unwrap();
        let key = list.create("alice", UNIX_EPOCH).unwrap();
        assert!(key.allow(part.clone(), rights("admin")).is_err());
        assert!(key.allow(part.clone(), rights("delete")).is_ok());
        assert!(key.allow(bucket.clone(), rights("admin")).is_ok());
        assert!(list.allow_anonymous(bucket.clone(), rights("read,list")).is_ok());
        for right in ["write", "delete", "admin", "read,write"] {
            assert!(list.allow_anonymous(bucket.clone(), rights(right)).is_err(), "{right}");
        }
    }

    #[test]
    fn quota_without_limits_is_none() {
        let mut list = KeyList::default();
        let quota = Quota { bytes: Some(5), objects: None };
        list.set_quota("alice", quota).unwrap();
        assert_eq!((list.quota("alice"), list.quota("ben")), (quota, Quota::default()));
        list.set_quota("alice", Quota::default()).unwrap();
        assert_eq!(list, KeyList::default());
        assert!(list.set_quota("haul", quota).is_err(), "the administrator has no quota");
    }

    #[test]
    fn disabled_and_expired_keys_are_refused() {
        let mut list = KeyList::default();
        let key = list.create("alice", UNIX_EPOCH).unwrap();
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(!key.is_refused(at(9)));
        key.expires = Some(at(9));
        assert!(!key.is_refused(at(8)) && key.is_refused(at(9)));
        key.is_disabled = true;
        assert!(key.is_refused(at(8)));
    }
}
