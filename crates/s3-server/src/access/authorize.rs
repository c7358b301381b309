//! Decides whether a client's grants allow an operation. Pure.

use std::sync::Arc;

use crate::access::action::Action;
use crate::access::keys::key_ring::{ActiveKey, Keys};
use crate::access::rights::{Grant, Right};

/// The sender of a request, after its signature was verified.
#[derive(Debug, Clone)]
pub(crate) enum Principal {
    /// Any client of a server without keys.
    Open,
    /// The holder of a key.
    Key(Arc<ActiveKey>),
    /// A client that sent no signature to a server with keys. `None` if the server has no key file.
    Anonymous(Option<Arc<Keys>>),
}

impl Principal {
    /// Returns the access key, for the logs; for a temporary key with its user.
    pub(crate) fn access_key(&self) -> Option<Arc<str>> {
        match self {
            Self::Key(key) => Some(key.log_name()),
            Self::Open | Self::Anonymous(_) => None,
        }
    }
}

/// The decision about an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Allowed,
    /// Allowed if the principal's user owns the bucket.
    IfOwner,
    Denied,
}

/// Decides about an action in a bucket. `name` is a key, or a listing's prefix.
pub(crate) fn authorize(
    principal: &Principal,
    action: Action,
    bucket: &str,
    name: &str,
) -> Decision {
    let (key, grants): (_, &[Grant]) = match principal {
        Principal::Open => return Decision::Allowed,
        Principal::Key(key) if key.user.is_none() => return Decision::Allowed,
        Principal::Key(key) => (Some(key), &key.grants),
        Principal::Anonymous(keys) => (None, keys.as_ref().map_or(&[], |keys| &keys.anonymous)),
    };
    let has = |right: Right, name: &str| grants.iter().any(|g| g.allows(right, bucket, name));
    let is_granted = match action {
        Action::ListBuckets => key.is_some(),
        Action::CreateBucket => key.is_some_and(|key| key.creates_buckets) || has(Right::Admin, ""),
        Action::UseBucket => grants.iter().any(|grant| grant.scope.is_of(bucket)),
        Action::Use(right) => has(right, name),
        Action::Administer => grants.iter().any(|g| g.allows(Right::Admin, "*", "")),
    };
    let is_for_owners = !matches!(action, Action::ListBuckets | Action::Administer);
    match key {
        _ if is_granted => Decision::Allowed,
        Some(_) if is_for_owners => Decision::IfOwner,
        _ => Decision::Denied,
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::access::keys::credentials::Credentials;
    use crate::access::keys::key::KeyList;
    use crate::access::keys::key_ring::AllKeys;
    use crate::access::keys::key_ring::KeyRing;
    use Decision::{Allowed, Denied, IfOwner};

    const READ: Action = Action::Use(Right::Read);
    const WRITE: Action = Action::Use(Right::Write);
    const LIST: Action = Action::Use(Right::List);
    const DELETE: Action = Action::Use(Right::Delete);
    const ADMIN: Action = Action::Use(Right::Admin);
    const ALL: [Action; 9] = [
        Action::ListBuckets,
        Action::CreateBucket,
        Action::UseBucket,
        READ,
        WRITE,
        LIST,
        DELETE,
        ADMIN,
        Action::Administer,
    ];

    /// Returns two principals with these grants: a key, and a client without a signature.
    fn principals(grants: &[(&str, &str)], creates_buckets: bool) -> [Principal; 2] {
        let mut list = KeyList::default();
        let key = list.create("alice", SystemTime::now()).unwrap();
        key.creates_buckets = creates_buckets;
        for (rights, scope) in grants {
            key.allow(scope.parse().unwrap(), rights.parse().unwrap()).unwrap();
        }
        let name = key.access_key.clone();
        list.anonymous = key.grants.clone();
        let all = AllKeys { administrator: None, ring: Some(Arc::new(KeyRing::new(list))) };
        [Principal::Key(all.find(&name).unwrap()), Principal::Anonymous(all.file_keys())]
    }

    #[test]
    fn administrator_and_clients_of_an_open_server_have_all_rights() {
        let credentials = Credentials { access_key: "a".into(), secret_key: "b".into() };
        let administrator = Principal::Key(Arc::new(ActiveKey::administrator(credentials)));
        for principal in [administrator, Principal::Open] {
            for action in ALL {
                assert_eq!(authorize(&principal, action, "bucket", "key"), Allowed, "{action:?}");
            }
        }
    }

    #[test]
    fn without_grants_only_ownership_allows() {
        let [key, anonymous] = principals(&[], false);
        for action in ALL {
            let expected = match action {
                Action::ListBuckets => Allowed,
                Action::Administer => Denied,
                _ => IfOwner,
            };
            assert_eq!(authorize(&key, action, "bucket", "key"), expected, "{action:?}");
            for anonymous in [&anonymous, &Principal::Anonymous(None)] {
                assert_eq!(authorize(anonymous, action, "bucket", "key"), Denied, "{action:?}");
            }
        }
    }

    #[test]
    fn each_right_allows_its_actions_only() {
        for (right, allowed) in [
            ("read", &[READ][..]),
            ("write", &[WRITE]),
            ("list", &[LIST]),
            ("delete", &[DELETE]),
            ("admin", &[READ, WRITE, LIST, DELETE, ADMIN, Action::CreateBucket]),
        ] {
            let [key, anonymous] = principals(&[(right, "bucket")], false);
            for action in ALL {
                let is_allowed = allowed.contains(&action) || action == Action::UseBucket;
                let key_outcome = authorize(&key, action, "bucket", "key");
                let is_expected = is_allowed || action == Action::ListBuckets;
                assert_eq!(key_outcome == Allowed, is_expected, "{right} {action:?}");
                let anonymous_outcome = authorize(&anonymous, action, "bucket", "key");
                let expected = if is_allowed { Allowed } else { Denied };
                assert_eq!(anonymous_outcome, expected, "{right} {action:?}");
                let other = authorize(&anonymous, action, "other", "key");
                assert_eq!(other, Denied, "{right} {action:?}");
            }
        }
    }

    #[test]
    fn grants_are_limited_to_their_bucket_and_prefix() {
        let grants = [("read", "bucket/a/"), ("list", "bucket/a/"), ("read", "*/public/")];
        let [_, anonymous] = principals(&grants, false);
        for (action, bucket, name, expected) in [
            (READ, "bucket", "a/key", Allowed),
            (READ, "bucket", "a/", Allowed),
            (READ, "bucket", "a", Denied),
            (READ, "bucket", "b/a/key", Denied),
            (READ, "bucket2", "a/key", Denied),
            (READ, "other", "public/key", Allowed),
            (READ, "other", "a/key", Denied),
            (WRITE, "bucket", "a/key", Denied),
            // A listing must lie within the grant.
            (LIST, "bucket", "a/b", Allowed),
            (LIST, "bucket", "a/", Allowed),
            (LIST, "bucket", "a", Denied),
            (LIST, "bucket", "", Denied),
            (LIST, "other", "public/", Denied),
            (Action::UseBucket, "bucket", "", Allowed),
            (Action::UseBucket, "any", "", Allowed),
        ] {
            assert_eq!(
                authorize(&anonymous, action, bucket, name),
                expected,
                "{action:?} {bucket}/{name}"
            );
        }
    }

    #[test]
    fn right_to_all_buckets_administers() {
        for (grant, expected) in [
            (("admin", "*"), Allowed),
            (("admin", "bucket"), Denied),
            (("read,write,list,delete", "*"), Denied),
        ] {
            let [key, _] = principals(&[grant], true);
            assert_eq!(authorize(&key, Action::Administer, "bucket", ""), expected, "{grant:?}");
        }
    }

    #[test]
    fn creation_of_buckets_is_a_right_of_its_own() {
        let [key, _] = principals(&[], true);
        assert_eq!(authorize(&key, Action::CreateBucket, "any", ""), Allowed);
        assert_eq!(authorize(&key, ADMIN, "any", ""), IfOwner);
        let [key, _] = principals(&[("admin", "mine")], false);
        assert_eq!(authorize(&key, Action::CreateBucket, "mine", ""), Allowed);
        assert_eq!(authorize(&key, Action::CreateBucket, "other", ""), IfOwner);
        let [key, _] = principals(&[("write,delete", "mine")], false);
        assert_eq!(authorize(&key, Action::CreateBucket, "mine", ""), IfOwner);
    }
}
