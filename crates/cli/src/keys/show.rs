//! Prints keys, without their secrets.

use std::time::SystemTime;

use haul_file_store::Quota;
use haul_s3_server::{Grant, Key, Right};
use serde_json::{Value, json};

use crate::clock::rfc3339;
use crate::units::{Bytes, Count};

/// The name of requests without a signature.
pub(super) const ANONYMOUS: &str = "anonymous";

/// The width of an access key of `haul keys create`.
const ACCESS_KEY_WIDTH: usize = 20;

/// Returns a key in one line: access key, state, user and rights.
pub(super) fn line(key: &Key, now: SystemTime) -> String {
    let Key { access_key, user, .. } = key;
    format!("{access_key:ACCESS_KEY_WIDTH$}  {:8}  {user}: {}", state(key, now), rights(key))
}

/// Returns a key in several lines.
pub(super) fn text(key: &Key, now: SystemTime) -> String {
    let expires = key.expires.map_or_else(|| "never".to_owned(), rfc3339);
    let mut lines = vec![
        format!("access key  {}", key.access_key),
        format!("user        {}", key.user),
        format!("state       {}", state(key, now)),
        format!("created     {}", rfc3339(key.created)),
        format!("expires     {expires}"),
    ];
    let rights = all_rights(key);
    let names = std::iter::once("rights").chain(std::iter::repeat(""));
    lines.extend(names.zip(rights).map(|(name, right)| format!("{name:10}  {right}")));
    lines.join("\n")
}

/// Returns the rights of a key in one line.
pub(super) fn rights(key: &Key) -> String {
    all_rights(key).join("; ")
}

/// Returns requests without a signature in one line: their name and rights.
pub(super) fn anonymous_line(grants: &[Grant]) -> String {
    format!("{ANONYMOUS}: {}", anonymous_rights(grants))
}

/// Returns the rights of requests without a signature in one line.
pub(super) fn anonymous_rights(grants: &[Grant]) -> String {
    let rights: Vec<_> = grants.iter().map(grant_text).collect();
    if rights.is_empty() { "no rights".to_owned() } else { rights.join("; ") }
}

/// Returns the result of removing rights, with the grants that still give them.
pub(super) fn forbidden_json(name: &str, is_changed: bool, remaining: &[Grant]) -> Value {
    json!({
        "access_key": name,
        "change": is_changed.then_some("forbidden"),
        "remaining": remaining.iter().map(grant_json).collect::<Vec<_>>(),
    })
}

pub(super) fn json(key: &Key, now: SystemTime) -> Value {
    json!({
        "access_key": key.access_key,
        "user": key.user,
        "state": state(key, now),
        "created": rfc3339(key.created),
        "expires": key.expires.map(rfc3339),
        "rights": key.grants.iter().map(grant_json).collect::<Vec<_>>(),
        "create_buckets": key.creates_buckets,
        "metrics": key.reads_metrics,
    })
}

pub(super) fn anonymous_json(grants: &[Grant]) -> Value {
    json!({
        "access_key": Value::Null,
        "user": ANONYMOUS,
        "rights": grants.iter().map(grant_json).collect::<Vec<_>>(),
    })
}

/// Returns the quota of a user in one line.
pub(super) fn quota_line(user: &str, quota: Quota) -> String {
    format!("quota of {user}: {}", limits(quota))
}

pub(super) fn quota_json(user: &str, quota: Quota) -> Value {
    json!({ "user": user, "quota": limits_json(quota) })
}

/// Returns the limits of a quota.
pub(super) fn limits(quota: Quota) -> String {
    let bytes = quota.bytes.map(|bytes| Bytes(bytes).to_string());
    let objects = quota.objects.map(|objects| Count(objects, "object").to_string());
    let limits: Vec<_> = bytes.into_iter().chain(objects).collect();
    if limits.is_empty() { "none".to_owned() } else { limits.join(", ") }
}

pub(super) fn limits_json(quota: Quota) -> Value {
    json!({ "bytes": quota.bytes, "objects": quota.objects })
}

fn state(key: &Key, now: SystemTime) -> &'static str {
    match key.is_refused(now) {
        _ if key.is_disabled => "disabled",
        true => "expired",
        false => "active",
    }
}

fn all_rights(key: &Key) -> Vec<String> {
    let server = [("create-buckets", key.creates_buckets), ("metrics", key.reads_metrics)];
    let server = server.into_iter().filter(|(_, has)| *has).map(|(name, _)| name.to_owned());
    let mut rights: Vec<_> = key.grants.iter().map(grant_text).chain(server).collect();
    if rights.is_empty() {
        rights.push("no rights but those of an owner".to_owned());
    }
    rights
}

pub(super) fn grant_text(grant: &Grant) -> String {
    format!("{} {}", grant.rights, grant.scope)
}

fn grant_json(grant: &Grant) -> Value {
    json!({
        "bucket": grant.scope.bucket,
        "prefix": grant.scope.prefix,
        "rights": grant.rights.iter().map(Right::name).collect::<Vec<_>>(),
    })
}
