//! Parses a bucket policy, and lets it decide about requests: a statement that denies everything
//! prevails, the decision of a policy follows from those of its statements in any order, patterns
//! match as those of a simple matcher, and each decision ends soon.

use std::time::{Duration, Instant};

use haul_s3_server::{PolicyDocument, PolicyRequest};
use serde_json::{Value, json};

const BUCKET: &str = "bucket";

/// The beginning of the names of buckets and objects.
const ARN: &str = "arn:aws:s3:::";

/// The time for all decisions about one input, also on a busy machine. A matcher that tries all
/// places of each `*` would take years.
const TIME_MAX: Duration = Duration::from_secs(20);

/// The number of patterns of an input that are compared with the simple matcher.
const PATTERNS_MAX: usize = 4;

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let began = Instant::now();
    let Ok(policy) = PolicyDocument::parse(text, BUCKET) else { return };
    let document: Value = serde_json::from_str(text).expect("a policy is JSON");
    let statements = match &document["Statement"] {
        Value::Array(many) => many.clone(),
        one => vec![one.clone()],
    };
    let uniform: Vec<Value> = statements.iter().map(uniform).collect();
    assert_eq!(parse(&uniform), policy, "it depends on the form of the document");
    let mut denied = statements.clone();
    denied.push(json!({
        "Effect": "Deny", "Principal": "*", "Action": "*", "Resource": format!("{ARN}*"),
    }));
    let denied = [denied.clone(), denied.into_iter().rev().collect()].map(|all| parse(&all));
    let reversed = parse(&statements.iter().rev().cloned().collect::<Vec<_>>());
    let single: Vec<_> = statements.iter().map(|one| parse(std::slice::from_ref(one))).collect();
    let patterns = resources(&statements);
    let allow = |pattern: &String| {
        let statement = json!({
            "Effect": "Allow", "Principal": "*", "Action": "s3:*",
            "Resource": format!("{ARN}{pattern}"),
        });
        (pattern.clone(), parse(&[statement]))
    };
    let allowed: Vec<_> = patterns.iter().take(PATTERNS_MAX).map(allow).collect();
    for (resource, values) in requests(&patterns) {
        for (user, action) in [(None, "s3:GetObject"), (Some("ann"), "s3:PutObject")] {
            let request = PolicyRequest { user, action, resource: &resource, values };
            let decision = policy.decide(&request);
            let decisions: Vec<_> = single.iter().map(|one| one.decide(&request)).collect();
            let expected = [Some(false), Some(true)].into_iter().find(|it| decisions.contains(it));
            assert_eq!(decision, expected.flatten(), "{request:?}");
            assert_eq!(reversed.decide(&request), decision, "{request:?}");
            assert!(denied.iter().all(|policy| policy.decide(&request) == Some(false)));
        }
        for (pattern, allow) in &allowed {
            let action = "s3:GetObject";
            let request = PolicyRequest { user: None, action, resource: &resource, values };
            let is_allowed = allow.decide(&request) == Some(true);
            assert_eq!(is_allowed, matches(pattern, &resource), "{pattern} {resource}");
        }
    }
    assert!(began.elapsed() < TIME_MAX, "it takes {:?}", began.elapsed());
}

fn parse(statements: &[Value]) -> PolicyDocument {
    let text = json!({ "Statement": statements }).to_string();
    PolicyDocument::parse(&text, BUCKET).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns a statement with arrays in place of single values, and with an empty ID if it has none.
fn uniform(statement: &Value) -> Value {
    let listed = |value: &Value| match value {
        Value::Array(_) => value.clone(),
        one => json!([one]),
    };
    let mut uniform = statement.clone();
    let fields = uniform.as_object_mut().expect("a statement is an object");
    fields.entry("Sid").or_insert_with(|| json!(""));
    for name in ["Action", "NotAction", "Resource", "NotResource"] {
        if let Some(value) = fields.get_mut(name) {
            *value = listed(value);
        }
    }
    for name in ["Principal", "NotPrincipal"] {
        match fields.get_mut(name) {
            Some(Value::Object(kinds)) => kinds.values_mut().for_each(|it| *it = listed(it)),
            Some(value) => *value = json!({ "AWS": listed(value) }),
            None => {}
        }
    }
    if let Some(Value::Object(operators)) = fields.get_mut("Condition") {
        let keys = operators.values_mut().filter_map(Value::as_object_mut);
        keys.flat_map(|keys| keys.values_mut()).for_each(|values| *values = listed(values));
    }
    uniform
}

/// Returns the patterns for buckets and objects in statements.
fn resources(statements: &[Value]) -> Vec<String> {
    let values = statements.iter().flat_map(|one| [&one["Resource"], &one["NotResource"]]);
    let texts = values.flat_map(|value| match value {
        Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect::<Vec<_>>(),
    });
    texts.filter_map(|text| text.strip_prefix(ARN)).map(str::to_owned).collect()
}

/// The names and values of condition keys.
type Values = &'static [(&'static str, &'static str)];

/// Returns names of objects and values of requests: some that the patterns match, and long ones on
/// which matchers try much.
fn requests(patterns: &[String]) -> Vec<(String, Values)> {
    const NONE: Values = &[];
    const SOME: Values = &[
        ("aws:SourceIp", "192.0.2.1"),
        ("aws:CurrentTime", "1795651200"),
        ("aws:SecureTransport", "true"),
        ("aws:username", "ann"),
        ("aws:Referer", "http://example.org/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"),
        ("s3:prefix", ""),
        ("s3:max-keys", "10"),
        ("s3:x-amz-acl", "private"),
        ("s3:ExistingObjectTag/t", "a"),
    ];
    let mut requests: Vec<(String, Values)> = vec![
        (BUCKET.to_owned(), SOME),
        (format!("{BUCKET}/key"), NONE),
        (format!("{BUCKET}/{}", "a".repeat(1000)), SOME),
        (format!("{BUCKET}/{}b", "ab".repeat(500)), SOME),
    ];
    for pattern in patterns.iter().take(PATTERNS_MAX) {
        requests.push((pattern.replace('*', "").replace('?', "x"), SOME));
        requests.push((pattern.replace('*', "aa/").replace('?', "\u{e4}"), NONE));
    }
    requests
}

/// Returns `true` if the whole text matches the pattern. Follows the definition: for each beginning
/// of the pattern, it computes which beginnings of the text match.
fn matches(pattern: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut matching = vec![false; text.len() + 1];
    matching[0] = true;
    for expected in pattern.chars() {
        let before = std::mem::replace(&mut matching, vec![false; text.len() + 1]);
        if expected == '*' {
            let first = before.iter().position(|it| *it).unwrap_or(before.len());
            matching[first..].fill(true);
        } else {
            for (at, found) in text.iter().enumerate() {
                matching[at + 1] = before[at] && (expected == '?' || *found == expected);
            }
        }
    }
    matching[text.len()]
}
