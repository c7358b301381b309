//! Users without rights and a bucket of one of them, for the tests of access lists.

use base64_simd::STANDARD;
use haul_s3_server::{Credentials, Key};

use super::Keyed;
use crate::client::{Header, Reply, assert_refused};
use crate::signing::hash;

/// A server with the bucket `mine` of the user `ann`, and the users `ben` and `carl`, which have no
/// rights.
pub(super) struct Users {
    pub(super) keyed: Keyed,
    pub(super) ann: Key,
    pub(super) ben: Key,
    pub(super) carl: Key,
}

impl Users {
    pub(super) fn new() -> Self {
        let mut keyed = Keyed::new();
        let ann = keyed.key_with("ann", &[], |key| key.creates_buckets = true);
        let (ben, carl) = (keyed.key("ben", &[]), keyed.key("carl", &[]));
        let users = Self { keyed, ann, ben, carl };
        assert_refused(&users.send(&users.ann, "PUT", "/mine", b""), 200, "");
        users.put(&users.ann, "/mine/key", "", b"hello");
        users
    }

    pub(super) fn send(&self, key: &Key, method: &str, target: &str, body: &[u8]) -> Reply {
        self.keyed.send(key, method, target, body)
    }

    pub(super) fn with(&self, key: &Key, target: &str, headers: &[Header], body: &[u8]) -> Reply {
        let signer = self.keyed.signer(key);
        signer.send_with("PUT", target, &hash(body), headers, |_| body.to_vec())
    }

    /// Stores an object with a canned list.
    #[track_caller]
    pub(super) fn put(&self, key: &Key, target: &str, list: &str, body: &[u8]) {
        let headers = [("x-amz-acl", list)];
        let headers = if list.is_empty() { &[][..] } else { &headers };
        assert_refused(&self.with(key, target, headers, body), 200, "");
    }

    /// Replaces the list of a bucket or object.
    #[track_caller]
    pub(super) fn set(&self, key: &Key, target: &str, headers: &[Header]) {
        assert_refused(&self.with(key, &list_of(target), headers, b""), 200, "");
    }

    pub(super) fn document(&self, key: &Key, target: &str, text: &str) -> Reply {
        self.send(key, "PUT", target, text.as_bytes())
    }

    /// Sets a document of the bucket `mine`.
    #[track_caller]
    pub(super) fn setting(&self, name: &str, text: &str) {
        assert_refused(&self.document(&self.ann, &format!("/mine?{name}="), text), 200, "");
    }

    pub(super) fn ownership(&self, mode: &str) -> Reply {
        let rule = format!("<Rule><ObjectOwnership>{mode}</ObjectOwnership></Rule>");
        let text = format!("<OwnershipControls>{rule}</OwnershipControls>");
        self.document(&self.ann, "/mine?ownershipControls=", &text)
    }

    pub(super) fn policy(&self, statement: &str) {
        let text = format!(r#"{{"Statement":[{statement}]}}"#);
        assert_refused(&self.document(&self.ann, "/mine?policy=", &text), 204, "");
    }

    pub(super) fn anonymous(&self, method: &str, target: &str) -> Reply {
        self.keyed.server.s3.send(method, target, &[], b"")
    }

    /// Returns the owner and the grants of a list: permission and grantee.
    #[track_caller]
    pub(super) fn list(&self, key: &Key, target: &str) -> (String, Vec<String>) {
        let reply = self.send(key, "GET", &list_of(target), b"");
        assert_refused(&reply, 200, "");
        let grants = reply.all_xml("Grant").into_iter().map(|grant| {
            let part = |name: &str| {
                let (_, rest) = grant.split_once(&format!("<{name}>"))?;
                Some(rest.split('<').next().unwrap().to_owned())
            };
            let group = || part("URI").map(|uri| uri.rsplit('/').next().unwrap().to_owned());
            format!("{} {}", part("Permission").unwrap(), part("ID").or_else(group).unwrap())
        });
        let owner = reply.xml("Owner").unwrap();
        let owner = owner.split_once("<ID>").unwrap().1.split('<').next().unwrap();
        (owner.to_owned(), grants.collect())
    }
}

/// Returns the target of the list of a bucket or object.
pub(super) fn list_of(target: &str) -> String {
    match target.split_once('?') {
        // The signer expects a sorted query.
        Some((path, query)) => format!("{path}?acl=&{query}"),
        None => format!("{target}?acl="),
    }
}

#[track_caller]
pub(super) fn refused(reply: &Reply) {
    assert_refused(reply, 403, "AccessDenied");
}

/// Returns a statement that allows or denies an action in the bucket `mine`.
pub(super) fn statement(effect: &str, action: &str) -> String {
    format!(
        r#"{{"Effect":"{effect}","Principal":"*","Action":"s3:{action}",
        "Resource":["arn:aws:s3:::mine","arn:aws:s3:::mine/*"]}}"#
    )
}

/// Returns the list of a bucket of `ann` in which each client may store objects.
pub(super) fn public_write() -> String {
    "<AccessControlPolicy><Owner><ID>ann</ID></Owner><AccessControlList><Grant>\
     <Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"Group\">\
     <URI>http://acs.amazonaws.com/groups/global/AllUsers</URI></Grantee>\
     <Permission>WRITE</Permission></Grant></AccessControlList></AccessControlPolicy>"
        .to_owned()
}

/// Returns the key of the administrator.
pub(super) fn administrator(users: &Users) -> Key {
    let credentials = super::administrator();
    let (access_key, secret_key) = (credentials.access_key, credentials.secret_key);
    Key { access_key, secret_key, ..users.ann.clone() }
}

/// Returns a counter of the server.
pub(super) fn counter(users: &Users, name: &str) -> u64 {
    let Credentials { access_key, secret_key } = super::administrator();
    let pair = STANDARD.encode_to_string(format!("{access_key}:{secret_key}"));
    let header = format!("Basic {pair}");
    let metrics =
        users.keyed.server.admin.send("GET", "/metrics", &[("authorization", &header)], b"");
    let text = metrics.text();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap().parse().unwrap()
}
