//! Two users and more, with different rights, through HTTP. `docs/access.md` names these tests.

mod console_keys;
mod console_login;
mod encryption;
mod expected_owner;
mod keys;
mod list_owners;
mod listening;
mod lists;
mod lock;
mod policy;
mod policy_evasion;
mod policy_owner;
mod provider_login;
mod providers;
mod quotas;
mod replaced_bucket;
mod rights;
mod sessions;
mod user_policies;
mod users;

use std::sync::Arc;
use std::time::SystemTime;

use haul_s3_server::{Credentials, EventTargets, Key, KeyList, KeyRing, Logs};
use tempfile::TempDir;

use crate::client::{Reply, Running, assert_refused};
use crate::signing::{Signer, hash};

/// A server with an administrator and the keys of a list, which changes while it runs.
pub(crate) struct Keyed {
    pub(crate) server: Running,
    ring: Arc<KeyRing>,
    list: KeyList,
}

fn administrator() -> Credentials {
    Credentials { access_key: "root".into(), secret_key: "root-secret".into() }
}

impl Keyed {
    /// Starts a server with the buckets `bucket` and `other`, which belong to the administrator.
    pub(crate) fn new() -> Self {
        Self::on(tempfile::tempdir().unwrap(), KeyList::default(), Logs::default()).with_objects()
    }

    /// Like [`Self::new`], with encryption keys.
    fn with_encryption(keys: &str) -> Self {
        let list = KeyList::default();
        let ring = Arc::new(KeyRing::new(list.clone()));
        let server = Running::with_keys_and_encryption(Some(administrator()), &ring, keys);
        Self { server, ring, list }.with_objects()
    }

    /// Like [`Self::new`], with events.
    fn with_events() -> Self {
        let list = KeyList::default();
        let ring = Arc::new(KeyRing::new(list.clone()));
        let targets = Arc::new(EventTargets::new(Vec::new()).unwrap());
        let server = Running::with_keys_and_events(Some(administrator()), &ring, &targets);
        Self { server, ring, list }.with_objects()
    }

    fn with_objects(self) -> Self {
        for bucket in ["/bucket", "/other"] {
            assert_eq!(self.root("PUT", bucket, b"").status, 200);
        }
        for key in ["/bucket/dir/key", "/bucket/key", "/other/key"] {
            assert_eq!(self.root("PUT", key, b"hello").status, 200);
        }
        self
    }

    fn on(dir: TempDir, list: KeyList, logs: Logs) -> Self {
        let ring = Arc::new(KeyRing::new(list.clone()));
        let server = Running::with_keys(dir, Some(administrator()), &ring, logs);
        Self { server, ring, list }
    }

    /// Adds a key of a user with these rights.
    pub(crate) fn key(&mut self, user: &str, grants: &[(&str, &str)]) -> Key {
        self.key_with(user, grants, |_key| {})
    }

    pub(crate) fn key_with(
        &mut self,
        user: &str,
        grants: &[(&str, &str)],
        set: impl Fn(&mut Key),
    ) -> Key {
        let key = self.list.create(user, SystemTime::now()).unwrap();
        for (rights, scope) in grants {
            key.allow(scope.parse().unwrap(), rights.parse().unwrap()).unwrap();
        }
        set(key);
        let key = key.clone();
        self.ring.replace(self.list.clone());
        key
    }

    /// Changes the list, as `haul keys` does.
    fn change(&mut self, change: impl FnOnce(&mut KeyList)) {
        change(&mut self.list);
        self.ring.replace(self.list.clone());
    }

    pub(crate) fn root(&self, method: &str, target: &str, body: &[u8]) -> Reply {
        let Credentials { access_key, secret_key } = administrator();
        let (access_key, secret_key) = (access_key.as_str(), secret_key.as_str());
        let signer = Signer { client: self.server.s3, access_key, secret_key };
        signer.send(method, target, &hash(body), body)
    }

    pub(crate) fn signer<'a>(&self, key: &'a Key) -> Signer<'a> {
        let (access_key, secret_key) = (&*key.access_key, &*key.secret_key);
        Signer { client: self.server.s3, access_key, secret_key }
    }

    pub(crate) fn send(&self, key: &Key, method: &str, target: &str, body: &[u8]) -> Reply {
        self.signer(key).send(method, target, &hash(body), body)
    }

    fn send_with(&self, key: &Key, method: &str, target: &str, more: &[(&str, &str)]) -> Reply {
        self.signer(key).send_with(method, target, &hash(b""), more, |_| Vec::new())
    }

    fn copy(&self, key: &Key, from: &str, to: &str) -> Reply {
        self.send_with(key, "PUT", to, &[("x-amz-copy-source", from)])
    }
}

/// Returns `true` if a request was not refused for a missing right. The response to HEAD has no
/// body.
#[track_caller]
fn is_allowed(reply: &Reply, method: &str) -> bool {
    if reply.status != 403 {
        return true;
    }
    if method != "HEAD" {
        assert_refused(reply, 403, "AccessDenied");
        let message = reply.xml("Message").unwrap();
        assert!(message.contains(": it needs "), "{message}");
    }
    false
}
