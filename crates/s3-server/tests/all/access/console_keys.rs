//! Keys that administrators create and change in the console.

use std::sync::Arc;
use std::time::SystemTime;

use base64_simd::STANDARD as BASE64;
use haul_s3_server::{AuditLog, Credentials, Key, KeyFile, KeyList, KeyRing, Logs};
use haul_testing::eventually;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::administrator;
use crate::client::{Reply, Running};
use crate::logs::RecordedLines;
use crate::signing::{Signer, hash};

/// A key file in memory.
#[derive(Debug)]
struct MemoryFile {
    list: Mutex<KeyList>,
    ring: Arc<KeyRing>,
    read_only_reason: Option<String>,
}

impl KeyFile for MemoryFile {
    fn read_only_reason(&self) -> Option<String> {
        self.read_only_reason.clone()
    }

    fn update(&self, change: &mut dyn FnMut(&mut KeyList) -> bool) -> Result<(), String> {
        let mut list = self.list.lock();
        let mut changed = list.clone();
        if change(&mut changed) {
            *list = changed.clone();
            self.ring.replace(changed);
        }
        Ok(())
    }
}

struct Console {
    server: Running,
    lines: Arc<RecordedLines>,
}

impl Console {
    fn new(credentials: Option<Credentials>, list: KeyList, reason: Option<&str>) -> Self {
        let ring = Arc::new(KeyRing::new(list.clone()));
        let read_only_reason = reason.map(str::to_owned);
        let file = MemoryFile { list: Mutex::new(list), ring: Arc::clone(&ring), read_only_reason };
        let lines = Arc::new(RecordedLines::default());
        let logs = Logs { access: None, audit: Some(AuditLog::new(lines.lines())) };
        let server = Running::with_key_file(credentials, &ring, Some(Arc::new(file)), logs);
        Self { server, lines }
    }

    fn send(&self, (access, secret): (&str, &str), fields: &Value) -> Reply {
        let login = BASE64.encode_to_string(format!("{access}:{secret}"));
        let login = format!("Basic {login}");
        let headers = [("x-haul-console", "1"), ("authorization", &*login)];
        self.server.admin.send("POST", "/keys", &headers, fields.to_string().as_bytes())
    }

    fn list(&self, (access, secret): (&str, &str)) -> Value {
        let login = BASE64.encode_to_string(format!("{access}:{secret}"));
        let login = format!("Basic {login}");
        let reply = self.server.admin.send("GET", "/keys.json", &[("authorization", &login)], b"");
        serde_json::from_slice(&reply.body).unwrap_or_else(|_error| panic!("{}", reply.text()))
    }

    fn put(&self, (access_key, secret_key): (&str, &str), target: &str) -> u16 {
        let signer = Signer { client: self.server.s3, access_key, secret_key };
        signer.send("PUT", target, &hash(b""), b"").status
    }
}

const ROOT: (&str, &str) = ("root", "root-secret");

fn create(user: &str, grants: &Value) -> Value {
    json!({ "change": "create", "user": user, "grants": grants, "create_buckets": false,
            "metrics": false })
}

fn change(name: &str, access_key: &str) -> Value {
    json!({ "change": name, "access_key": access_key })
}

fn key_of(list: &mut KeyList, user: &str, rights: &str, scope: &str) -> Key {
    let key = list.create(user, SystemTime::now()).unwrap();
    key.allow(scope.parse().unwrap(), rights.parse().unwrap()).unwrap();
    key.clone()
}

#[test]
fn logins_are_audited() {
    let console = Console::new(Some(administrator()), KeyList::default(), None);
    let log_in = |access_key: &str, secret_key: &str| {
        let pair = json!({ "access_key": access_key, "secret_key": secret_key }).to_string();
        let headers = [("x-haul-console", "1")];
        console.server.admin.send("POST", "/login", &headers, pair.as_bytes()).status
    };
    let long = "k".repeat(200);
    let statuses = [log_in("root", "wrong"), log_in(&long, "x"), log_in(ROOT.0, ROOT.1)];
    assert_eq!(statuses, [401, 401, 200]);
    let lines = console.lines.take(3);
    for (line, (user, status)) in
        lines.iter().zip([(json!("root"), 401), (Value::Null, 401), (json!("root"), 200)])
    {
        let found = (&line["operation"], &line["access_key"], &line["status"]);
        assert_eq!(found, (&json!("LogIn"), &user, &json!(status)));
        assert_eq!(line["error"].is_null(), status == 200);
        assert!(!line.to_string().contains("secret\":"), "{line}");
    }
}

#[test]
fn administrator_sets_quotas_of_users_in_the_console() {
    let mut list = KeyList::default();
    let alice = key_of(&mut list, "alice", "admin", "*");
    let console = Console::new(Some(administrator()), list, None);
    let quota = |bytes: Value| json!({ "change": "quota", "user": "alice", "bytes": bytes });
    let listed = || console.list(ROOT)["quotas"].clone();
    assert_eq!(listed(), json!([]));
    let reply = console.send(ROOT, &quota(5000.into()));
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(listed()[0]["quota_bytes"], 5000);
    let expected = json!([{ "user": "alice", "quota_bytes": 5000, "quota_objects": null,
        "used_bytes": 0, "used_objects": 0 }]);
    eventually("the store has the quota", || listed() == expected);
    let pair = (&*alice.access_key, &*alice.secret_key);
    // The administrator's alone.
    assert_eq!(console.send(pair, &quota(Value::Null)).status, 403);
    assert_eq!(console.send(ROOT, &quota("5000".into())).status, 400);
    assert_eq!(console.send(ROOT, &json!({ "change": "quota", "user": "haul" })).status, 400);
    assert_eq!(console.send(ROOT, &quota(Value::Null)).status, 200);
    assert_eq!(listed(), json!([]));
    let lines = console.lines.take(4);
    assert_eq!(lines[0]["operation"], "PutUserQuota");
    assert_eq!(lines[0]["quota"], "user=alice; bytes=5000; objects=none");
    let statuses: Vec<_> = lines.iter().map(|line| line["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [200, 403, 400, 200]);
}

/// Returns what the page shows of the policy `write` and of the group `staff`.
fn shown(console: &Console) -> (Option<Value>, Option<Value>) {
    let listed = console.list(ROOT);
    let (policy, group) = (&listed["policies"][0], &listed["groups"][0]);
    let has_policy = group["policies"] == json!(["write"]);
    let groups = if has_policy { vec!["staff"] } else { Vec::new() };
    let shown = json!({ "text": policy["text"], "users": policy["users"], "groups": groups });
    let users = json!({ "users": group["users"] });
    (policy.is_object().then_some(shown), group.is_object().then_some(users))
}

#[test]
fn administrator_changes_policies_and_groups_in_the_console() {
    let mut list = KeyList::default();
    let ann = key_of(&mut list, "ann", "read", "other");
    let console = Console::new(Some(administrator()), list, None);
    assert_eq!(console.put(ROOT, "/bucket"), 200);
    let write = r#"{"Statement":{"Effect":"Allow","Action":"s3:PutObject","Resource":"*"}}"#;
    let policy = |text: &str, users: Value, groups: Value| {
        json!({ "change": "put-policy", "policy": "write", "text": text, "users": users,
                "groups": groups, "shown": shown(&console).0 })
    };
    let group = |users: Value| json!({ "change": "group", "group": "staff", "users": users, "shown": shown(&console).1 });
    let pair = (&*ann.access_key, &*ann.secret_key);
    let puts = || console.put(pair, "/bucket/key");
    let change = |fields: &Value| {
        let reply = console.send(ROOT, fields);
        (reply.status, reply.text())
    };
    assert_eq!(puts(), 403);
    assert_eq!(change(&policy(write, json!(["ann"]), json!([]))).0, 200);
    assert_eq!(puts(), 200, "in force at once");
    // The holders of a policy are replaced.
    let (status, text) = change(&policy(write, json!([]), json!(["staff"])));
    assert!(status == 400 && text.contains("there is no group staff"), "{text}");
    assert_eq!(puts(), 200, "nothing has changed");
    assert_eq!(change(&group(json!(["ben"]))).0, 200);
    assert_eq!(change(&policy(write, json!([]), json!(["staff"]))).0, 200);
    assert_eq!(puts(), 403);
    assert_eq!(change(&group(json!(["ann", "ben"]))).0, 200);
    assert_eq!(puts(), 200);
    let listed = console.list(ROOT);
    let expected = json!([{ "name": "write", "text": write, "users": [] }]);
    assert_eq!(listed["policies"], expected);
    let expected = json!([{ "name": "staff", "users": ["ann", "ben"], "policies": ["write"] }]);
    assert_eq!(listed["groups"], expected);
    // What another client has changed since, or what exists, is not overwritten.
    let old = json!({ "text": write, "users": ["ann"], "groups": [] });
    for shown in [old, Value::Null] {
        let mut change = policy(write, json!([]), json!([]));
        change["shown"] = shown;
        assert_eq!(console.send(ROOT, &change).status, 409);
    }
    for shown in [json!({ "users": ["ann"] }), Value::Null] {
        let mut change = group(json!([]));
        change["shown"] = shown;
        assert_eq!(console.send(ROOT, &change).status, 409);
    }
    // What cannot be enforced, or would not be found again, is refused, and nothing changes.
    let (status, text) = change(&policy(&write.replace("PutObject", "Putt"), json!([]), json!([])));
    assert!(status == 400 && text.contains("Putt"), "{text}");
    assert_eq!(change(&policy(write, json!(["no user"]), json!([]))).0, 400);
    assert_eq!(change(&group(json!(["no user"]))).0, 400);
    assert_eq!(change(&group(json!("ann"))).0, 400);
    let remove = json!({ "change": "remove-policy", "policy": "write" });
    let (status, text) = change(&remove);
    assert!(status == 400 && text.contains("is attached to the group staff"), "{text}");
    assert_eq!(puts(), 200);
    assert_eq!(console.send(pair, &remove).status, 403, "the administrator's alone");
    assert_eq!(change(&policy(write, json!([]), json!([]))).0, 200);
    assert_eq!(change(&remove).0, 200);
    assert_eq!(change(&remove).0, 404);
    assert_eq!(puts(), 403);
    assert_eq!(change(&group(json!([]))).0, 200);
    let listed = console.list(ROOT);
    assert_eq!([&listed["policies"], &listed["groups"]], [&json!([]), &json!([])]);
    let lines = console.lines.take(20);
    let line = lines.iter().find(|line| line["operation"] == "PutUserPolicy").unwrap();
    assert_eq!(line["policy"], format!("write; users=ann; groups=; {write}"));
    let groups = lines.iter().filter(|line| line["operation"] == "PutGroup");
    let groups: Vec<_> = groups.filter_map(|line| line["group"].as_str()).take(2).collect();
    assert_eq!(groups, ["staff; users=ben", "staff; users=ann,ben"]);
}

#[test]
fn administrator_creates_changes_and_revokes_keys_in_the_console() {
    let console = Console::new(Some(administrator()), KeyList::default(), None);
    assert_eq!(console.put(ROOT, "/bucket"), 200);
    let grants = json!([{ "scope": "bucket/a/", "rights": "write" }]);
    let reply = console.send(ROOT, &create("alice", &grants));
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let new: Value = serde_json::from_slice(&reply.body).unwrap();
    let (access, secret) = (&new["access_key"], &new["secret_key"]);
    let (access, secret) = (access.as_str().unwrap(), secret.as_str().unwrap());
    let alice = (access, secret);
    let puts = || ["/bucket/a/k", "/bucket/b/k"].map(|target| console.put(alice, target));
    assert_eq!(puts(), [200, 403]);

    let listed = console.list(ROOT);
    assert!(!listed.to_string().contains(secret), "the secret key is returned once");
    assert_eq!((&listed["login"], &listed["read_only_reason"]), (&"root".into(), &Value::Null));
    let rights = json!({ "change": "rights", "access_key": access, "create_buckets": true,
        "metrics": false, "grants": [{ "scope": "bucket/a/", "rights": "" },
                                     { "scope": "bucket/b/", "rights": "read,write" }] });
    assert_eq!(console.send(ROOT, &rights).status, 200);
    assert_eq!(puts(), [403, 200], "in force at once");
    assert_eq!(console.send(ROOT, &change("disable", access)).status, 200);
    assert_eq!(puts(), [403, 403]);
    assert_eq!(console.list(ROOT)["keys"][1]["is_disabled"], true);
    assert_eq!(console.send(ROOT, &change("enable", access)).status, 200);
    assert_eq!(puts(), [403, 200]);
    assert_eq!(console.send(ROOT, &change("remove", access)).status, 200);
    assert_eq!(puts(), [403, 403]);
    let refused = console.send(ROOT, &change("remove", "root"));
    assert_eq!(refused.status, 409);
    assert!(refused.text().contains("not in the key file"), "{}", refused.text());
    assert_eq!(console.send(ROOT, &change("remove", access)).status, 404);
    assert_eq!(console.send(ROOT, &create("not a user", &json!([]))).status, 400);

    let lines = console.lines.take(19);
    let key_lines: Vec<_> = lines
        .iter()
        .filter(|line| line["operation"].as_str().unwrap().contains("AccessKey"))
        .map(|line| {
            assert_eq!(
                (&line["access_key"], &line["client"]),
                (&"root".into(), &"127.0.0.1".into())
            );
            assert!(!line.to_string().contains(secret), "{line}");
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            (text("operation"), text("key"), line["status"].as_u64().unwrap(), text("rights"))
        })
        .collect();
    let line = |operation: &str, key: &str, status: u64, rights: &str| {
        (operation.to_owned(), key.to_owned(), status, rights.to_owned())
    };
    let new_rights = "=bucket/a/; read,write=bucket/b/; create-buckets";
    let expected = [
        line("CreateAccessKey", access, 200, "write=bucket/a/"),
        line("PutAccessKeyRights", access, 200, new_rights),
        line("DisableAccessKey", access, 200, ""),
        line("EnableAccessKey", access, 200, ""),
        line("DeleteAccessKey", access, 200, ""),
        line("DeleteAccessKey", "root", 409, ""),
        line("DeleteAccessKey", access, 404, ""),
        line("CreateAccessKey", "", 400, ""),
    ];
    assert_eq!(key_lines, expected);
}

#[test]
fn only_administrators_change_keys_in_the_console() {
    let mut list = KeyList::default();
    let admin = key_of(&mut list, "alice", "admin", "*");
    let part = key_of(&mut list, "bob", "admin", "bucket");
    let admin = (&*admin.access_key, &*admin.secret_key);
    let part = (&*part.access_key, &*part.secret_key);
    let with_root = Console::new(Some(administrator()), list.clone(), None);
    let without = Console::new(None, list, None);
    for (console, login, status) in [
        (&with_root, admin, 403),
        (&with_root, part, 403),
        (&with_root, ("root", "wrong"), 401),
        (&with_root, ROOT, 200),
        (&without, part, 403),
        (&without, ROOT, 401),
        (&without, admin, 200),
    ] {
        let reply = console.send(login, &create("carol", &json!([])));
        assert_eq!(reply.status, status, "{login:?}");
    }
    assert_eq!(without.list(admin)["keys"].as_array().unwrap().len(), 3);
    let body = create("mallory", &json!([])).to_string();
    let login = format!("Basic {}", BASE64.encode_to_string(format!("{}:{}", ROOT.0, ROOT.1)));
    let login = ("authorization", &*login);
    for headers in [
        vec![login],
        vec![login, ("x-haul-console", "1"), ("origin", "http://evil.example")],
        vec![login, ("x-haul-console", "1"), ("sec-fetch-site", "cross-site")],
    ] {
        let reply = with_root.server.admin.send("POST", "/keys", &headers, body.as_bytes());
        assert_eq!(reply.status, 403, "{headers:?}");
    }
    let get = [login, ("x-haul-console", "1")];
    assert_eq!(with_root.server.admin.send("GET", "/keys", &get, b"").status, 404);
    let long = vec![b' '; 70 << 10];
    assert_eq!(with_root.server.admin.send("POST", "/keys", &get, &long).status, 400);
}

#[test]
fn key_in_use_and_read_only_files_are_not_changed() {
    let mut list = KeyList::default();
    let own = key_of(&mut list, "alice", "admin", "*");
    let other = key_of(&mut list, "bob", "read", "bucket");
    let login = (&*own.access_key, &*own.secret_key);
    let console = Console::new(None, list.clone(), None);
    for name in ["disable", "remove"] {
        let refused = console.send(login, &change(name, &own.access_key));
        assert_eq!(refused.status, 409);
        assert!(refused.text().contains("the last key with the right admin"), "{}", refused.text());
    }
    assert_eq!(console.send(login, &change("remove", &other.access_key)).status, 200);
    assert_eq!(console.list(login)["keys"].as_array().unwrap().len(), 1);

    let fixed = Console::new(Some(administrator()), list, Some("It is a copy."));
    assert_eq!(fixed.list(ROOT)["read_only_reason"], "It is a copy.");
    let refused = fixed.send(ROOT, &change("remove", &other.access_key));
    assert_eq!((refused.status, &*refused.text()), (409, "It is a copy.\n"));
    assert_eq!(fixed.list(ROOT)["keys"].as_array().unwrap().len(), 3);
}

#[test]
fn recent_requests_need_the_login_of_the_administrator() {
    let mut list = KeyList::default();
    let key = key_of(&mut list, "alice", "admin", "*");
    let console = Console::new(Some(administrator()), list.clone(), None);
    let without = Console::new(None, list, None);
    let get_from = |console: &Console, login: Option<(&str, &str)>| {
        let basic = login.map(|(access, secret)| {
            format!("Basic {}", BASE64.encode_to_string(format!("{access}:{secret}")))
        });
        let headers: Vec<_> = basic.iter().map(|basic| ("authorization", &**basic)).collect();
        console.server.admin.send("GET", "/requests.json", &headers, b"").status
    };
    let own = Some((&*key.access_key, &*key.secret_key));
    assert_eq!(get_from(&without, None), 401);
    assert_eq!(get_from(&without, own), 200, "without an administrator");
    let get = |login| get_from(&console, login);
    assert_eq!(get(None), 401, "on a loopback address, too");
    assert_eq!(get(own), 403);
    assert_eq!(get(Some(ROOT)), 200);
    assert_eq!(console.server.admin.get("/stats.json").status, 200);
}
