use std::borrow::Cow;

use serde_json::{Value, json};

use crate::policy::condition::{Facts, Key};
use crate::policy::evaluate::{Access, Client, Verdict};
use crate::policy::statement::Policy;

/// A request's properties, by their names in policies.
struct Given<'a>(&'a [(&'a str, &'a str)]);

impl Facts for Given<'_> {
    fn value(&self, key: &Key) -> Option<Cow<'_, str>> {
        let (_, value) = self.0.iter().find(|(name, _)| Key::parse(name).as_ref() == Some(key))?;
        Some(Cow::Borrowed(value))
    }
}

fn policy(statements: Value) -> Policy {
    let document = json!({ "Version": "2012-10-17", "Statement": statements });
    Policy::parse(&document.to_string(), "b").unwrap()
}

fn decide(policy: &Policy, user: Option<&str>, action: &str, resource: &str) -> Verdict {
    policy.evaluate(&Access { client: Client::User(user), action, resource }, &Given(&[]))
}

#[test]
fn statement_applies_if_principal_action_and_resource_match() {
    let one = policy(json!({
        "Effect": "Allow", "Principal": { "AWS": ["arn:aws:iam:::user/team/ann", "ben"] },
        "Action": ["s3:GetObject*", "s3:listbucket"],
        "Resource": ["arn:aws:s3:::b", "arn:aws:s3:::b/public/*"]
    }));
    for (user, action, resource, expected) in [
        (Some("ann"), "s3:GetObject", "b/public/x", Verdict::Allowed),
        (Some("ben"), "s3:GetObjectTagging", "b/public/x/y", Verdict::Allowed),
        (Some("ben"), "s3:ListBucket", "b", Verdict::Allowed),
        (Some("team"), "s3:ListBucket", "b", Verdict::Silent),
        (None, "s3:ListBucket", "b", Verdict::Silent),
        (Some("ann"), "s3:GetObject", "b/private", Verdict::Silent),
        (Some("ann"), "s3:PutObject", "b/public/x", Verdict::Silent),
    ] {
        assert_eq!(decide(&one, user, action, resource), expected, "{user:?} {action} {resource}");
    }
}

#[test]
fn denial_prevails_and_negated_parts_match_all_others() {
    let both = policy(json!([
        { "Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "arn:aws:s3:::b*" },
        { "Effect": "Deny", "NotPrincipal": { "AWS": "ann" }, "NotAction": "s3:Get*",
          "NotResource": "arn:aws:s3:::b/open/*" },
    ]));
    assert_eq!(decide(&both, Some("ann"), "s3:PutObject", "b/x"), Verdict::Allowed);
    assert_eq!(decide(&both, Some("ben"), "s3:GetObject", "b/x"), Verdict::Allowed);
    assert_eq!(decide(&both, Some("ben"), "s3:PutObject", "b/open/x"), Verdict::Allowed);
    assert_eq!(decide(&both, Some("ben"), "s3:PutObject", "b/x"), Verdict::Denied);
    assert_eq!(decide(&both, None, "s3:PutObject", "b/x"), Verdict::Denied);
}

/// Returns `true` if a policy with one condition allows a request with one property.
fn with_condition(operator: &str, key: &str, values: Value, given: Option<&str>) -> bool {
    let mut condition = json!({});
    condition[operator][key] = values;
    let one = policy(json!({
        "Effect": "Allow", "Principal": "*", "Action": "s3:GetObject",
        "Resource": "arn:aws:s3:::b/*", "Condition": condition
    }));
    let given: Vec<_> = given.map(|value| (key, value)).into_iter().collect();
    let access = Access { client: Client::User(None), action: "s3:GetObject", resource: "b/x" };
    one.evaluate(&access, &Given(&given)) == Verdict::Allowed
}

#[test]
fn conditions_compare_properties_of_requests() {
    for (operator, key, values, matching, other) in [
        ("StringEquals", "s3:ExistingObjectTag/Team", json!(["a", "b"]), "b", "c"),
        ("StringNotEquals", "s3:x-amz-acl", json!(["a", "b"]), "c", "b"),
        ("StringLikeIfExists", "aws:Referer", json!("http://x/*"), "http://x/y", "http://y/"),
        ("NumericLessThanEquals", "s3:max-keys", json!(10), "10", "11"),
        ("Bool", "aws:SecureTransport", json!(true), "true", "false"),
        ("NotIpAddress", "aws:SourceIp", json!("10.0.0.0/8"), "192.0.2.1", "10.1.1.1"),
        ("DateLessThan", "aws:CurrentTime", json!("2026-11-26T00:00:00Z"), "0", "9999999999"),
    ] {
        assert!(with_condition(operator, key, values.clone(), Some(matching)), "{operator}");
        assert!(!with_condition(operator, key, values, Some(other)), "{operator}");
    }
}

/// Policies may name operator keys by aliases and ARNs, as requests do.
#[test]
fn conditions_compare_the_names_of_encryption_keys() {
    const KEY: &str = "s3:x-amz-server-side-encryption-aws-kms-key-id";
    const ARN: &str = "arn:aws:kms:us-east-1:1:key/taxes";
    for (operator, value) in [
        ("StringEquals", "taxes"),
        ("StringEquals", "alias/taxes"),
        ("StringEquals", ARN),
        ("StringEqualsIgnoreCase", "ARN:aws:KMS:us-east-1:1:key/Taxes"),
        ("StringLike", "tax*"),
        ("StringLike", "alias/tax*"),
        ("StringLike", "*/taxes"),
        ("StringLike", "arn:aws:kms:*:*:key/t?xes"),
        ("StringLike", "arn:aws:kms:*"),
        ("ArnEquals", ARN),
        ("ArnLike", "arn:aws:kms:*:*:*/tax*"),
    ] {
        for (given, expected) in [(Some("taxes"), true), (Some("photos"), value.ends_with(":*"))] {
            assert_eq!(with_condition(operator, KEY, json!(value), given), expected, "{value}");
        }
        assert!(!with_condition(operator, KEY, json!(value), None), "{value}");
    }
    assert!(!with_condition("StringNotEquals", KEY, json!(ARN), Some("taxes")));
    assert!(with_condition("StringNotEquals", KEY, json!(ARN), Some("photos")));
    // Other values are compared as they are.
    let other = "s3:x-amz-website-redirect-location";
    assert!(!with_condition("StringEquals", other, json!("alias/taxes"), Some("taxes")));
}

#[test]
fn missing_value_meets_negated_optional_and_null_conditions_only() {
    for (operator, holds) in [
        ("StringEquals", false),
        ("StringNotEquals", true),
        ("StringEqualsIfExists", true),
        ("StringNotLikeIfExists", true),
        ("StringLike", false),
    ] {
        assert_eq!(with_condition(operator, "s3:prefix", json!("*"), None), holds, "{operator}");
    }
    assert!(with_condition("Null", "s3:x-amz-tagging", json!("true"), None));
    assert!(!with_condition("Null", "s3:x-amz-tagging", json!("true"), Some("a=b")));
    assert!(!with_condition("Null", "s3:x-amz-tagging", json!("false"), None));
}

#[test]
fn all_conditions_of_a_statement_must_hold() {
    let one = policy(json!({
        "Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "arn:aws:s3:::b/*",
        "Condition": {
            "StringEquals": { "s3:prefix": "a", "s3:delimiter": "/" }, "Bool": {
            "aws:SecureTransport": "true" } }
    }));
    let access = Access { client: Client::User(None), action: "s3:GetObject", resource: "b/x" };
    let all = [("s3:prefix", "a"), ("s3:delimiter", "/"), ("aws:SecureTransport", "true")];
    assert_eq!(one.evaluate(&access, &Given(&all)), Verdict::Allowed);
    for missing in 0..all.len() {
        let mut given = all.to_vec();
        given.remove(missing);
        assert_eq!(one.evaluate(&access, &Given(&given)), Verdict::Silent);
    }
}

#[test]
fn public_policies_are_found() {
    let is_public = |principal: Value, condition: Value| {
        policy(json!({
            "Effect": "Allow", "Principal": principal, "Action": "s3:GetObject",
            "Resource": "arn:aws:s3:::b/*", "Condition": condition
        }))
        .is_public()
    };
    assert!(is_public(json!("*"), json!({})));
    assert!(is_public(json!({ "AWS": ["ann", "*"] }), json!({})));
    assert!(!is_public(json!({ "AWS": "ann" }), json!({})));
    for (condition, expected) in [
        (json!({ "IpAddress": { "aws:SourceIp": "10.0.0.0/32" } }), false),
        (json!({ "IpAddress": { "aws:SourceIp": ["10.0.0.0/8", "0.0.0.0/0"] } }), true),
        (json!({ "NotIpAddress": { "aws:SourceIp": "10.0.0.0/32" } }), true),
        (json!({ "StringEquals": { "aws:username": "ann" } }), false),
        (json!({ "StringLike": { "aws:username": "*" } }), true),
        (json!({ "StringLike": { "aws:Referer": "http://example.org/*" } }), true),
    ] {
        assert_eq!(is_public(json!("*"), condition.clone()), expected, "{condition}");
    }
}

#[test]
fn existing_tags_are_needed_only_by_conditions_on_them() {
    let uses = |key: &str| {
        let mut condition = json!({});
        condition["StringEquals"][key] = json!("x");
        policy(json!({
            "Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "arn:aws:s3:::b/*",
            "Condition": condition
        }))
        .uses_existing_tags()
    };
    assert!(uses("s3:ExistingObjectTag/x"));
    assert!(!uses("s3:RequestObjectTag/x"));
}

#[test]
fn refused_policies_name_the_reason() {
    let valid = json!({
        "Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "arn:aws:s3:::b/*"
    });
    let statement = |field: &str, value: Value| {
        let mut changed = valid.clone();
        changed[field] = value;
        json!({ "Statement": [changed] }).to_string()
    };
    let mut without_principal = valid.clone();
    without_principal.as_object_mut().unwrap().remove("Principal");
    let mut allowed_but = without_principal.clone();
    allowed_but["NotPrincipal"] = json!("ann");
    for (text, reason) in [
        ("{".to_owned(), "not JSON"),
        (json!({}).to_string(), "at least one statement"),
        (json!({ "Statement": [] }).to_string(), "at least one statement"),
        (json!({ "Version": "2020", "Statement": valid }).to_string(), "Version"),
        (json!({ "Statement": valid, "Other": 1 }).to_string(), "unknown field Other"),
        (
            json!({ "Statement": [valid, without_principal] }).to_string(),
            "statement 2: exactly one",
        ),
        (json!({ "Statement": allowed_but }).to_string(), "NotPrincipal is allowed"),
        (statement("Effect", json!("allow")), "Effect"),
        (statement("Principal", json!({ "Federated": "x" })), "kind Federated"),
        (statement("Principal", json!("arn:aws:sts::x")), "not supported"),
        (statement("Principal", json!("")), "not supported"),
        (statement("Principal", json!([])), "principal is empty"),
        (statement("Principal", json!({})), "principal is empty"),
        (statement("Principal", json!({ "AWS": "" })), "not supported"),
        (statement("Principal", json!({ "AWS": [] })), "principal is empty"),
        (statement("Principal", json!({ "AWS": "ann", "Service": [] })), "principal is empty"),
        (statement("Principal", json!({ "CanonicalUser": "*" })), "not supported"),
        (statement("Principal", json!("arn:aws:iam::1:user/*")), "malformed"),
        (statement("Action", json!("ec2:Run")), "begins with \"s3:\""),
        (statement("Action", json!("s3:FooBar")), "no action \"s3:FooBar\""),
        (statement("Action", json!(["s3:GetObject", "s3:Foo*"])), "no action \"s3:Foo*\""),
        (statement("Action", json!([])), "Action is empty"),
        (statement("NotAction", json!("s3:*")), "exactly one of Action and NotAction"),
        (statement("Resource", json!("b/*")), "begins with \"arn:aws:s3:::\""),
        (statement("Resource", json!("arn:aws:s3:::other/*")), "not in the bucket b"),
        (statement("Resource", json!("arn:aws:s3:::b/${aws:username}/*")), "variables"),
        (statement("Condition", json!({ "Like": {} })), "operator Like"),
        (statement("Condition", json!({ "ForAnyValue:StringLike": {} })), "operator ForAny"),
        (statement("Condition", json!({ "Bool": { "aws:Mfa": "true" } })), "key aws:Mfa"),
        (statement("Condition", json!({ "Bool": { "aws:SecureTransport": "1" } })), "no value"),
        (statement("Condition", json!({ "StringLike": { "s3:prefix": [] } })), "no values"),
        (
            statement(
                "Condition",
                json!({ "StringLike": { "aws:Referer": format!("*{}*", "?".repeat(513)) } }),
            ),
            "more than 512 bytes",
        ),
        (
            statement("Resource", json!(format!("arn:aws:s3:::b/*{}*", "a?".repeat(257)))),
            "more than 512 bytes",
        ),
        (statement("Sid", json!("x".repeat(20 * 1024))), "at most 20480 bytes"),
    ] {
        let error = Policy::parse(&text, "b").unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

/// A JSON parser would drop the earlier member, and with it a condition or the effect.
#[test]
fn members_that_are_given_twice_are_refused() {
    const VALID: &str = r#"{"Statement": {"Effect": "Deny", "Principal": "*", "Action": "s3:*",
        "Resource": "arn:aws:s3:::b/*", "Condition": {"StringEquals": {"s3:prefix": "a"}}}}"#;
    assert!(Policy::parse(VALID, "b").is_ok());
    let near = r#""Condition": {"Bool": {"aws:SecureTransport": "true"}}, "Condition""#;
    for (part, twice, name) in [
        (r#""Effect""#, r#""Effect": "Allow", "Effect""#, "Effect"),
        (r#""Condition""#, near, "Condition"),
        (r#""StringEquals""#, r#""StringEquals": {}, "StringEquals""#, "StringEquals"),
        (r#""s3:prefix""#, r#""s3:prefix": "b", "s3:pre\u0066ix""#, "s3:prefix"),
        (r#"{"Statement""#, r#"{"Statement": [], "Statement""#, "Statement"),
    ] {
        let error = Policy::parse(&VALID.replace(part, twice), "b").unwrap_err();
        assert_eq!(error, format!("the member {name} is given twice"));
    }
}

#[test]
fn service_is_allowed_by_its_name_only_and_denied_with_everyone() {
    const NAME: &str = "logging.s3.amazonaws.com";
    let decide = |statements: Value, name: &str| {
        let client = Client::Service(name);
        let access = Access { client, action: "s3:PutObject", resource: "b/log/x" };
        policy(statements).evaluate(&access, &Given(&[]))
    };
    let statement = |effect: &str, principal: Value| {
        json!({ "Effect": effect, "Principal": principal, "Action": "s3:PutObject",
                "Resource": "arn:aws:s3:::b/log/*" })
    };
    let service = statement("Allow", json!({ "Service": [NAME] }));
    assert_eq!(decide(service.clone(), NAME), Verdict::Allowed);
    assert_eq!(decide(service.clone(), "other.amazonaws.com"), Verdict::Silent);
    let both = statement("Allow", json!({ "AWS": "*", "Service": NAME }));
    assert_eq!(decide(both, NAME), Verdict::Allowed);
    for everyone in [json!("*"), json!({ "AWS": "*" })] {
        assert_eq!(decide(statement("Allow", everyone.clone()), NAME), Verdict::Silent);
        let denied = json!([service, statement("Deny", everyone)]);
        assert_eq!(decide(denied, NAME), Verdict::Denied);
    }
    let user =
        Access { client: Client::User(Some(NAME)), action: "s3:PutObject", resource: "b/log/x" };
    assert_eq!(policy(service).evaluate(&user, &Given(&[])), Verdict::Silent);
    for name in ["", "*", "*.amazonaws.com"] {
        let text = json!({ "Statement": statement("Allow", json!({ "Service": name })) });
        assert!(Policy::parse(&text.to_string(), "b").is_err(), "{name}");
    }
}
