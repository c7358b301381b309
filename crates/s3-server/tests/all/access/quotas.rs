//! Who may set quotas, and quotas of users.

use haul_file_store::Quota;
use haul_s3_server::{Credentials, KeyList, KeyRing, Logs};
use haul_testing::eventually;

use super::{Keyed, administrator, is_allowed};
use crate::access::users::Users;
use crate::client::assert_refused;

const QUOTA: &[u8] = b"<QuotaConfiguration><Objects>5</Objects></QuotaConfiguration>";

/// A policy that allows everything to everyone.
const POLICY: &str = r#"{"Statement":{"Effect":"Allow","Principal":"*","Action":"s3:*",
    "Resource":["arn:aws:s3:::mine","arn:aws:s3:::mine/*"]}}"#;

#[test]
fn quota_is_set_by_administrators_only() {
    let mut users = Users::new();
    let everything = users.keyed.key("eve", &[("admin", "*")]);
    let bucket = users.keyed.key("dan", &[("admin", "mine")]);
    assert_eq!(users.keyed.root("PUT", "/mine?policy", POLICY.as_bytes()).status, 204);
    for (key, may_read, may_set) in [
        (&users.ann, true, false),
        (&bucket, true, false),
        (&users.ben, true, false),
        (&everything, true, true),
    ] {
        for method in ["PUT", "DELETE"] {
            let reply = users.send(key, method, "/mine?quota", QUOTA);
            assert_eq!(is_allowed(&reply, method), may_set, "{} {method}", key.user);
        }
        let read = users.send(key, "GET", "/mine?quota", b"");
        assert_eq!(read.status == 200, may_read, "{}", key.user);
    }
    assert_eq!(users.keyed.root("DELETE", "/mine?policy", b"").status, 204);
    assert_refused(&users.send(&users.ben, "GET", "/mine?quota", b""), 403, "AccessDenied");
    assert_eq!(users.send(&users.ann, "GET", "/mine?quota", b"").status, 200);
    assert_eq!(users.keyed.root("PUT", "/mine?quota", QUOTA).status, 200);
    assert_eq!(users.keyed.root("DELETE", "/mine?quota", b"").status, 204);
    let unsigned = users.keyed.server.s3.put("/mine?quota", QUOTA);
    assert_refused(&unsigned, 403, "AccessDenied");
}

#[test]
fn quota_of_a_user_limits_its_buckets_at_the_start_and_after_a_change() {
    let bytes = |bytes| Quota { bytes: Some(bytes), objects: None };
    let mut list = KeyList::default();
    list.set_quota("ann", bytes(1000)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut keyed = Keyed::on(dir, list, Logs::default());
    let ann = keyed.key_with("ann", &[], |key| key.creates_buckets = true);
    for bucket in ["/one", "/two"] {
        assert_eq!(keyed.send(&ann, "PUT", bucket, b"").status, 200);
    }
    assert_eq!(keyed.send(&ann, "PUT", "/one/key", &[7; 600]).status, 200);
    // Whoever writes, the owner pays.
    let refused = keyed.root("PUT", "/two/key", &[7; 401]);
    assert_refused(&refused, 403, "QuotaExceeded");
    let message = refused.xml("Message").unwrap();
    assert!(message.contains("\"ann\"") && !message.contains("600"), "{message}");
    assert_eq!(keyed.root("PUT", "/two/key", &[7; 400]).status, 200);
    assert_eq!(keyed.root("PUT", "/unlimited", b"").status, 200);
    assert_eq!(keyed.root("PUT", "/unlimited/key", &[7; 5000]).status, 200);
    keyed.change(|list| list.set_quota("ann", bytes(2000)).unwrap());
    eventually("the quota is larger", || {
        keyed.send(&ann, "PUT", "/two/other", &[7; 900]).status == 200
    });
    // A user that had no quota, with a bucket of before.
    let ben = keyed.key_with("ben", &[], |key| key.creates_buckets = true);
    assert_eq!(keyed.send(&ben, "PUT", "/bens", b"").status, 200);
    assert_eq!(keyed.send(&ben, "PUT", "/bens/key", &[7; 5000]).status, 200);
    keyed.change(|list| list.set_quota("ben", bytes(1)).unwrap());
    eventually("the quota applies", || keyed.send(&ben, "PUT", "/bens/key", b"1").status == 403);
    let Credentials { access_key, secret_key } = administrator();
    let login = format!("{access_key}:{secret_key}");
    let login = format!("Basic {}", base64_simd::STANDARD.encode_to_string(login));
    let metrics = keyed.server.admin.send("GET", "/metrics", &[("authorization", &login)], b"");
    let line = "haul_s3_user_quota_bytes{user=\"ben\"} 1\n";
    assert!(metrics.text().contains(line), "{}", metrics.text());

    // The quota is in force before the first request after a restart.
    let (dir, list) = (keyed.server.into_dir(), keyed.list);
    let ring = std::sync::Arc::new(KeyRing::new(list.clone()));
    let server =
        crate::client::Running::with_keys(dir, Some(administrator()), &ring, Logs::default());
    let keyed = Keyed { server, ring, list };
    assert_refused(&keyed.send(&ben, "PUT", "/bens/key", b"1"), 403, "QuotaExceeded");
}
