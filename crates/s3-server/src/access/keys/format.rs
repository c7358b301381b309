//! The text of a key file: JSON with sealed secrets, and a seal that covers all other values. Pure,
//! except for random nonces.

use std::fmt::Display;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haul_file_store::Quota;
use serde_json::{Map, Value, json};

use crate::access::keys::key::{Key, KeyList, check, check_anonymous};
use crate::access::keys::names::check_user;
use crate::access::keys::policies::{PolicyHolder, PolicyList};
use crate::access::keys::seal::SealingKey;
use crate::access::rights::{Grant, Rights, Scope};
use crate::error::{Error, Result};

/// The format's name, in the field `format`.
const FORMAT: &str = "haul-keys-1";

/// The field with the seal that covers all other fields.
const SEAL: &str = "seal";

/// The field with the quotas of users, if there are any.
const QUOTAS: &str = "quotas";

/// The field with the policies of users and groups, if there are any.
const POLICIES: &str = "policies";

/// The names of a key's flags.
const FLAGS: [&str; 3] = ["disabled", "create-buckets", "metrics"];

impl KeyList {
    /// Returns the text of a key file.
    ///
    /// # Errors
    /// [`Error::Keys`] if the kernel has no random bytes.
    pub fn encode(&self, seal: &SealingKey) -> Result<String> {
        let keys = self.keys.iter().map(|key| encode_key(key, seal)).collect::<Result<Vec<_>>>()?;
        let mut file = json!({
            "format": FORMAT,
            "keys": keys,
            "anonymous": self.anonymous.iter().map(encode_grant).collect::<Vec<_>>(),
        });
        // Versions without quotas read a file without them.
        if !self.quotas.is_empty() {
            file[QUOTAS] =
                self.quotas.iter().map(|(user, quota)| encode_quota(user, *quota)).collect();
        }
        // Versions without policies refuse a file with them, rather than to ignore a denial.
        if !self.policies.is_empty() {
            file[POLICIES] = encode_policies(&self.policies);
        }
        file[SEAL] = seal.seal(b"", &sealed_text(&file))?.into();
        Ok(format!("{file:#}\n"))
    }

    /// Parses the text of a key file.
    ///
    /// # Errors
    /// [`Error::KeyFile`] if the text is not a key file, was modified, or was sealed by another
    /// key.
    pub fn decode(text: &str, seal: &SealingKey) -> Result<Self> {
        let mut file: Value =
            serde_json::from_str(text).map_err(|error| fail(format!("is damaged: {error}")))?;
        let sealed = file.as_object_mut().and_then(|fields| fields.remove(SEAL));
        let Some(Value::String(sealed)) = sealed else {
            return Err(fail("is no key file of haul: it has no seal".to_owned()));
        };
        if seal.open(&sealed, &sealed_text(&file)).is_none() {
            let text = "was changed by another program, is damaged, or has another sealing key";
            return Err(fail(text.to_owned()));
        }
        let file = Fields::of(&file, &["format", "keys", "anonymous", QUOTAS, POLICIES])?;
        if file.text("format")? != FORMAT {
            return Err(fail("has the format of a later version of haul".to_owned()));
        }
        let keys = file.list("keys")?.iter().map(|key| decode_key(key, seal));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let anonymous = file.list("anonymous")?.iter().map(decode_grant);
        let anonymous = anonymous.collect::<Result<Vec<_>>>()?;
        anonymous.iter().try_for_each(|grant| check_anonymous(grant.rights)).map_err(invalid)?;
        let quotas = if file.0.contains_key(QUOTAS) { file.list(QUOTAS)? } else { &[] };
        let quotas = quotas.iter().map(decode_quota).collect::<Result<_>>()?;
        let policies = file.0.get(POLICIES).map(decode_policies).transpose()?.unwrap_or_default();
        Ok(Self { keys, anonymous, quotas, policies })
    }
}

/// Returns the text that the seal covers: all fields except the seal, without spaces.
fn sealed_text(file: &Value) -> String {
    format!("{FORMAT} file {file}")
}

/// Returns the text to which a key's secret is bound.
fn secret_context(access_key: &str) -> String {
    format!("{FORMAT} secret {access_key}")
}

fn encode_key(key: &Key, seal: &SealingKey) -> Result<Value> {
    let mut object = json!({
        "access_key": key.access_key,
        "user": key.user,
        "secret": seal.seal(key.secret_key.as_bytes(), &secret_context(&key.access_key))?,
        "created_unix_s": unix_s(key.created),
        "grants": key.grants.iter().map(encode_grant).collect::<Vec<_>>(),
    });
    if let Some(expires) = key.expires {
        object["expires_unix_s"] = unix_s(expires).into();
    }
    let set = [key.is_disabled, key.creates_buckets, key.reads_metrics];
    let flags = FLAGS.into_iter().zip(set).filter(|(_, is_set)| *is_set);
    let flags: Vec<_> = flags.map(|(name, _)| name).collect();
    object["flags"] = flags.into();
    Ok(object)
}

fn decode_key(value: &Value, seal: &SealingKey) -> Result<Key> {
    let known =
        ["access_key", "user", "secret", "created_unix_s", "expires_unix_s", "grants", "flags"];
    let fields = Fields::of(value, &known)?;
    let access_key = fields.text("access_key")?.to_owned();
    let secret = seal.open(fields.text("secret")?, &secret_context(&access_key));
    let secret = secret.and_then(|secret| String::from_utf8(secret).ok());
    let Some(secret_key) = secret else {
        return Err(fail(format!("has a secret of {access_key} that cannot be opened")));
    };
    let flags = fields.list("flags")?;
    if let Some(flag) = flags.iter().find(|flag| !FLAGS.iter().any(|known| *flag == known)) {
        return Err(fail(format!("has the unknown flag {flag}")));
    }
    let [is_disabled, creates_buckets, reads_metrics] =
        FLAGS.map(|name| flags.iter().any(|flag| flag == name));
    let grants = fields.list("grants")?.iter().map(decode_grant).collect::<Result<Vec<_>>>()?;
    let user = fields.text("user")?.to_owned();
    check_user(&user).map_err(invalid)?;
    grants.iter().try_for_each(|grant| check(&grant.scope, grant.rights)).map_err(invalid)?;
    Ok(Key {
        access_key,
        secret_key,
        user,
        created: fields.time("created_unix_s")?.ok_or_else(|| fail("has no times".to_owned()))?,
        expires: fields.time("expires_unix_s")?,
        is_disabled,
        creates_buckets,
        reads_metrics,
        grants,
    })
}

fn encode_quota(user: &str, quota: Quota) -> Value {
    json!({ "user": user, "bytes": quota.bytes, "objects": quota.objects })
}

fn decode_quota(value: &Value) -> Result<(String, Quota)> {
    let fields = Fields::of(value, &["user", "bytes", "objects"])?;
    let user = fields.text("user")?.to_owned();
    check_user(&user).map_err(invalid)?;
    let limit = |name| match fields.0.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let limit = value.as_u64();
            limit.map(Some).ok_or_else(|| fail(format!("has a quota with the {name} {value}")))
        }
    };
    Ok((user, Quota { bytes: limit("bytes")?, objects: limit("objects")? }))
}

fn encode_policies(list: &PolicyList) -> Value {
    let named = list.texts().map(|(name, text)| json!({ "name": name, "text": text }));
    let groups = list.groups.iter().map(
        |(name, group)| json!({ "name": name, "users": group.users, "policies": group.policies }),
    );
    let users =
        list.users.iter().map(|(user, policies)| json!({ "name": user, "policies": policies }));
    json!({
        "named": named.collect::<Vec<_>>(),
        "groups": groups.collect::<Vec<_>>(),
        "users": users.collect::<Vec<_>>(),
    })
}

/// Parses the policies. A policy that cannot be applied is an error, because it could deny.
fn decode_policies(value: &Value) -> Result<PolicyList> {
    let fields = Fields::of(value, &["named", "groups", "users"])?;
    let mut list = PolicyList::default();
    for named in fields.list("named")? {
        let named = Fields::of(named, &["name", "text"])?;
        let name = named.text("name")?;
        let put = list.put(name, named.text("text")?);
        put.map_err(|error| fail(format!("has the policy {name}, which is invalid: {error}")))?;
    }
    for group in fields.list("groups")? {
        let group = Fields::of(group, &["name", "users", "policies"])?;
        let name = group.text("name")?;
        list.add_to_group(name, &group.texts("users")?).map_err(invalid)?;
        attach_all(&mut list, PolicyHolder::Group(name), &group.texts("policies")?)?;
    }
    for user in fields.list("users")? {
        let user = Fields::of(user, &["name", "policies"])?;
        attach_all(&mut list, PolicyHolder::User(user.text("name")?), &user.texts("policies")?)?;
    }
    Ok(list)
}

fn attach_all(list: &mut PolicyList, holder: PolicyHolder<'_>, names: &[String]) -> Result<()> {
    names.iter().try_for_each(|name| list.attach_to(name, holder).map(drop)).map_err(invalid)
}

fn encode_grant(grant: &Grant) -> Value {
    json!({
        "bucket": grant.scope.bucket,
        "prefix": grant.scope.prefix,
        "rights": grant.rights.to_string(),
    })
}

fn decode_grant(value: &Value) -> Result<Grant> {
    let fields = Fields::of(value, &["bucket", "prefix", "rights"])?;
    let rights: Rights = fields.text("rights")?.parse().map_err(invalid)?;
    let bucket: Scope = fields.text("bucket")?.parse().map_err(invalid)?;
    let prefix = fields.text("prefix")?.to_owned();
    Ok(Grant { scope: Scope { bucket: bucket.bucket, prefix }, rights })
}

/// The fields of a JSON object in the file.
struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// Returns the fields. An unknown field is an error, because it could restrict rights.
    fn of(value: &'a Value, known: &[&str]) -> Result<Self> {
        let Some(fields) = value.as_object() else {
            return Err(fail(format!("has {value} in place of an object")));
        };
        match fields.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(fail(format!("has the unknown field \"{name}\""))),
            None => Ok(Self(fields)),
        }
    }

    fn text(&self, name: &str) -> Result<&'a str> {
        let text = self.0.get(name).and_then(Value::as_str);
        text.ok_or_else(|| fail(format!("has no text \"{name}\"")))
    }

    fn list(&self, name: &str) -> Result<&'a [Value]> {
        let list = self.0.get(name).and_then(Value::as_array);
        list.map(Vec::as_slice).ok_or_else(|| fail(format!("has no list \"{name}\"")))
    }

    fn texts(&self, name: &str) -> Result<Vec<String>> {
        let texts = self.list(name)?.iter().map(|value| value.as_str().map(str::to_owned));
        let texts: Option<Vec<_>> = texts.collect();
        texts.ok_or_else(|| fail(format!("has a value in \"{name}\" that is no text")))
    }

    fn time(&self, name: &str) -> Result<Option<SystemTime>> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let time = value.as_u64().and_then(|s| UNIX_EPOCH.checked_add(Duration::from_secs(s)));
        time.map(Some).ok_or_else(|| fail(format!("has no time \"{name}\"")))
    }
}

fn unix_s(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn fail(why: impl Into<String>) -> Error {
    Error::KeyFile { why: why.into() }
}

fn invalid(error: impl Display) -> Error {
    fail(format!("is invalid: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"{"Statement": {"Effect": "Deny", "Action": "s3:Put*",
        "Resource": "arn:aws:s3:::photos/*"}}"#;

    fn list() -> KeyList {
        let mut list = KeyList::default();
        let rights = |text: &str| text.parse::<Rights>().unwrap();
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let key = list.create("alice", at(1_795_000_000)).unwrap();
        key.allow("photos".parse().unwrap(), rights("read,list")).unwrap();
        key.allow("*/logs/".parse().unwrap(), rights("write")).unwrap();
        key.creates_buckets = true;
        let key = list.create("prometheus", at(1_795_000_001)).unwrap();
        (key.reads_metrics, key.is_disabled, key.expires) = (true, true, Some(at(1_800_000_000)));
        list.allow_anonymous("public".parse().unwrap(), rights("read")).unwrap();
        list.set_quota("alice", Quota { bytes: Some(u64::MAX), objects: None }).unwrap();
        list.set_quota("ben", Quota { bytes: Some(0), objects: Some(7) }).unwrap();
        let policies = list.policies_mut();
        for name in ["read-all", "read-some"] {
            policies.put(name, POLICY).unwrap();
        }
        policies.attach("read-all", PolicyHolder::User("alice")).unwrap();
        policies.add_to_group("staff", &["alice".to_owned(), "ben".to_owned()]).unwrap();
        policies.attach("read-some", PolicyHolder::Group("staff")).unwrap();
        // A group keeps its policies without users.
        policies.add_to_group("empty", &["ben".to_owned()]).unwrap();
        policies.attach("read-some", PolicyHolder::Group("empty")).unwrap();
        assert!(policies.remove_from_group("empty", &["ben".to_owned()]));
        list
    }

    fn why(text: &str, seal: &SealingKey) -> String {
        KeyList::decode(text, seal).unwrap_err().to_string()
    }

    #[test]
    fn key_file_is_read_as_it_was_written() {
        let seal = SealingKey::generate().unwrap();
        for list in [KeyList::default(), list()] {
            let text = list.encode(&seal).unwrap();
            assert_eq!(KeyList::decode(&text, &seal).unwrap(), list);
            assert!(list.keys().iter().all(|key| !text.contains(&key.secret_key)));
        }
    }

    #[test]
    fn other_sealing_key_is_refused() {
        let text = list().encode(&SealingKey::generate().unwrap()).unwrap();
        assert!(why(&text, &SealingKey::generate().unwrap()).contains("another sealing key"));
    }

    #[test]
    fn cut_and_damaged_files_are_refused() {
        let seal = SealingKey::generate().unwrap();
        let list = list();
        let text = list.encode(&seal).unwrap();
        for end in 0..text.len() - 1 {
            assert!(KeyList::decode(&text[..end], &seal).is_err(), "cut at {end}");
        }
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            // A changed space outside strings has no effect.
            let found = KeyList::decode(&changed, &seal);
            assert!(found.is_err() || found.unwrap() == list, "{changed}");
        }
    }

    #[test]
    fn change_of_a_right_by_hand_is_refused() {
        let seal = SealingKey::generate().unwrap();
        let text = list().encode(&seal).unwrap();
        for (from, to) in [("photos", "videos"), ("\"read\"", "\"admin\""), ("\"disabled\",", "")] {
            assert!(text.contains(from), "{from}");
            assert!(why(&text.replace(from, to), &seal).contains("changed by another program"));
        }
        assert!(why("{}", &seal).contains("no seal"));
        assert!(why("[]", &seal).contains("no seal"));
    }

    #[test]
    fn file_of_a_later_version_is_refused() {
        let seal = SealingKey::generate().unwrap();
        let reseal = |from: &str, to: &str| {
            let text = list().encode(&seal).unwrap().replacen(from, to, 1);
            let mut file: Value = serde_json::from_str(&text).unwrap();
            file.as_object_mut().unwrap().remove(SEAL);
            file[SEAL] = seal.seal(b"", &sealed_text(&file)).unwrap().into();
            why(&file.to_string(), &seal)
        };
        assert!(reseal(FORMAT, "haul-keys-2").contains("later version"));
        for (from, to) in [
            ("\"user\"", "\"source_address\": \"::1\", \"user\""),
            ("\"metrics\"", "\"console\""),
            ("\"read\"", "\"tag\""),
            ("\"alice\"", "\"haul\""),
            ("1795000000", "-1"),
            ("\"anonymous\": [", "\"anonymous\": [7, "),
            ("\"objects\": 7", "\"objects\": -7"),
            ("\"objects\": 7", "\"files\": 7"),
            ("\"quotas\": [", "\"quotas\": [7, "),
            ("\"groups\": [", "\"roles\": [], \"groups\": ["),
            ("\"groups\": [", "\"groups\": [7, "),
            ("s3:Put*", "s3:Tag*"),
            ("\"read-some\"", "\"read-none\""),
            ("\"staff\"", "\"the staff\""),
        ] {
            assert!(reseal(from, to).starts_with("the key file "), "{from}");
        }
    }
}
