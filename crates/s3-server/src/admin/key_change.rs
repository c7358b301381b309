//! The changes of the key file that the console requests, and the rules for them. Pure, except for
//! random keys.

use std::time::{Duration, SystemTime};

use haul_file_store::Quota;
use http::StatusCode;
use serde_json::Value;

use crate::access::authorize::Principal;
use crate::access::keys::key::{Key, KeyList};
use crate::access::rights::{Grant, Right, Rights, Scope};
use crate::admin::policy_change::{NotApplied, PolicyChange};

/// The longest lifetime of a new key, in seconds: ten years.
const LIFETIME_S_MAX: u64 = 10 * 366 * 24 * 60 * 60;

const ADMINISTRATOR_IS_ELSEWHERE: &str = "The key pair of the administrator is not in the key file: change it where the server \
     reads it (--credentials or HAUL_ACCESS_KEY)\n";

const OWN_KEY: &str = "You are logged in with this key: log in with another key to change it\n";

const LAST_KEY: &str = "This is the last key with the right admin to all buckets, and you are logged in with \
     it: create another one and log in with that one first\n";

const CHANGED: &str =
    "It was changed meanwhile, or a new one has the name of an existing one: load the page again\n";

const LAST_TO_EXPIRE: &str = "This key is the last one with the right admin to all buckets that outlasts the key with \
     which you are logged in: create another one that does so first\n";

/// The client that changes keys.
#[derive(Debug, Clone, Copy)]
pub(super) enum Login<'a> {
    /// A client of a server without keys.
    Open,
    /// The administrator's access key, which is not in the key file.
    Administrator(&'a str),
    /// An access key in the key file.
    OfFile(&'a str),
}

impl<'a> Login<'a> {
    pub(super) fn of(principal: &'a Principal) -> Self {
        match principal {
            Principal::Key(key) if key.user.is_none() => Self::Administrator(&key.access_key),
            Principal::Key(key) => Self::OfFile(&key.access_key),
            Principal::Open | Principal::Anonymous(_) => Self::Open,
        }
    }
}

/// The status and the text for a rejected change.
pub(super) type Rejection = (StatusCode, String);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyChange {
    Create { user: String, lifetime: Option<Duration>, rights: NewRights },
    SetRights { access_key: String, rights: NewRights },
    SetDisabled { access_key: String, is_disabled: bool },
    Remove { access_key: String },
    SetQuota { user: String, quota: Quota },
    Policies(PolicyChange),
}

/// The rights that a change gives to a key. Its rights to other scopes remain.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NewRights {
    grants: Vec<Grant>,
    creates_buckets: bool,
    reads_metrics: bool,
}

/// Returns `true` if a client may read and change the keys: the administrator, or, on a server
/// without one, a key with all rights to all buckets.
pub(super) fn may_change(principal: &Principal, has_administrator: bool) -> bool {
    match principal {
        Principal::Open => true,
        Principal::Key(key) => {
            key.user.is_none() || !has_administrator && is_for_all_buckets(&key.grants)
        }
        Principal::Anonymous(_) => false,
    }
}

fn is_for_all_buckets(grants: &[Grant]) -> bool {
    grants.iter().any(|grant| grant.allows(Right::Admin, "*", ""))
}

impl KeyChange {
    /// Parses a change from a request body.
    pub(super) fn from_json(body: &[u8]) -> Result<Self, String> {
        let json: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let text = |name: &str| {
            let text = json[name].as_str().map(str::to_owned);
            text.ok_or_else(|| format!("the text \"{name}\" is missing"))
        };
        match &*text("change")? {
            "create" => {
                let lifetime = match &json["expires_in_s"] {
                    Value::Null => None,
                    value => {
                        let seconds = value.as_u64().filter(|s| (1..=LIFETIME_S_MAX).contains(s));
                        let text = "expires_in_s is a number of seconds of at most ten years";
                        Some(Duration::from_secs(seconds.ok_or(text)?))
                    }
                };
                Ok(Self::Create { user: text("user")?, lifetime, rights: NewRights::of(&json)? })
            }
            "rights" => Ok(Self::SetRights {
                access_key: text("access_key")?,
                rights: NewRights::of(&json)?,
            }),
            change @ ("disable" | "enable") => Ok(Self::SetDisabled {
                access_key: text("access_key")?,
                is_disabled: change == "disable",
            }),
            "remove" => Ok(Self::Remove { access_key: text("access_key")? }),
            "quota" => Ok(Self::SetQuota {
                user: text("user")?,
                quota: Quota { bytes: limit(&json, "bytes")?, objects: limit(&json, "objects")? },
            }),
            other => match PolicyChange::from_json(other, &json) {
                Some(change) => change.map(Self::Policies),
                None => Err(format!("there is no change \"{other}\"")),
            },
        }
    }

    /// Returns the operation's name in the audit log.
    pub(super) fn operation(&self) -> &'static str {
        match self {
            Self::Create { .. } => "CreateAccessKey",
            Self::SetRights { .. } => "PutAccessKeyRights",
            Self::SetDisabled { is_disabled: true, .. } => "DisableAccessKey",
            Self::SetDisabled { is_disabled: false, .. } => "EnableAccessKey",
            Self::Remove { .. } => "DeleteAccessKey",
            Self::SetQuota { .. } => "PutUserQuota",
            Self::Policies(change) => change.operation(),
        }
    }

    /// Returns the changed access key; `None` for a new key, and for what is not a key.
    pub(super) fn access_key(&self) -> Option<&str> {
        match self {
            Self::Create { .. } | Self::SetQuota { .. } | Self::Policies(_) => None,
            Self::SetRights { access_key, .. }
            | Self::SetDisabled { access_key, .. }
            | Self::Remove { access_key } => Some(access_key),
        }
    }

    /// Returns what the change gives, as a field of the audit log; `None` if it only takes away.
    pub(super) fn given(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Create { rights, .. } | Self::SetRights { rights, .. } => {
                Some(("rights", rights.to_text()))
            }
            Self::SetQuota { user, quota } => {
                let limit =
                    |limit: Option<u64>| limit.map_or("none".to_owned(), |limit| limit.to_string());
                let (bytes, objects) = (limit(quota.bytes), limit(quota.objects));
                Some(("quota", format!("user={user}; bytes={bytes}; objects={objects}")))
            }
            Self::Policies(change) => Some(change.given()),
            Self::SetDisabled { .. } | Self::Remove { .. } => None,
        }
    }

    /// Applies the change for a client that [may change](may_change) keys, and returns a new key.
    pub(super) fn apply(
        &self,
        list: &mut KeyList,
        login: Login<'_>,
        now: SystemTime,
    ) -> Result<Option<Key>, Rejection> {
        let is_own = |own: &str| self.access_key() == Some(own);
        match login {
            Login::Administrator(own) if is_own(own) => {
                return Err((StatusCode::CONFLICT, ADMINISTRATOR_IS_ELSEWHERE.to_owned()));
            }
            // Another client may have changed the key file meanwhile.
            Login::OfFile(own) if !admins(list, now).any(|key| key.access_key == own) => {
                let text = "The key that logged in has lost its rights\n".to_owned();
                return Err((StatusCode::FORBIDDEN, text));
            }
            Login::OfFile(own) if is_own(own) => {
                let others = admins(list, now).filter(|key| key.access_key != own).count();
                let text = if others == 0 { LAST_KEY } else { OWN_KEY };
                return Err((StatusCode::CONFLICT, text.to_owned()));
            }
            _ => {}
        }
        let end = last_end(list, now);
        let new = self.change(list, now)?;
        // A client with a key that expires must not remove the last key that expires later.
        if matches!(login, Login::OfFile(_)) && last_end(list, now) < end {
            return Err((StatusCode::CONFLICT, LAST_TO_EXPIRE.to_owned()));
        }
        Ok(new)
    }

    fn change(&self, list: &mut KeyList, now: SystemTime) -> Result<Option<Key>, Rejection> {
        let invalid = |error: crate::error::Error| (StatusCode::BAD_REQUEST, error.to_string());
        match self {
            Self::Create { user, lifetime, rights } => {
                let key = list.create(user, now).map_err(invalid)?;
                key.expires = lifetime.map(|lifetime| now + lifetime);
                rights.apply(key).map_err(invalid)?;
                return Ok(Some(key.clone()));
            }
            Self::SetRights { access_key, rights } => {
                rights.apply(find(list, access_key)?).map_err(invalid)?;
            }
            Self::SetDisabled { access_key, is_disabled } => {
                find(list, access_key)?.is_disabled = *is_disabled;
            }
            Self::Remove { access_key } => {
                find(list, access_key)?;
                list.remove(access_key);
            }
            Self::SetQuota { user, quota } => {
                list.set_quota(user, *quota).map_err(invalid)?;
            }
            Self::Policies(change) => {
                let rejection = |why| match why {
                    NotApplied::Invalid(error) => invalid(error),
                    NotApplied::Missing => {
                        (StatusCode::NOT_FOUND, "There is no such policy\n".to_owned())
                    }
                    NotApplied::Changed => (StatusCode::CONFLICT, CHANGED.to_owned()),
                };
                change.apply(list.policies_mut()).map_err(rejection)?;
            }
        }
        Ok(None)
    }
}

/// Returns a limit of a quota; `None` for no limit.
fn limit(json: &Value, name: &str) -> Result<Option<u64>, String> {
    match &json[name] {
        Value::Null => Ok(None),
        value => {
            let limit = value.as_u64();
            limit.map(Some).ok_or_else(|| format!("\"{name}\" is neither a number nor null"))
        }
    }
}

/// Returns the keys that have all rights to all buckets and are accepted at the time `now`.
fn admins(list: &KeyList, now: SystemTime) -> impl Iterator<Item = &Key> {
    list.keys().iter().filter(move |key| !key.is_refused(now) && is_for_all_buckets(&key.grants))
}

/// Returns the time at which the last of these keys expires, as a pair whose greatest value is
/// `(true, None)`, which means never.
fn last_end(list: &KeyList, now: SystemTime) -> Option<(bool, Option<SystemTime>)> {
    admins(list, now).map(|key| (key.expires.is_none(), key.expires)).max()
}

fn find<'a>(list: &'a mut KeyList, access_key: &str) -> Result<&'a mut Key, Rejection> {
    let missing = || {
        let text = format!("There is no access key {access_key} in the key file\n");
        (StatusCode::NOT_FOUND, text)
    };
    list.key_mut(access_key).ok_or_else(missing)
}

impl NewRights {
    fn of(json: &Value) -> Result<Self, String> {
        let flag = |name: &str| {
            let flag = json[name].as_bool();
            flag.ok_or_else(|| format!("\"{name}\" is neither true nor false"))
        };
        let grants = json["grants"].as_array().ok_or("the list \"grants\" is missing")?;
        let grant = |grant: &Value| {
            let text = |name: &str| {
                grant[name].as_str().ok_or_else(|| format!("a grant has no text \"{name}\""))
            };
            let scope: Scope = text("scope")?.parse()?;
            let rights = match text("rights")? {
                "" => Rights::default(),
                rights => rights.parse()?,
            };
            Ok::<_, String>(Grant { scope, rights })
        };
        let grants = grants.iter().map(grant).collect::<Result<_, _>>()?;
        let (creates_buckets, reads_metrics) = (flag("create_buckets")?, flag("metrics")?);
        Ok(Self { grants, creates_buckets, reads_metrics })
    }

    fn to_text(&self) -> String {
        let server = [("create-buckets", self.creates_buckets), ("metrics", self.reads_metrics)];
        let server = server.into_iter().filter(|(_, has)| *has).map(|(name, _)| name.to_owned());
        let grants = self.grants.iter().map(|grant| format!("{}={}", grant.rights, grant.scope));
        grants.chain(server).collect::<Vec<_>>().join("; ")
    }

    fn apply(&self, key: &mut Key) -> crate::error::Result<()> {
        for Grant { scope, rights } in &self.grants {
            key.set(scope.clone(), *rights)?;
        }
        (key.creates_buckets, key.reads_metrics) = (self.creates_buckets, self.reads_metrics);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::access::keys::key_ring::{AllKeys, KeyRing};

    fn change(json: &Value) -> KeyChange {
        KeyChange::from_json(json.to_string().as_bytes()).unwrap()
    }

    fn rights(access_key: &str, scope: &str, rights: &str) -> KeyChange {
        change(&serde_json::json!({
            "change": "rights", "access_key": access_key, "create_buckets": false,
            "metrics": false, "grants": [{ "scope": scope, "rights": rights }],
        }))
    }

    fn admin(list: &mut KeyList, user: &str) -> String {
        let key = list.create(user, SystemTime::now()).unwrap();
        key.allow("*".parse().unwrap(), "admin".parse().unwrap()).unwrap();
        key.access_key.clone()
    }

    #[test]
    fn rights_of_exactly_one_scope_are_replaced() {
        let mut list = KeyList::default();
        let name = list.create("alice", SystemTime::now()).unwrap().access_key.clone();
        let now = SystemTime::now();
        let grants = |list: &mut KeyList| {
            let grants = &list.key_mut(&name).unwrap().grants;
            grants.iter().map(|g| format!("{}={}", g.rights, g.scope)).collect::<Vec<_>>()
        };
        for (scope, new, expected) in [
            ("*", "read,list", &["read,list=*"][..]),
            ("photos/ä \"<b>", "write", &["read,list=*", "write=photos/ä \"<b>"]),
            ("*", "read", &["read=*", "write=photos/ä \"<b>"]),
            ("*", "", &["write=photos/ä \"<b>"]),
        ] {
            assert_eq!(
                rights(&name, scope, new).apply(&mut list, Login::Administrator("x"), now),
                Ok(None)
            );
            assert_eq!(grants(&mut list), expected);
        }
        let refused =
            rights(&name, "photos/a", "admin").apply(&mut list, Login::Open, now).unwrap_err();
        assert_eq!(refused.0, StatusCode::BAD_REQUEST);
        let missing =
            rights("HAULX", "photos", "read").apply(&mut list, Login::Open, now).unwrap_err();
        assert_eq!(missing.0, StatusCode::NOT_FOUND);
    }

    #[test]
    fn key_that_logged_in_is_not_changed() {
        let (mut list, now) = (KeyList::default(), SystemTime::now());
        let own = admin(&mut list, "alice");
        let before = list.clone();
        for change in [
            rights(&own, "*", ""),
            KeyChange::SetDisabled { access_key: own.clone(), is_disabled: true },
            KeyChange::Remove { access_key: own.clone() },
        ] {
            let (status, text) = change.apply(&mut list, Login::OfFile(&own), now).unwrap_err();
            assert_eq!(status, StatusCode::CONFLICT);
            assert!(text.contains("the last key with the right admin"), "{text}");
            assert_eq!(list, before);
        }
        let other = admin(&mut list, "bob");
        let own_change = KeyChange::Remove { access_key: own.clone() };
        let (_, text) = own_change.apply(&mut list, Login::OfFile(&own), now).unwrap_err();
        assert!(text.contains("log in with another key"), "{text}");
        let root = KeyChange::Remove { access_key: "root".to_owned() };
        let (_, text) = root.apply(&mut list, Login::Administrator("root"), now).unwrap_err();
        assert!(text.contains("not in the key file"), "{text}");
        let remove = KeyChange::Remove { access_key: other };
        assert_eq!(remove.apply(&mut list, Login::OfFile(&own), now), Ok(None));
        assert_eq!(list, before);
        list.key_mut(&own).unwrap().is_disabled = true;
        let create = rights(&own, "*", "read");
        let (status, _) = create.apply(&mut list, Login::OfFile(&own), now).unwrap_err();
        assert_eq!(status, StatusCode::FORBIDDEN, "a key that was disabled meanwhile");
    }

    #[test]
    fn admin_key_that_expires_last_is_not_removed_by_one_that_expires_earlier() {
        let (mut list, now) = (KeyList::default(), SystemTime::now());
        let (own, other) = (admin(&mut list, "alice"), admin(&mut list, "bob"));
        list.key_mut(&own).unwrap().expires = Some(now + Duration::from_secs(60));
        for change in [
            rights(&other, "*", "read"),
            KeyChange::SetDisabled { access_key: other.clone(), is_disabled: true },
            KeyChange::Remove { access_key: other.clone() },
        ] {
            let mut changed = list.clone();
            let (status, text) = change.apply(&mut changed, Login::OfFile(&own), now).unwrap_err();
            assert_eq!(status, StatusCode::CONFLICT);
            assert!(text.contains("that outlasts the key"), "{text}");
        }
        let third = admin(&mut list, "carol");
        let remove = KeyChange::Remove { access_key: other };
        assert_eq!(remove.apply(&mut list, Login::OfFile(&own), now), Ok(None));
        let remove = KeyChange::Remove { access_key: third };
        assert_eq!(remove.apply(&mut list, Login::Administrator("root"), now), Ok(None));
    }

    #[test]
    fn only_administrators_change_keys() {
        let mut list = KeyList::default();
        let all = admin(&mut list, "alice");
        let part = list.create("bob", SystemTime::now()).unwrap();
        part.allow("photos".parse().unwrap(), "admin".parse().unwrap()).unwrap();
        part.allow("*".parse().unwrap(), "read,write,list,delete".parse().unwrap()).unwrap();
        let part = part.access_key.clone();
        let ring = Some(Arc::new(KeyRing::new(list)));
        let keys = AllKeys { administrator: None, ring };
        let may = |access_key: &str, has_administrator| {
            may_change(&Principal::Key(keys.find(access_key).unwrap()), has_administrator)
        };
        assert_eq!([may(&all, false), may(&all, true)], [true, false]);
        assert_eq!([may(&part, false), may(&part, true)], [false; 2]);
        assert!(!may_change(&Principal::Anonymous(None), false));
    }

    #[test]
    fn malformed_changes_are_refused() {
        for text in [
            "",
            "[]",
            "{}",
            "{\"change\":\"rotate\",\"access_key\":\"a\"}",
            "{\"change\":\"remove\"}",
            "{\"change\":\"remove\",\"access_key\":7}",
            "{\"change\":\"create\",\"user\":\"a\"}",
            "{\"change\":\"create\",\"user\":\"a\",\"grants\":[],\"metrics\":1,\
             \"create_buckets\":false}",
            "{\"change\":\"create\",\"user\":\"a\",\"grants\":[{\"scope\":\"photos\",\
             \"rights\":\"all\"}],\"metrics\":false,\"create_buckets\":false}",
            "{\"change\":\"create\",\"user\":\"a\",\"grants\":[],\"metrics\":false,\
             \"create_buckets\":false,\"expires_in_s\":99999999999}",
        ] {
            assert!(KeyChange::from_json(text.as_bytes()).is_err(), "{text}");
        }
    }
}
