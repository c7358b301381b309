//! Policies of users and groups.

use haul_s3_server::{Key, PolicyHolder};

use super::{Keyed, policy};
use crate::client::assert_refused;

/// Returns a policy with one statement.
fn document(effect: &str, actions: &str, resources: &str, condition: &str) -> String {
    format!(
        r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"{effect}","Action":{actions},
        "Resource":{resources},"Condition":{{{condition}}}}}]}}"#
    )
}

/// Gives a user a policy with one statement.
fn give(keyed: &mut Keyed, user: &str, effect: &str, actions: &str, resources: &str) {
    give_if(keyed, user, effect, (actions, resources, ""));
}

fn give_if(keyed: &mut Keyed, user: &str, effect: &str, parts: (&str, &str, &str)) {
    let (actions, resources, condition) = parts;
    let text = document(effect, actions, resources, condition);
    keyed.change(|list| {
        let policies = list.policies_mut();
        let name = format!("{user}-{}", policies.texts().count());
        policies.put(&name, &text).unwrap();
        policies.attach(&name, PolicyHolder::User(user)).unwrap();
    });
}

/// Sends requests, and compares their statuses.
fn check(keyed: &Keyed, key: &Key, requests: &[(&str, &str, &str, u16)]) {
    for (method, target, body, status) in requests {
        let reply = keyed.send(key, method, target, body.as_bytes());
        assert_eq!(reply.status, *status, "{method} {target}: {}", reply.text());
    }
}

const TAGS: &str = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";

#[test]
fn policy_of_a_user_allows_its_actions_and_no_others() {
    let mut keyed = Keyed::new();
    let ann = keyed.key("ann", &[]);
    check(&keyed, &ann, &[("GET", "/bucket/dir/key", "", 403)]);
    give(
        &mut keyed,
        "ann",
        "Allow",
        r#"["s3:GetObject", "s3:PutObject"]"#,
        r#""arn:aws:s3:::bucket/dir/*""#,
    );
    check(
        &keyed,
        &ann,
        &[
            ("GET", "/bucket/dir/key", "", 200),
            // From memory, too.
            ("GET", "/bucket/dir/key", "", 200),
            ("HEAD", "/bucket/dir/key", "", 200),
            ("PUT", "/bucket/dir/new", "new", 200),
            ("GET", "/bucket/key", "", 403),
            ("GET", "/other/key", "", 403),
            ("GET", "/bucket/dir/key?tagging=", "", 403),
            ("PUT", "/bucket/dir/key?tagging=", TAGS, 403),
            ("DELETE", "/bucket/dir/key", "", 403),
            ("GET", "/bucket?list-type=2", "", 403),
            ("GET", "/bucket/dir/absent", "", 403),
            ("PUT", "/bucket?quota=", "", 403),
        ],
    );
    give(&mut keyed, "ann", "Allow", r#""s3:ListBucket""#, r#""arn:aws:s3:::buck*""#);
    check(
        &keyed,
        &ann,
        &[("GET", "/bucket?list-type=2", "", 200), ("GET", "/bucket/dir/absent", "", 404)],
    );
    // What a policy of the administrator allows to store belongs to the owner of the bucket.
    assert!(keyed.root("GET", "/bucket/dir/new?acl=", b"").text().contains("<ID>haul</ID>"));
    let tagged = [("x-amz-tagging", "a=b")];
    assert_eq!(keyed.send_with(&ann, "PUT", "/bucket/dir/tagged", &tagged).status, 403);
}

#[test]
fn policy_of_a_user_denies_what_a_grant_allows() {
    let mut keyed = Keyed::new();
    let key = keyed.key_with("ann", &[("admin", "bucket")], |key| key.creates_buckets = true);
    check(&keyed, &key, &[("PUT", "/mine", "", 200), ("PUT", "/mine/key", "a", 200)]);
    check(&keyed, &key, &[("GET", "/mine/key", "", 200)]);
    give(
        &mut keyed,
        "ann",
        "Deny",
        r#"["s3:GetObject", "s3:Delete*", "s3:CreateBucket", "s3:PutBucketPolicy"]"#,
        r#"["arn:aws:s3:::*", "arn:aws:s3:::*/*"]"#,
    );
    let delete = "<Delete><Object><Key>key</Key></Object></Delete>";
    check(
        &keyed,
        &key,
        &[
            ("GET", "/bucket/key", "", 403),
            ("GET", "/mine/key", "", 403),
            ("HEAD", "/mine/key", "", 403),
            ("DELETE", "/mine/key", "", 403),
            ("DELETE", "/mine", "", 403),
            ("PUT", "/another", "", 403),
            ("PUT", "/mine?policy=", "{}", 403),
            ("PUT", "/bucket/key", "new", 200),
        ],
    );
    for bucket in ["bucket", "mine"] {
        let reply = keyed.send(&key, "POST", &format!("/{bucket}?delete="), delete.as_bytes());
        assert_eq!(reply.xml("Code").as_deref(), Some("AccessDenied"), "{}", reply.text());
    }
    assert_refused(&keyed.copy(&key, "/mine/key", "/mine/copy"), 403, "AccessDenied");
    let refused = keyed.send(&key, "GET", "/mine/key", b"").text();
    assert!(refused.contains("a policy of the user or of its groups denies it"), "{refused}");
}

#[test]
fn policy_of_a_group_applies_to_its_users() {
    let mut keyed = Keyed::new();
    let (ann, ben) = (keyed.key("ann", &[]), keyed.key("ben", &[("read", "bucket")]));
    let allow = document("Allow", r#""s3:GetObject""#, r#""arn:aws:s3:::bucket/*""#, "");
    let deny = document("Deny", r#""s3:GetObject""#, r#""arn:aws:s3:::bucket/dir/*""#, "");
    keyed.change(|list| {
        let policies = list.policies_mut();
        policies.put("allow", &allow).unwrap();
        policies.put("deny", &deny).unwrap();
        policies.add_to_group("staff", &["ann".to_owned()]).unwrap();
        policies.add_to_group("guests", &["ann".to_owned(), "ben".to_owned()]).unwrap();
        policies.attach("allow", PolicyHolder::Group("staff")).unwrap();
        policies.attach("deny", PolicyHolder::Group("guests")).unwrap();
    });
    for key in [&ann, &ben] {
        check(&keyed, key, &[("GET", "/bucket/key", "", 200), ("GET", "/bucket/dir/key", "", 403)]);
    }
    keyed.change(|list| {
        let policies = list.policies_mut();
        assert!(policies.remove_from_group("guests", &["ben".to_owned()]));
        assert!(policies.remove_from_group("staff", &["ann".to_owned()]));
    });
    check(&keyed, &ann, &[("GET", "/bucket/key", "", 403)]);
    check(&keyed, &ben, &[("GET", "/bucket/dir/key", "", 200)]);
}

#[test]
fn policies_of_users_and_buckets_are_asked_together() {
    let mut keyed = Keyed::new();
    let ann = keyed.key("ann", &[]);
    give(
        &mut keyed,
        "ann",
        "Allow",
        r#""s3:*""#,
        r#"["arn:aws:s3:::bucket", "arn:aws:s3:::bucket/*"]"#,
    );
    let deny = policy::statement("Deny", r#""*""#, "GetObject", "/dir/*", "");
    policy::set(&keyed, &deny);
    check(
        &keyed,
        &ann,
        &[
            ("GET", "/bucket/dir/key", "", 403),
            ("GET", "/bucket/key", "", 200),
            // A right that the administrator gave: it includes the policy of the bucket.
            ("GET", "/bucket?policy=", "", 200),
            ("GET", "/bucket?quota=", "", 200),
            ("PUT", "/bucket?quota=", "", 403),
        ],
    );
}

#[test]
fn policy_of_a_user_lists_and_creates_buckets() {
    let mut keyed = Keyed::new();
    let (ann, ben, cat) = (keyed.key("ann", &[]), keyed.key("ben", &[]), keyed.key("cat", &[]));
    let names = |keyed: &Keyed, key: &Key| keyed.send(key, "GET", "/", b"").all_xml("Name");
    assert!(names(&keyed, &ann).is_empty());
    give(&mut keyed, "ann", "Allow", r#""s3:ListAllMyBuckets""#, r#""*""#);
    give(&mut keyed, "ben", "Allow", r#""s3:ListBucket""#, r#""arn:aws:s3:::oth*""#);
    give(&mut keyed, "cat", "Deny", r#""s3:ListAllMyBuckets""#, r#""arn:aws:s3:::*""#);
    give(&mut keyed, "ben", "Allow", r#""s3:CreateBucket""#, r#""arn:aws:s3:::ben-*""#);
    assert_eq!(names(&keyed, &ann), ["bucket", "other"]);
    assert_eq!(names(&keyed, &ben), ["other"]);
    assert_eq!(keyed.send(&cat, "GET", "/", b"").status, 403);
    check(
        &keyed,
        &ben,
        &[("PUT", "/ben-1", "", 200), ("PUT", "/ann-1", "", 403), ("PUT", "/ben-1/key", "a", 200)],
    );
    check(&keyed, &ann, &[("GET", "/ben-1/key", "", 403), ("PUT", "/ben-2", "", 403)]);
}

#[test]
fn conditions_of_a_user_policy_see_the_tags_of_the_object() {
    let mut keyed = Keyed::new();
    let ann = keyed.key("ann", &[("admin", "bucket")]);
    let condition = r#""StringEquals":{"s3:ExistingObjectTag/a":"b"}"#;
    let deny = (r#""s3:GetObject""#, r#""arn:aws:s3:::bucket/*""#, condition);
    give_if(&mut keyed, "ann", "Deny", deny);
    check(&keyed, &ann, &[("GET", "/bucket/key", "", 200), ("GET", "/bucket/key", "", 200)]);
    assert_eq!(keyed.root("PUT", "/bucket/key?tagging=", TAGS.as_bytes()).status, 200);
    check(
        &keyed,
        &ann,
        &[
            ("GET", "/bucket/key", "", 403),
            ("GET", "/bucket/key", "", 403),
            ("HEAD", "/bucket/key", "", 403),
            ("GET", "/bucket/dir/key", "", 200),
        ],
    );
    assert_refused(&keyed.copy(&ann, "/bucket/key", "/bucket/copy"), 403, "AccessDenied");
    let condition = r#""StringEquals":{"s3:RequestObjectTag/a":"b"}"#;
    let deny = (r#""s3:PutObjectTagging""#, r#""arn:aws:s3:::bucket/*""#, condition);
    give_if(&mut keyed, "ann", "Deny", deny);
    let other = TAGS.replace("<Value>b", "<Value>c");
    check(
        &keyed,
        &ann,
        &[("PUT", "/bucket/key?tagging=", TAGS, 403), ("PUT", "/bucket/key?tagging=", &other, 200)],
    );
}

#[test]
fn policies_of_users_do_not_restrict_the_administrator() {
    let mut keyed = Keyed::new();
    give(&mut keyed, "ann", "Deny", r#""s3:*""#, r#""*""#);
    assert_eq!(keyed.root("GET", "/bucket/key", b"").status, 200);
}
