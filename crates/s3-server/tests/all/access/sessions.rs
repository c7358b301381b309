//! Temporary keys.

use std::time::{Duration, SystemTime};

use haul_s3_server::{Key, PolicyHolder};

use super::{Keyed, administrator, policy};
use crate::client::{Reply, assert_refused};
use crate::signing::{Signer, hash};

const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

const TAGS: &str = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";

/// A temporary key.
#[derive(Clone)]
struct Session {
    access_key: String,
    secret_key: String,
    token: String,
}

impl Session {
    fn from_reply(reply: &Reply) -> Self {
        assert_eq!(reply.status, 200, "{}", reply.text());
        let part = |name: &str| reply.xml(name).unwrap();
        Self {
            access_key: part("AccessKeyId"),
            secret_key: part("SecretAccessKey"),
            token: part("SessionToken"),
        }
    }

    fn signer(&self, keyed: &Keyed) -> Signer<'_> {
        let (access_key, secret_key) = (&*self.access_key, &*self.secret_key);
        Signer { client: keyed.server.s3, access_key, secret_key }
    }

    fn send(&self, keyed: &Keyed, method: &str, target: &str, body: &str) -> Reply {
        self.send_with(keyed, method, target, body, &[])
    }

    fn send_with(
        &self,
        keyed: &Keyed,
        method: &str,
        target: &str,
        body: &str,
        more: &[(&str, &str)],
    ) -> Reply {
        let more = [&[("x-amz-security-token", &*self.token)], more].concat();
        let hash = hash(body.as_bytes());
        self.signer(keyed).send_with(method, target, &hash, &more, |_| body.as_bytes().to_vec())
    }

    fn check(&self, keyed: &Keyed, requests: &[(&str, &str, &str, u16)]) {
        for (method, target, body, status) in requests {
            let reply = self.send(keyed, method, target, body);
            assert_eq!(reply.status, *status, "{method} {target}: {}", reply.text());
        }
    }
}

/// Sends a form to STS.
fn ask(signer: &Signer<'_>, form: &str, more: &[(&str, &str)]) -> Reply {
    let more = [&[("content-type", FORM)], more].concat();
    signer.send_with("POST", "/", &hash(form.as_bytes()), &more, |_| form.as_bytes().to_vec())
}

fn root(keyed: &Keyed) -> Signer<'static> {
    let pair = Box::leak(Box::new(administrator()));
    Signer { client: keyed.server.s3, access_key: &pair.access_key, secret_key: &pair.secret_key }
}

/// Returns a form for a session with a policy of these statements.
fn form(statements: &str) -> String {
    let policy = format!(r#"{{"Version":"2012-10-17","Statement":[{statements}]}}"#);
    let policy = policy.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    format!("Action=AssumeRole&Version=2011-06-15&DurationSeconds=900&Policy={policy}")
}

fn statement(effect: &str, actions: &str, resources: &str) -> String {
    format!(r#"{{"Effect":"{effect}","Action":{actions},"Resource":{resources}}}"#)
}

const ASSUME: &str = "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Ax&RoleSessionName=x";

#[test]
fn temporary_key_has_the_rights_of_its_parent() {
    let mut keyed = Keyed::new();
    let ann = keyed.key("ann", &[("read,write,list", "bucket")]);
    for form in [ASSUME, "Action=GetSessionToken&Version=2011-06-15&DurationSeconds=3600"] {
        let reply = ask(&keyed.signer(&ann), form, &[]);
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        let expiration = reply.xml("Expiration").unwrap();
        assert!(expiration.starts_with("20") && expiration.ends_with('Z'), "{expiration}");
        let session = Session::from_reply(&reply);
        session.check(
            &keyed,
            &[
                ("GET", "/bucket/key", "", 200),
                ("GET", "/bucket/key", "", 200),
                ("HEAD", "/bucket/key", "", 200),
                ("PUT", "/bucket/new", "new", 200),
                ("GET", "/bucket?list-type=2", "", 200),
                ("DELETE", "/bucket/key", "", 403),
                ("GET", "/other/key", "", 403),
            ],
        );
        // Without its token, the key is unknown.
        let reply = session.signer(&keyed).send("GET", "/bucket/key", &hash(b""), b"");
        assert_refused(&reply, 403, "InvalidAccessKeyId");
    }
}

#[test]
fn rights_of_a_temporary_key_change_with_its_parent() {
    let mut keyed = Keyed::new();
    let ann = keyed.key("ann", &[("read", "bucket")]);
    let session = Session::from_reply(&ask(&keyed.signer(&ann), ASSUME, &[]));
    session.check(&keyed, &[("GET", "/bucket/key", "", 200), ("GET", "/other/key", "", 403)]);
    let grant = ("other".parse().unwrap(), "read".parse().unwrap());
    keyed.change(|list| list.key_mut(&ann.access_key).unwrap().allow(grant.0, grant.1).unwrap());
    session.check(&keyed, &[("GET", "/other/key", "", 200)]);
    let get = |keyed: &Keyed| session.send(keyed, "GET", "/bucket/key", "");
    keyed.change(|list| list.key_mut(&ann.access_key).unwrap().is_disabled = true);
    assert_refused(&get(&keyed), 403, "InvalidAccessKeyId");
    keyed.change(|list| list.key_mut(&ann.access_key).unwrap().is_disabled = false);
    assert_eq!(get(&keyed).status, 200, "the session of an enabled key is valid again");
    keyed.change(|list| {
        list.key_mut(&ann.access_key).unwrap().expires = Some(SystemTime::now());
    });
    assert_refused(&get(&keyed), 403, "InvalidAccessKeyId");
    keyed.change(|list| assert!(list.remove(&ann.access_key)));
    assert_refused(&get(&keyed), 403, "InvalidAccessKeyId");
    // A key with another secret key does not accept the sessions of the earlier one.
    keyed.change(|list| {
        let key = list.create("ann", SystemTime::now()).unwrap();
        key.access_key = ann.access_key.clone();
    });
    assert_refused(&get(&keyed), 400, "InvalidToken");
}

#[test]
fn session_ends_when_its_parent_is_rotated_without_an_overlap() {
    let mut keyed = Keyed::new();
    let ann = keyed.key("ann", &[("read", "bucket")]);
    let session = Session::from_reply(&ask(&keyed.signer(&ann), ASSUME, &[]));
    // `haul keys rotate` lets the earlier key expire: in 24 hours by default, now with --overlap 0s.
    let mut rotate = |overlap: Duration| {
        keyed.change(|list| {
            let earlier = list.key_mut(&ann.access_key).unwrap();
            earlier.expires = Some(SystemTime::now() + overlap);
        });
        session.send(&keyed, "GET", "/bucket/key", "")
    };
    assert_eq!(rotate(Duration::from_hours(24)).status, 200);
    assert_refused(&rotate(Duration::ZERO), 403, "InvalidAccessKeyId");
}

#[test]
fn policy_of_a_session_restricts_its_rights() {
    let mut keyed = Keyed::new();
    let ann = keyed.key("ann", &[("admin", "bucket")]);
    let only = statement(
        "Allow",
        r#"["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]"#,
        r#""arn:aws:s3:::bucket/dir/*""#,
    );
    let session = Session::from_reply(&ask(&keyed.signer(&ann), &form(&only), &[]));
    session.check(
        &keyed,
        &[
            ("GET", "/bucket/dir/key", "", 200),
            ("PUT", "/bucket/dir/new", "new", 200),
            ("DELETE", "/bucket/dir/new", "", 204),
            ("GET", "/bucket/key", "", 403),
            ("GET", "/bucket/dir/absent", "", 403),
            ("GET", "/bucket", "", 403),
            ("GET", "/bucket/dir/key?tagging=", "", 403),
            ("DELETE", "/bucket", "", 403),
            ("GET", "/", "", 403),
            ("PUT", "/ann-1", "", 403),
        ],
    );
    let copy = |from: &str, to: &str| {
        session.send_with(&keyed, "PUT", to, "", &[("x-amz-copy-source", from)]).status
    };
    assert_eq!(copy("/bucket/dir/key", "/bucket/dir/copy"), 200);
    assert_eq!(copy("/bucket/key", "/bucket/dir/copy"), 403);
    assert_eq!(copy("/bucket/dir/key", "/bucket/copy"), 403);
    let delete =
        "<Delete><Object><Key>key</Key></Object><Object><Key>dir/copy</Key></Object></Delete>";
    let reply = session.send(&keyed, "POST", "/bucket?delete=", delete);
    assert_eq!(reply.all_xml("Key"), ["dir/copy", "key"], "{}", reply.text());
    assert_eq!(reply.all_xml("Code"), ["AccessDenied"]);
    // Neither a bucket policy nor an access list gives more.
    policy::set(&keyed, &policy::statement("Allow", r#""*""#, "GetObject", "/*", ""));
    session.check(&keyed, &[("GET", "/bucket/key", "", 403)]);
    assert_eq!(policy::anonymous(&keyed, "GET", "/bucket/key").status, 200);
    assert_refused(&keyed.root("DELETE", "/bucket?policy=", b""), 204, "");
    let public = [("x-amz-acl", "public-read")];
    let signed =
        root(&keyed).send_with("PUT", "/bucket/key?acl=", &hash(b""), &public, |_| Vec::new());
    assert_eq!(signed.status, 200);
    session.check(&keyed, &[("GET", "/bucket/key", "", 403)]);
    assert_eq!(policy::anonymous(&keyed, "GET", "/bucket/key").status, 200);
    let refused = session.send(&keyed, "GET", "/bucket/key", "").text();
    assert!(refused.contains("the policy of the session does not allow it"), "{refused}");
}

#[test]
fn policy_of_a_session_restricts_the_administrator() {
    let mut keyed = Keyed::new();
    keyed.key("ann", &[]);
    let read = statement("Allow", r#""s3:GetObject""#, r#""arn:aws:s3:::bucket/*""#);
    let session = Session::from_reply(&ask(&root(&keyed), &form(&read), &[]));
    let quota = "<Quota><Bytes>1</Bytes></Quota>";
    session.check(
        &keyed,
        &[
            ("GET", "/bucket/key", "", 200),
            ("GET", "/bucket/key", "", 200),
            ("HEAD", "/bucket/dir/key", "", 200),
            ("GET", "/other/key", "", 403),
            ("PUT", "/bucket/key", "a", 403),
            ("DELETE", "/bucket/key", "", 403),
            ("GET", "/bucket", "", 403),
            ("GET", "/", "", 403),
            ("PUT", "/new-bucket", "", 403),
            ("DELETE", "/other", "", 403),
            ("GET", "/bucket?policy=", "", 403),
            ("PUT", "/bucket?quota=", quota, 403),
            ("GET", "/bucket?quota=", "", 403),
            ("PUT", "/bucket/key?tagging=", TAGS, 403),
            ("GET", "/bucket/absent", "", 403),
        ],
    );
    let all = Session::from_reply(&ask(&root(&keyed), ASSUME, &[]));
    all.check(
        &keyed,
        &[
            ("GET", "/", "", 200),
            ("PUT", "/new-bucket", "", 200),
            ("GET", "/bucket?quota=", "", 200),
        ],
    );
    // The policy of the session sees the tags of the object.
    let tagged = r#"{"Effect":"Allow","Action":"s3:GetObject","Resource":"*",
        "Condition":{"StringEquals":{"s3:ExistingObjectTag/a":"b"}}}"#;
    let session = Session::from_reply(&ask(&root(&keyed), &form(tagged), &[]));
    session.check(&keyed, &[("GET", "/bucket/key", "", 403)]);
    assert_eq!(keyed.root("PUT", "/bucket/key?tagging=", TAGS.as_bytes()).status, 200);
    session.check(&keyed, &[("GET", "/bucket/key", "", 200), ("GET", "/bucket/key", "", 200)]);
}

#[test]
fn policies_of_the_user_apply_to_its_sessions() {
    let mut keyed = Keyed::new();
    let ann = keyed.key("ann", &[]);
    let text = format!(r#"{{"Statement":{}}}"#, statement("Allow", r#""s3:GetObject""#, r#""*""#));
    keyed.change(|list| {
        list.policies_mut().put("read", &text).unwrap();
        list.policies_mut().attach("read", PolicyHolder::User("ann")).unwrap();
    });
    let session = Session::from_reply(&ask(&keyed.signer(&ann), ASSUME, &[]));
    session.check(&keyed, &[("GET", "/bucket/key", "", 200), ("PUT", "/bucket/key", "a", 403)]);
    keyed.change(|list| assert!(list.policies_mut().detach("read", PolicyHolder::User("ann"))));
    session.check(&keyed, &[("GET", "/bucket/key", "", 403)]);
}

#[test]
fn invalid_tokens_are_refused() {
    let mut keyed = Keyed::new();
    let key = |keyed: &mut Keyed, user: &str| keyed.key(user, &[("read", "bucket")]);
    let (ann, ben) = (key(&mut keyed, "ann"), key(&mut keyed, "ben"));
    let of = |key: &Key| Session::from_reply(&ask(&keyed.signer(key), ASSUME, &[]));
    let (session, other, bens) = (of(&ann), of(&ann), of(&ben));
    let changed = |at: usize| {
        let mut token = session.token.clone().into_bytes();
        token[at] = if token[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8(token).unwrap()
    };
    let end = session.token.len() - 2;
    for token in [
        String::new(),
        "x".to_owned(),
        changed(end),
        changed(end / 2),
        session.token[..end].to_owned(),
        other.token.clone(),
        bens.token.clone(),
    ] {
        let wrong = Session { token: token.clone(), ..session.clone() };
        let reply = wrong.send(&keyed, "GET", "/bucket/key", "");
        assert_refused(&reply, 400, "InvalidToken");
    }
    // A key of the key file has no token.
    let more = [("x-amz-security-token", &*session.token)];
    assert_refused(&keyed.send_with(&ann, "GET", "/bucket/key", &more), 400, "InvalidToken");
    let wrong = Session { secret_key: ann.secret_key.clone(), ..session.clone() };
    let reply = wrong.send(&keyed, "GET", "/bucket/key", "");
    assert_refused(&reply, 403, "SignatureDoesNotMatch");
    // A token that is not signed could have been added by anyone.
    let hash = hash(b"");
    let request = session.signer(&keyed).request("GET", "/bucket/key", &hash, &[], |_| Vec::new());
    let text = String::from_utf8(request).unwrap();
    let token = format!("\r\nx-amz-security-token: {}\r\n", session.token);
    let reply = keyed.server.s3.raw(text.replacen("\r\n", &token, 1).as_bytes());
    assert_refused(&reply, 403, "AccessDenied");
}

#[test]
fn presigned_urls_have_the_rights_of_the_session() {
    let mut keyed = Keyed::new();
    let ann = keyed.key("ann", &[("read,write", "bucket")]);
    let read = statement("Allow", r#""s3:GetObject""#, r#""*""#);
    let session = Session::from_reply(&ask(&keyed.signer(&ann), &form(&read), &[]));
    let token = [("X-Amz-Security-Token", &*session.token)];
    let presign = |method: &str, token: &[(&str, &str)]| {
        session.signer(&keyed).presign_with(method, "/bucket/key", token)
    };
    let get = presign("GET", &token);
    let status =
        |keyed: &Keyed, method: &str, url: &str| keyed.server.s3.send(method, url, &[], b"");
    assert_eq!(status(&keyed, "GET", &get).body, b"hello");
    assert_refused(&status(&keyed, "PUT", &presign("PUT", &token)), 403, "AccessDenied");
    assert_refused(&status(&keyed, "GET", &presign("GET", &[])), 403, "InvalidAccessKeyId");
    let cut = get.replace(&session.token, &session.token[1..]);
    assert_refused(&status(&keyed, "GET", &cut), 400, "InvalidToken");
    let v2 = session.signer(&keyed).presign_v2("GET", "/bucket/key", &[]);
    let v2 = format!("{v2}&x-amz-security-token={}", session.token);
    assert_refused(&status(&keyed, "GET", &v2), 400, "InvalidRequest");
    keyed.change(|list| assert!(list.remove(&ann.access_key)));
    assert_refused(&status(&keyed, "GET", &get), 403, "InvalidAccessKeyId");
}

#[test]
fn temporary_keys_create_no_keys_and_do_not_log_in() {
    let mut keyed = Keyed::new();
    let ann = keyed.key("ann", &[]);
    for parent in [keyed.signer(&ann), root(&keyed)] {
        let session = Session::from_reply(&ask(&parent, ASSUME, &[]));
        let token = [("x-amz-security-token", &*session.token)];
        let refused = ask(&session.signer(&keyed), ASSUME, &token);
        assert_eq!((refused.status, refused.xml("Code").as_deref()), (403, Some("AccessDenied")));
        let basic = |secret: &str| {
            use base64_simd::STANDARD as BASE64;
            let pair = format!("{}:{secret}", session.access_key);
            let basic = format!("Basic {}", BASE64.encode_to_string(pair));
            keyed.server.admin.send("GET", "/keys.json", &[("authorization", &*basic)], b"").status
        };
        assert_eq!(basic(&session.secret_key), 401);
        assert_eq!(basic(&session.token), 401);
    }
}

#[test]
fn requests_for_temporary_keys_are_signed_with_their_body() {
    let keyed = Keyed::new();
    let root = root(&keyed);
    let client = keyed.server.s3;
    let headers = [("content-type", FORM)];
    let code = |reply: &Reply| (reply.status, reply.xml("Code").unwrap_or_default());
    let refused = |status: u16, code: &str| (status, code.to_owned());
    let unsigned = client.send("POST", "/", &headers, ASSUME.as_bytes());
    assert_eq!(code(&unsigned), refused(403, "AccessDenied"));
    assert!(unsigned.text().contains("<ErrorResponse xmlns=\"https://sts."), "{}", unsigned.text());
    // The hash of another body.
    let other = root.send_with("POST", "/", &hash(b""), &headers, |_| ASSUME.as_bytes().to_vec());
    assert_eq!(code(&other), refused(400, "XAmzContentSHA256Mismatch"));
    let keyword = "UNSIGNED-PAYLOAD";
    let keyword = root.send_with("POST", "/", keyword, &headers, |_| ASSUME.as_bytes().to_vec());
    assert_eq!(code(&keyword), refused(400, "XAmzContentSHA256Mismatch"));
    for (form, expected) in [
        ("Action=AssumeRole&DurationSeconds=1", "ValidationError"),
        ("Action=AssumeRole&PolicyArns.member.1.arn=a", "ValidationError"),
        ("Action=AssumeRoleWithSAML", "InvalidAction"),
        ("Action=AssumeRole&Policy=%7B", "MalformedPolicyDocument"),
    ] {
        assert_eq!(code(&ask(&root, form, &[])), refused(400, expected), "{form}");
    }
    let long = format!("{ASSUME}&x={}", "y".repeat(70_000));
    assert_eq!(code(&ask(&root, &long, &[])), refused(400, "InvalidRequest"));
    // Another POST to the root is none of STS.
    let reply = root.send_with("POST", "/", &hash(b""), &[], |_| Vec::new());
    assert!(!reply.text().contains("ErrorResponse"), "{}", reply.text());
}
