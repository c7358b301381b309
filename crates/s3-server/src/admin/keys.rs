//! The keys and their rights for the console, without secret keys. Pure.

use serde_json::{Value, json};

use crate::access::key_ring::{ActiveKey, AllKeys};
use crate::access::rights::Grant;

/// Returns the keys that are not disabled, sorted by user, and the rights of requests without a
/// signature.
pub(super) fn json(keys: &AllKeys) -> Value {
    let of_file = keys.of_file();
    let mut listed: Vec<&ActiveKey> = of_file.iter().flat_map(|keys| keys.iter()).collect();
    listed.sort_by_key(|key| (key.user.clone(), key.access_key.clone()));
    let administrator = keys.administrator.iter().map(|key| &**key);
    let mut all: Vec<Value> = administrator.chain(listed).map(key_json).collect();
    if let Some(keys) = of_file.as_ref().filter(|keys| !keys.anonymous.is_empty()) {
        all.push(json!({
            "access_key": null,
            "user": null,
            "is_administrator": false,
            "creates_buckets": false,
            "reads_metrics": false,
            "expires_unix_s": null,
            "grants": grants_json(&keys.anonymous),
        }));
    }
    all.into()
}

fn key_json(key: &ActiveKey) -> Value {
    json!({
        "access_key": &*key.access_key,
        "user": key.user.as_deref(),
        "is_administrator": key.user.is_none(),
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
    use std::sync::Arc;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use super::*;
    use crate::access::credentials::Credentials;
    use crate::access::key::KeyList;
    use crate::access::key_ring::KeyRing;

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
        assert_eq!(json.as_array().unwrap().len(), 2, "{json}");
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
        let text = json.to_string();
        assert!(!text.contains(&key.secret_key) && !text.contains("root/key"), "{text}");
        assert_eq!(super::json(&AllKeys::default()), serde_json::json!([]));
    }
}
