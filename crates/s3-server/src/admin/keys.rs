//! The server's keys in the console: the key list, without secret keys, and key changes.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use haul_file_store::{Quota, QuotaState};
use haul_http_engine::{RequestBody, RequestIdentity};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::access::authorize::Principal;
use crate::access::keys::key::{Key, KeyList};
use crate::access::keys::key_file::KeyFile;
use crate::access::keys::key_ring::{ActiveKey, AllKeys};
use crate::access::keys::policies::Group;
use crate::access::rights::Grant;
use crate::admin::key_change::{self, KeyChange, Login};
use crate::admin::page::{Rejection, json_page, plain, text};
use crate::audit::{AuditLog, KeyRecord};

/// The maximum length of a change's body, in bytes.
const BODY_BYTES_MAX: usize = 64 << 10;

const FORBIDDEN: &str = "Only the administrator, or on a server without one a key with the right \
                         admin to all buckets, may list and change keys\n";

/// The audit log, and the client that it names.
pub(crate) struct KeyLog {
    pub(crate) audit: Option<AuditLog>,
    pub(crate) identity: RequestIdentity,
    pub(crate) client: Option<IpAddr>,
}

/// A server's keys and key file, as the console shows and changes them.
pub(super) struct KeyPage {
    pub(super) keys: AllKeys,
    pub(super) file: Option<Arc<dyn KeyFile>>,
    /// The usage of the users whose quota the store has applied.
    pub(super) used: Vec<QuotaState>,
}

impl KeyPage {
    /// Returns the response with the keys, if the client may change them.
    pub(super) fn page(&self, principal: &Principal) -> Result<Response<Bytes>, Rejection> {
        if !key_change::may_change(principal, self.keys.administrator.is_some()) {
            return Err((StatusCode::FORBIDDEN, FORBIDDEN));
        }
        let login = match principal {
            Principal::Key(key) => Some(&*key.access_key),
            _ => None,
        };
        Ok(json_page(&json!({
            "login": login,
            "read_only_reason": self.read_only_reason(),
            "keys": json(&self.keys),
            "quotas": self.quotas(),
            "policies": self.policies(),
            "groups": self.groups(),
        })))
    }

    /// Returns the users' quotas, and the usage of users whose quota is applied.
    fn quotas(&self) -> Value {
        let Some(keys) = self.keys.file_keys() else { return json!([]) };
        let usage =
            |user: &str| self.used.iter().find(|state| state.name == user).map(|state| state.usage);
        let quota = |(user, quota): (&String, &Quota)| {
            let usage = usage(user);
            json!({
                "user": user,
                "quota_bytes": quota.bytes,
                "quota_objects": quota.objects,
                "used_bytes": usage.map(|usage| usage.bytes),
                "used_objects": usage.map(|usage| usage.objects),
            })
        };
        keys.quotas.iter().map(quota).collect()
    }

    /// Returns the policies of users and groups, with the users that have them of their own.
    fn policies(&self) -> Value {
        let Some(keys) = self.keys.file_keys() else { return json!([]) };
        let list = &keys.policies;
        let policy = |(name, text): (&str, &str)| {
            let users = list.users().iter().filter(|(_, policies)| policies.contains(name));
            let users: Vec<_> = users.map(|(user, _)| user).collect();
            json!({ "name": name, "text": text, "users": users })
        };
        list.texts().map(policy).collect()
    }

    /// Returns the groups, with their users and policies.
    fn groups(&self) -> Value {
        let Some(keys) = self.keys.file_keys() else { return json!([]) };
        let group = |(name, group): (&String, &Group)| {
            let (users, policies): (Vec<_>, Vec<_>) =
                (group.users().collect(), group.policies().collect());
            json!({ "name": name, "users": users, "policies": policies })
        };
        keys.policies.groups().iter().map(group).collect()
    }

    /// Returns the reason why the keys cannot be changed; `None` if they can.
    fn read_only_reason(&self) -> Option<String> {
        match &self.file {
            _ if self.keys.is_empty() => Some(
                "The server has no keys: every client of this machine has all rights. \
                 \"haul keys init\" creates a key file for --keys."
                    .to_owned(),
            ),
            None => Some(
                "The server has no key file, only the key pair of the administrator. \
                 \"haul keys init\" creates one for --keys."
                    .to_owned(),
            ),
            Some(file) => file.read_only_reason(),
        }
    }

    /// Executes the change in a request body, and returns its result.
    pub(super) async fn change(
        self,
        body: RequestBody,
        principal: Principal,
        log: KeyLog,
    ) -> Response<Bytes> {
        let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else {
            return plain(StatusCode::BAD_REQUEST, "The body is too long, or was cut\n");
        };
        let change = match KeyChange::from_json(&body.to_bytes()) {
            Ok(change) => change,
            Err(reason) => return text(StatusCode::BAD_REQUEST, format!("{reason}\n")),
        };
        // The thread continues if the client disconnects, so that the change is logged.
        let execute = move || {
            let outcome = self.execute(&change, &principal);
            log.append(&change, &outcome);
            outcome
        };
        match spawn_blocking(execute).await {
            Ok(Ok(Some(new))) => {
                let Key { access_key, secret_key, .. } = new;
                json_page(&json!({ "access_key": access_key, "secret_key": secret_key }))
            }
            Ok(Ok(None)) => json_page(&json!({})),
            Ok(Err((status, reason))) => text(status, reason),
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        }
    }

    fn execute(
        &self,
        change: &KeyChange,
        principal: &Principal,
    ) -> Result<Option<Key>, key_change::Rejection> {
        if !key_change::may_change(principal, self.keys.administrator.is_some()) {
            return Err((StatusCode::FORBIDDEN, FORBIDDEN.to_owned()));
        }
        let file = match (&self.file, self.read_only_reason()) {
            (Some(file), None) => file,
            (_, reason) => {
                let reason = format!("{}\n", reason.unwrap_or_default());
                return Err((StatusCode::CONFLICT, reason));
            }
        };
        let mut outcome = Ok(None);
        let mut apply = |list: &mut KeyList| {
            outcome = change.apply(list, Login::of(principal), SystemTime::now());
            outcome.is_ok()
        };
        let failed = |reason| (StatusCode::INTERNAL_SERVER_ERROR, format!("{reason}\n"));
        file.update(&mut apply).map_err(failed)?;
        outcome
    }
}

impl KeyLog {
    /// Appends the line for an attempt to log in with this name, which may not exist.
    pub(super) async fn logged_in(
        self,
        name: Option<&str>,
        status: StatusCode,
        error: Option<&str>,
    ) {
        let Self { audit: Some(audit), identity, client } = self else { return };
        let identity = RequestIdentity { user: name.map(Arc::from), ..identity };
        let error = error.map(|error| error.trim_end().to_owned());
        let append = move || {
            audit.key_changed(&KeyRecord {
                operation: "LogIn",
                identity: &identity,
                client,
                access_key: None,
                status: status.as_u16(),
                error: error.as_deref(),
                given: None,
            });
        };
        // A failure to append is reported and counted by the log.
        spawn_blocking(append).await.ok();
    }

    fn append(&self, change: &KeyChange, outcome: &Result<Option<Key>, key_change::Rejection>) {
        let Some(audit) = &self.audit else { return };
        let new = outcome.as_ref().ok().and_then(Option::as_ref);
        let (status, error) = match outcome {
            Ok(_) => (StatusCode::OK, None),
            Err((status, reason)) => (*status, Some(reason.trim_end())),
        };
        audit.key_changed(&KeyRecord {
            operation: change.operation(),
            identity: &self.identity,
            client: self.client,
            access_key: new.map(|key| &*key.access_key).or_else(|| change.access_key()),
            status: status.as_u16(),
            error,
            given: change.given(),
        });
    }
}

/// Returns the keys, sorted by user, and the rights of requests without a signature.
fn json(keys: &AllKeys) -> Value {
    let file_keys = keys.file_keys();
    let mut listed: Vec<(&ActiveKey, bool)> = Vec::new();
    if let Some(keys) = &file_keys {
        listed.extend(keys.iter().map(|key| (key, false)));
        listed.extend(keys.disabled.iter().map(|key| (key, true)));
    }
    listed.sort_by_key(|(key, _)| (key.user.clone(), key.access_key.clone()));
    let administrator = keys.administrator.iter().map(|key| (&**key, false));
    let all = administrator.chain(listed).map(|(key, is_disabled)| key_json(key, is_disabled));
    let mut all: Vec<Value> = all.collect();
    if let Some(keys) = file_keys.as_ref().filter(|keys| !keys.anonymous.is_empty()) {
        all.push(json!({
            "access_key": null,
            "user": null,
            "is_administrator": false,
            "is_disabled": false,
            "creates_buckets": false,
            "reads_metrics": false,
            "expires_unix_s": null,
            "grants": grants_json(&keys.anonymous),
        }));
    }
    all.into()
}

fn key_json(key: &ActiveKey, is_disabled: bool) -> Value {
    json!({
        "access_key": &*key.access_key,
        "user": key.user.as_deref(),
        "is_administrator": key.user.is_none(),
        "is_disabled": is_disabled,
        "creates_buckets": key.creates_buckets,
        "reads_metrics": key.reads_metrics,
        "expires_unix_s": key.expires_s(),
        "grants": grants_json(&key.grants),
    })
}

fn grants_json(grants: &[Grant]) -> Value {
    let grant = |grant: &Grant| json!({ "scope": grant.scope.to_string(), "rights": grant.rights.to_string() });
    grants.iter().map(grant).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::access::keys::credentials::Credentials;
    use crate::access::keys::key::KeyList;
    use crate::access::keys::key_ring::KeyRing;
    use crate::access::keys::policies::PolicyHolder;

    #[test]
    fn keys_have_their_rights_and_no_secrets() {
        let mut list = KeyList::default();
        let disabled = list.create("carol", SystemTime::now()).unwrap();
        disabled.is_disabled = true;
        let key = list.create("alice", SystemTime::now()).unwrap();
        key.allow("photos/2026/".parse().unwrap(), "read,list".parse().unwrap()).unwrap();
        key.expires = Some(UNIX_EPOCH + Duration::from_secs(9_999_999_999));
        let key = key.clone();
        let credentials = Credentials { access_key: "root".into(), secret_key: "root/key".into() };
        let administrator = Some(Arc::new(ActiveKey::administrator(credentials)));
        let keys = AllKeys { administrator, ring: Some(Arc::new(KeyRing::new(list))) };
        let json = json(&keys);
        assert_eq!(json.as_array().unwrap().len(), 3, "{json}");
        assert_eq!(
            (&json[0]["access_key"], &json[0]["is_administrator"]),
            (&"root".into(), &true.into())
        );
        assert_eq!(
            (&json[1]["user"], &json[1]["expires_unix_s"]),
            (&"alice".into(), &9_999_999_999_u64.into())
        );
        let grants = serde_json::json!([{ "scope": "photos/2026/", "rights": "read,list" }]);
        assert_eq!(json[1]["grants"], grants);
        assert_eq!((&json[2]["user"], &json[2]["is_disabled"]), (&"carol".into(), &true.into()));
        let text = json.to_string();
        assert!(!text.contains(&key.secret_key) && !text.contains("root/key"), "{text}");
        assert_eq!(super::json(&AllKeys::default()), serde_json::json!([]));
    }

    #[test]
    fn policies_and_groups_are_listed_with_their_holders() {
        let mut list = KeyList::default();
        let text = r#"{"Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*"}}"#;
        let policies = list.policies_mut();
        policies.put("all", text).unwrap();
        policies.add_to_group("staff", &["ben".to_owned()]).unwrap();
        policies.attach("all", PolicyHolder::User("ann")).unwrap();
        policies.attach("all", PolicyHolder::Group("staff")).unwrap();
        let keys = AllKeys { administrator: None, ring: Some(Arc::new(KeyRing::new(list))) };
        let page = KeyPage { keys, file: None, used: Vec::new() };
        let expected = json!([{ "name": "all", "text": text, "users": ["ann"] }]);
        assert_eq!(page.policies(), expected);
        let expected = json!([{ "name": "staff", "users": ["ben"], "policies": ["all"] }]);
        assert_eq!(page.groups(), expected);
    }
}
