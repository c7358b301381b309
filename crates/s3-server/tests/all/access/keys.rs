//! Owners, changes of keys, presigned URLs, requests without a signature, and the admin address.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64_simd::STANDARD as BASE64;
use haul_s3_server::{AuditLog, Key, KeyList, Lines, Logs};
use haul_testing::eventually;
use parking_lot::Mutex;
use ring::hmac;
use serde_json::Value;

use super::{Keyed, administrator, is_allowed};
use crate::client::assert_refused;

const RULES: &str = "<LifecycleConfiguration><Rule><ID>a</ID><Filter><Prefix>tmp/</Prefix></Filter>\
     <Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule></LifecycleConfiguration>";

#[test]
fn bucket_belongs_to_its_creator() {
    let mut keyed = Keyed::new();
    let creates = |key: &mut Key| key.creates_buckets = true;
    let alice = keyed.key_with("alice", &[], creates);
    let second = keyed.key("alice", &[]);
    let bob = keyed.key_with("bob", &[], creates);
    assert_eq!(keyed.send(&alice, "PUT", "/alices", b"").status, 200);
    let names = |key: &Key| keyed.send(key, "GET", "/", b"").all_xml("Name");
    assert_eq!((names(&alice), names(&second)), (vec!["alices".into()], vec!["alices".into()]));
    assert!(names(&bob).is_empty());
    for key in [&alice, &second] {
        let copy = keyed.copy(key, "/alices/a", "/alices/b");
        assert_refused(&copy, 404, "NoSuchKey");
        for (method, target, body) in [
            ("PUT", "/alices/a", "body"),
            ("GET", "/alices/a", ""),
            ("HEAD", "/alices", ""),
            ("GET", "/alices?list-type=2", ""),
            ("PUT", "/alices?lifecycle=", RULES),
            ("DELETE", "/alices/a", ""),
        ] {
            let reply = keyed.send(key, method, target, body.as_bytes());
            assert!((200..300).contains(&reply.status), "{method} {target}: {}", reply.text());
        }
    }
    assert_refused(&keyed.send(&bob, "PUT", "/alices/a", b""), 403, "AccessDenied");
    assert_refused(&keyed.send(&bob, "GET", "/alices?list-type=2", b""), 403, "AccessDenied");
    assert_refused(&keyed.send(&bob, "DELETE", "/alices", b""), 403, "AccessDenied");
    // A bucket that exists: its owner can repeat the creation.
    let again = |key: &Key| keyed.send(key, "PUT", "/alices", b"");
    assert_refused(&again(&alice), 200, "");
    assert_refused(&again(&second), 200, "");
    assert_refused(&again(&bob), 409, "BucketAlreadyExists");
    assert_refused(&keyed.root("PUT", "/alices", b""), 409, "BucketAlreadyExists");
    assert_refused(&keyed.root("PUT", "/bucket", b""), 200, "");

    keyed.send(&alice, "PUT", "/alices/a", b"body");
    let owner = |target: &str| keyed.root("GET", target, b"").xml("ID");
    assert_eq!(owner("/alices").as_deref(), Some("alice"));
    assert_eq!(owner("/alices?acl=").as_deref(), Some("alice"));
    assert_eq!(owner("/alices/a?acl=").as_deref(), Some("alice"));
    assert_eq!(owner("/bucket").as_deref(), Some("haul"));
    assert_eq!(keyed.send(&bob, "GET", "/", b"").xml("ID").as_deref(), Some("bob"));

    let Keyed { server, list, .. } = keyed;
    let keyed = Keyed::on(server.into_dir(), list, Logs::default());
    assert_eq!(keyed.send(&second, "GET", "/alices/a", b"").text(), "body");
    assert_refused(&keyed.send(&bob, "GET", "/alices/a", b""), 403, "AccessDenied");
    keyed.send(&alice, "DELETE", "/alices/a", b"");
    assert_eq!(keyed.send(&alice, "DELETE", "/alices", b"").status, 204);
    assert_eq!(keyed.send(&bob, "PUT", "/alices", b"").status, 200);
    assert_refused(&keyed.send(&alice, "GET", "/alices?list-type=2", b""), 403, "AccessDenied");
}

#[test]
fn anonymous_requests_have_the_granted_rights_only() {
    let mut keyed = Keyed::new();
    let client = keyed.server.s3;
    let refused = |method: &str, target: &str| {
        let reply = client.send(method, target, &[], b"");
        assert!(reply.status == 403 && !is_allowed(&reply, method), "{method} {target}");
    };
    refused("GET", "/bucket/dir/key");
    keyed.change(|list| {
        list.allow_anonymous("bucket/dir/".parse().unwrap(), "read".parse().unwrap()).unwrap();
        list.allow_anonymous("other".parse().unwrap(), "list".parse().unwrap()).unwrap();
    });
    // The second GET is answered from memory.
    for _ in 0..3 {
        assert_eq!(client.get("/bucket/dir/key").text(), "hello");
    }
    let range = client.send("GET", "/bucket/dir/key", &[("range", "bytes=1-2")], b"");
    assert_eq!((range.status, range.text().as_str()), (206, "el"));
    let condition = client.send("GET", "/bucket/dir/key", &[("if-match", "\"a\"")], b"");
    assert_eq!(condition.status, 412, "answered by the service");
    assert_eq!(client.head("/bucket/dir/key").status, 200);
    assert_eq!(client.get("/other?list-type=2").all_xml("Key"), ["key"]);
    for (method, target) in [
        ("GET", "/bucket/key"),
        ("GET", "/bucket/dir/missing"),
        ("PUT", "/bucket/dir/key"),
        ("DELETE", "/bucket/dir/key"),
        ("POST", "/bucket/dir/key?uploads"),
        ("GET", "/bucket?list-type=2&prefix=dir/"),
        ("GET", "/other/key"),
    ] {
        let reply = client.send(method, target, &[], b"");
        assert_eq!(reply.error(), (403, "AccessDenied".to_owned()), "{method} {target}");
    }
    refused("DELETE", "/bucket");
    assert_refused(&client.get("/"), 403, "AccessDenied");
    // A wrong signature is no anonymous request.
    let mut wrong = keyed.key("alice", &[("read", "bucket")]);
    wrong.secret_key.push('x');
    let reply = keyed.send(&wrong, "GET", "/bucket/dir/key", b"");
    assert_refused(&reply, 403, "SignatureDoesNotMatch");
    keyed.change(|list| {
        assert!(list.forbid_anonymous(&"*".parse().unwrap(), "read".parse().unwrap()));
    });
    refused("GET", "/bucket/dir/key");
}

#[test]
fn removed_disabled_and_expired_keys_are_refused_at_once() {
    let mut keyed = Keyed::new();
    let [first, second, third] =
        ["a", "b", "c"].map(|user| keyed.key(user, &[("read,write", "bucket")]));
    let get = |keyed: &Keyed, key: &Key| keyed.send(key, "GET", "/bucket/key", b"");
    for key in [&first, &second, &third] {
        assert_eq!(get(&keyed, key).text(), "hello");
        assert_eq!(get(&keyed, key).text(), "hello", "from memory");
    }
    let url = keyed.signer(&first).presign("GET", "/bucket/key", 0, 60);
    assert_eq!(keyed.server.s3.get(&url).status, 200);
    keyed.change(|list| {
        list.remove(&first.access_key);
        list.key_mut(&second.access_key).unwrap().is_disabled = true;
        list.key_mut(&third.access_key).unwrap().expires = Some(SystemTime::now());
    });
    for key in [&first, &second, &third] {
        assert_refused(&get(&keyed, key), 403, "InvalidAccessKeyId");
        let put = keyed.send(key, "PUT", "/bucket/new", b"x");
        assert_refused(&put, 403, "InvalidAccessKeyId");
    }
    assert_refused(&keyed.server.s3.get(&url), 403, "InvalidAccessKeyId");
    keyed.change(|list| {
        list.key_mut(&second.access_key).unwrap().is_disabled = false;
        let key = list.key_mut(&third.access_key).unwrap();
        key.expires = Some(SystemTime::now() + Duration::from_secs(600));
        assert!(key.forbid(&"*".parse().unwrap(), "write".parse().unwrap()));
    });
    assert_eq!(get(&keyed, &second).text(), "hello");
    assert_eq!(get(&keyed, &third).text(), "hello");
    let put = keyed.send(&third, "PUT", "/bucket/new", b"x");
    assert_refused(&put, 403, "AccessDenied");
}

#[test]
fn presigned_urls_have_the_rights_of_their_key() {
    let mut keyed = Keyed::new();
    let key = keyed.key("alice", &[("read", "bucket")]);
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let version_2 = |method: &str, path: &str, expires_s: u64, secret: &str| {
        let secret = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes());
        let text = format!("{method}\n\n\n{expires_s}\n{path}");
        let signature = BASE64.encode_to_string(hmac::sign(&secret, text.as_bytes()));
        let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        let access = &key.access_key;
        format!("{path}?AWSAccessKeyId={access}&Signature={signature}&Expires={expires_s}")
    };
    let client = keyed.server.s3;
    let (later, secret) = (now_s + 60, key.secret_key.as_str());
    let get = version_2("GET", "/bucket/key", later, secret);
    assert_eq!(client.get(&get).text(), "hello");
    let range = client.send("GET", &get, &[("range", "bytes=0-1")], b"");
    assert_eq!((range.status, range.text().as_str()), (206, "he"));
    let with_two = [("authorization", "AWS4-HMAC-SHA256 Credential=a/20261126/us-east-1/s3/b")];
    assert_refused(&client.send("GET", &get, &with_two, b""), 400, "InvalidArgument");
    for (url, code) in [
        (version_2("GET", "/bucket/key", now_s - 5, secret), "AccessDenied"),
        (version_2("GET", "/bucket/key", later, "wrong"), "SignatureDoesNotMatch"),
        (version_2("PUT", "/bucket/key", later, secret), "SignatureDoesNotMatch"),
        (version_2("GET", "/other/key", later, secret), "AccessDenied"),
        (get.replace("AWSAccessKeyId=HAUL", "AWSAccessKeyId=HAUK"), "InvalidAccessKeyId"),
        (keyed.signer(&key).presign("GET", "/other/key", 0, 60), "AccessDenied"),
    ] {
        assert_refused(&client.get(&url), 403, code);
    }
    for put in [
        version_2("PUT", "/bucket/new", later, secret),
        keyed.signer(&key).presign("PUT", "/bucket/new", 0, 60),
    ] {
        assert_refused(&client.put(&put, b"x"), 403, "AccessDenied");
    }
    assert_refused(&client.get(&format!("{get}&attributes")), 400, "InvalidRequest");
}

#[test]
fn metrics_key_reads_the_metrics_only() {
    let mut keyed = Keyed::new();
    let metrics = keyed.key_with("prometheus", &[], |key| key.reads_metrics = true);
    let user = keyed.key("alice", &[("admin", "*")]);
    let admin = keyed.server.admin;
    let status = |path: &str, access_key: &str, secret_key: &str| {
        let pair = BASE64.encode_to_string(format!("{access_key}:{secret_key}"));
        admin.send("GET", path, &[("authorization", &format!("Basic {pair}"))], b"").status
    };
    let statuses = |access_key: &str, secret_key: &str| {
        ["/", "/stats.json", "/metrics", "/health"].map(|path| status(path, access_key, secret_key))
    };
    let root = administrator();
    assert_eq!(statuses(&root.access_key, &root.secret_key), [200; 4]);
    assert_eq!(statuses(&metrics.access_key, &metrics.secret_key), [200, 403, 200, 200]);
    assert_eq!(statuses(&user.access_key, &user.secret_key), [200, 403, 403, 200]);
    assert_eq!(statuses(&metrics.access_key, "wrong"), [401, 401, 401, 200]);
    assert_eq!(admin.get("/metrics").status, 401);
    let reply = keyed.send(&metrics, "GET", "/bucket/key", b"");
    assert_refused(&reply, 403, "AccessDenied");
    keyed.change(|list| list.key_mut(&metrics.access_key).unwrap().reads_metrics = false);
    assert_eq!(status("/metrics", &metrics.access_key, &metrics.secret_key), 403);
}

#[test]
fn console_has_the_rights_of_the_key_that_logged_in() {
    let mut keyed = Keyed::new();
    let reader = keyed.key("alice", &[("read", "bucket"), ("list", "bucket")]);
    let writer = keyed.key("bob", &[("write", "bucket")]);
    let admin = keyed.server.admin;
    let send = |login: Option<(&str, &str)>, method: &str, path: &str| {
        let pair = login.map(|(access_key, secret_key)| {
            format!("Basic {}", BASE64.encode_to_string(format!("{access_key}:{secret_key}")))
        });
        let mut headers = vec![("x-haul-console", "1")];
        headers.extend(pair.as_deref().map(|pair| ("authorization", pair)));
        admin.send(method, path, &headers, b"x")
    };
    let statuses = |login: Option<(&str, &str)>| {
        [
            ("GET", "/s3/bucket/key"),
            ("GET", "/s3/bucket?list-type=2"),
            ("PUT", "/s3/bucket/new"),
            ("DELETE", "/s3/bucket/new"),
            ("GET", "/presign?bucket=bucket&key=key&seconds=60"),
            ("GET", "/buckets.json"),
            ("GET", "/requests.json"),
            ("GET", "/keys.json"),
            ("GET", "/volumes.json"),
        ]
        .map(|(method, path)| send(login, method, path).status)
    };
    let root = administrator();
    assert_eq!(
        statuses(Some((&root.access_key, &root.secret_key))),
        [200, 200, 200, 204, 200, 200, 200, 200, 200]
    );
    let reader_keys = Some((&*reader.access_key, &*reader.secret_key));
    assert_eq!(statuses(reader_keys), [200, 200, 403, 403, 200, 403, 403, 403, 403]);
    let writer_keys = Some((&*writer.access_key, &*writer.secret_key));
    assert_eq!(statuses(writer_keys), [403, 403, 200, 403, 200, 403, 403, 403, 403]);
    assert_eq!(statuses(Some((&reader.access_key, &writer.secret_key))), [401; 9]);
    assert_eq!(statuses(None), [401; 9]);
    let link = |login| send(login, "GET", "/presign?bucket=bucket&key=key&seconds=60").text();
    let follow = |url: &str| keyed.server.s3.get(&url[url.find("/bucket").unwrap()..]);
    assert_eq!(follow(&link(reader_keys)).status, 200);
    assert_eq!(follow(&link(writer_keys)).status, 403, "a link has the rights of its key");
    let changed = link(reader_keys).replace("/bucket/key?", "/bucket/new?");
    assert_refused(&follow(&changed), 403, "SignatureDoesNotMatch");
}

#[test]
fn failure_to_read_the_key_file_is_reported_and_keys_remain() {
    let mut keyed = Keyed::new();
    let key = keyed.key("alice", &[("read", "bucket")]);
    let root = administrator();
    let pair = BASE64.encode_to_string(format!("{}:{}", root.access_key, root.secret_key));
    let admin = keyed.server.admin;
    let metric = || {
        let headers = [("authorization", &*format!("Basic {pair}"))];
        let text = admin.send("GET", "/metrics", &headers, b"").text();
        let line = text.lines().find_map(|line| line.strip_prefix("haul_key_file_failing "));
        line.unwrap().to_owned()
    };
    assert_eq!((metric().as_str(), admin.get("/health").text().as_str()), ("0", "ok\n"));
    keyed.ring.report_failure("the key file is damaged".to_owned());
    let health = admin.get("/health");
    assert!(health.status == 200 && health.text().contains("the key file is damaged"));
    assert_eq!(metric(), "1");
    assert_eq!(keyed.send(&key, "GET", "/bucket/key", b"").status, 200);
    keyed.change(|_list| {});
    assert_eq!((metric().as_str(), admin.get("/health").text().as_str()), ("0", "ok\n"));
}

#[derive(Default)]
struct AuditLines(Mutex<Vec<Value>>);

impl Lines for AuditLines {
    fn append(&self, line: &[u8]) {
        self.0.lock().push(serde_json::from_slice(line).unwrap());
    }
}

#[test]
fn audit_log_names_the_key_of_refused_and_executed_changes() {
    let lines = Arc::new(AuditLines::default());
    let audit = Some(AuditLog::new(Arc::clone(&lines) as Arc<dyn Lines>));
    let logs = Logs { access: None, audit };
    let mut keyed = Keyed::on(tempfile::tempdir().unwrap(), KeyList::default(), logs);
    keyed.root("PUT", "/bucket", b"");
    let key = keyed.key("alice", &[("write", "bucket/a/")]);
    assert_eq!(keyed.send(&key, "PUT", "/bucket/a/b", b"x").status, 200);
    assert_eq!(keyed.send(&key, "PUT", "/bucket/b", b"x").status, 403);
    assert_eq!(keyed.send(&key, "DELETE", "/bucket", b"").status, 403);
    eventually("the lines are there", || lines.0.lock().len() >= 4);
    let found: Vec<_> = lines
        .0
        .lock()
        .iter()
        .map(|line| (line["access_key"].clone(), line["operation"].clone(), line["status"].clone()))
        .collect();
    let expected = [
        ("root", "CreateBucket", 200),
        (&*key.access_key, "PutObject", 200),
        (&*key.access_key, "PutObject", 403),
        (&*key.access_key, "DeleteBucket", 403),
    ];
    for line in
        expected.map(|(key, operation, status)| (key.into(), operation.into(), status.into()))
    {
        assert!(found.contains(&line), "{line:?} is not in {found:?}");
    }
}
