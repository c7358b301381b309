//! Policies that restrict the owner of their bucket.

use haul_file_store::Options;
use haul_s3_server::{Key, KeyList, Logs};

use super::Keyed;
use super::policy::anonymous;
use crate::client::assert_refused;

#[test]
fn owner_can_replace_a_policy_that_denies_everything() {
    let mut keyed = Keyed::new();
    let owner = keyed.key_with("ann", &[], |key| key.creates_buckets = true);
    let other = keyed.key("ben", &[("admin", "mine")]);
    assert_eq!(keyed.send(&owner, "PUT", "/mine", b"").status, 200);
    let deny = r#"{"Statement":{"Effect":"Deny","Principal":"*","Action":"*",
        "Resource":["arn:aws:s3:::mine","arn:aws:s3:::mine/*"]}}"#;
    let put = |key: &Key| keyed.send(key, "PUT", "/mine?policy=", deny.as_bytes());
    assert_refused(&put(&owner), 204, "");
    assert_refused(&keyed.send(&owner, "PUT", "/mine/key", b"x"), 403, "AccessDenied");
    assert_refused(&keyed.send(&owner, "GET", "/mine", b""), 403, "AccessDenied");
    assert_refused(&put(&other), 403, "AccessDenied");
    assert_refused(&keyed.send(&other, "DELETE", "/mine?policy=", b""), 403, "AccessDenied");
    assert_eq!(keyed.send(&owner, "GET", "/mine?policy=", b"").text(), deny);
    assert_refused(&put(&owner), 204, "");
    assert_refused(&keyed.send(&owner, "DELETE", "/mine?policy=", b""), 204, "");
    assert_eq!(keyed.send(&owner, "PUT", "/mine/key", b"x").status, 200);
}

#[test]
fn policy_gives_itself_to_nobody() {
    let mut keyed = Keyed::new();
    let owner = keyed.key_with("ann", &[], |key| key.creates_buckets = true);
    let other = keyed.key("ben", &[]);
    let admin = keyed.key("cem", &[("admin", "mine")]);
    assert_eq!(keyed.send(&owner, "PUT", "/mine", b"").status, 200);
    let allow = r#"{"Statement":{"Effect":"Allow","Principal":"*","Action":"s3:*",
        "Resource":["arn:aws:s3:::mine","arn:aws:s3:::mine/*"]}}"#;
    assert_refused(&keyed.send(&owner, "PUT", "/mine?policy=", allow.as_bytes()), 204, "");
    for (method, body) in [("GET", ""), ("PUT", allow), ("DELETE", "")] {
        let reply = keyed.send(&other, method, "/mine?policy=", body.as_bytes());
        assert_refused(&reply, 405, "MethodNotAllowed");
        let reply = anonymous(&keyed, method, "/mine?policy=");
        assert_refused(&reply, 405, "MethodNotAllowed");
    }
    assert_eq!(keyed.send(&other, "PUT", "/mine/key", b"x").status, 200);
    assert_eq!(keyed.send(&owner, "GET", "/mine?policy=", b"").text(), allow);
    assert_refused(&keyed.send(&admin, "DELETE", "/mine?policy=", b""), 204, "");
}

/// Another program that uses the store may have set the policy.
#[test]
fn owner_can_replace_a_policy_that_cannot_be_applied() {
    let text = "{\"Statement\":[]}";
    for method in ["PUT", "DELETE"] {
        let dir = tempfile::tempdir().unwrap();
        let store = crate::client::open(dir.path(), Options::default());
        store.create_bucket("mine").unwrap();
        for (name, value) in [("owner", "ann"), ("policy", text)] {
            store.set_bucket_setting("mine", name, Some(value)).unwrap();
        }
        drop(store);
        let mut keyed = Keyed::on(dir, KeyList::default(), Logs::default());
        let owner = keyed.key("ann", &[]);
        let all = keyed.key("ben", &[("read,write,list,delete,admin", "mine")]);
        for key in [&owner, &all] {
            for target in ["/mine/key", "/mine?tagging=", "/mine/key?acl="] {
                assert_refused(&keyed.send(key, "GET", target, b""), 500, "InternalError");
            }
            assert_refused(&keyed.send(key, "PUT", "/mine/key", b"x"), 500, "InternalError");
            assert_refused(&keyed.send(key, "DELETE", "/mine", b""), 500, "InternalError");
        }
        assert_refused(&keyed.send(&all, method, "/mine?policy=", b""), 500, "InternalError");
        assert_refused(&keyed.send(&all, "GET", "/mine?policy=", b""), 500, "InternalError");
        assert_refused(&anonymous(&keyed, method, "/mine?policy="), 500, "InternalError");
        assert_eq!(keyed.send(&owner, "GET", "/mine?policy=", b"").text(), text);
        let allow = r#"{"Statement":{"Effect":"Allow","Principal":"*","Action":"s3:GetObject",
            "Resource":"arn:aws:s3:::mine/*"}}"#;
        let replaced = keyed.send(&owner, method, "/mine?policy=", allow.as_bytes());
        assert_refused(&replaced, 204, "");
        assert_refused(&keyed.send(&owner, "PUT", "/mine/key", b"x"), 200, "");
    }
}
