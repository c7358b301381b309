//! Compares decisions about random requests with an evaluator of its own, which reads the policies
//! as JSON and shares no code with the server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use haul_file_store::Options;
use haul_store_pool::Pool;
use haul_testing::Random;
use serde_json::{Value, json};

use crate::access::action::action;
use crate::access::authorize::Principal;
use crate::access::caller::Caller;
use crate::access::decision::Decision;
use crate::access::facts::{Connection, RequestFacts, RequestedLock};
use crate::access::keys::credentials::Credentials;
use crate::access::keys::key::KeyList;
use crate::access::keys::key_ring::{ActiveKey, AllKeys, KeyRing, SessionLimits};
use crate::access::keys::policies::PolicyHolder;
use crate::policy::statement::Policy;
use crate::request::head::tests::head;
use crate::settings::{OWNER, POLICY};

/// The number of requests that are decided about.
const CASES: usize = 100_000;

/// The number of requests for each random list of keys and of policies of sessions.
const CASES_FOR_LIST: usize = 100;

/// The number of policies of sessions in a list.
const SESSIONS: usize = 8;

const USERS: [&str; 3] = ["ann", "ben", "cat"];
const GROUPS: [&str; 2] = ["staff", "guests"];
const BUCKETS: usize = 24;
const KEYS: [&str; 4] = ["key", "dir/key", "dir/sub/key", "other/key"];

/// Operations, their actions in AWS, and the rights that allow them.
const OPERATIONS: [(&str, &str, &str); 16] = [
    ("GetObject", "s3:GetObject", "read"),
    ("HeadObject", "s3:GetObject", "read"),
    ("GetObjectTagging", "s3:GetObjectTagging", "read"),
    ("PutObject", "s3:PutObject", "write"),
    ("UploadPart", "s3:PutObject", "write"),
    ("PutObjectTagging", "s3:PutObjectTagging", "write"),
    ("DeleteObject", "s3:DeleteObject", "delete"),
    ("ListObjectsV2", "s3:ListBucket", "list"),
    ("ListMultipartUploads", "s3:ListBucketMultipartUploads", "list"),
    ("HeadBucket", "s3:ListBucket", "any"),
    ("GetBucketLocation", "s3:GetBucketLocation", "any"),
    ("PutBucketPolicy", "s3:PutBucketPolicy", "admin"),
    ("DeleteBucket", "s3:DeleteBucket", "admin"),
    ("CreateBucket", "s3:CreateBucket", "create"),
    ("ListBuckets", "s3:ListAllMyBuckets", "key"),
    ("PutBucketQuota", "s3:PutBucketQuota", "administer"),
];

struct Generator(Random);

impl Generator {
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.0.below(end as u64)).unwrap()
    }

    fn one_of<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns a random statement; `bucket` is that of a bucket policy.
    fn statement(&mut self, bucket: Option<&str>) -> Value {
        let effect = if self.chance(65) { "Allow" } else { "Deny" };
        let actions = [
            "s3:*",
            "*",
            "s3:Get*",
            "s3:Put*",
            "s3:List*",
            "s3:*Object",
            "s3:GetObject",
            "s3:putobject",
            "s3:*Tagging",
            "s3:???Object",
        ];
        let action = self.one_of(&actions);
        let target = bucket.map_or_else(
            || {
                let number = self.below(BUCKETS);
                ["*".to_owned(), "bucket-*".to_owned(), "bucket-1?".to_owned(), bucket_name(number)]
                    [self.below(4)]
                .clone()
            },
            str::to_owned,
        );
        let part = self.one_of(&["", "/*", "*", "/dir/*", "/*key", "/dir/?ey"]);
        let resource = format!("arn:aws:s3:::{target}{part}");
        let mut resources = vec![resource, format!("arn:aws:s3:::{target}")];
        resources.truncate(1 + self.below(2));
        // All actions fit both, so that none is rejected.
        if !matches!(action, "*" | "s3:*" | "s3:List*" | "s3:Get*" | "s3:Put*") {
            resources.push(format!("arn:aws:s3:::{target}/*"));
        }
        if matches!(action, "s3:List*") {
            resources.push(format!("arn:aws:s3:::{target}"));
        }
        let (name, negated) =
            if self.chance(90) { ("Action", "Resource") } else { ("NotAction", "NotResource") };
        let mut statement = json!({ "Effect": effect });
        statement[name] = action.into();
        statement[if self.chance(90) { "Resource" } else { negated }] = resources.into();
        if bucket.is_some() {
            statement["Principal"] =
                if self.chance(50) { json!("*") } else { json!({ "AWS": self.one_of(&USERS) }) };
        }
        match self.below(8) {
            0 => {
                let operator = self.one_of(&["StringEquals", "StringNotEquals"]);
                statement["Condition"] =
                    json!({ operator: { "aws:username": self.one_of(&USERS) } });
            }
            1 => {
                let value = self.one_of(&["true", "false"]);
                statement["Condition"] = json!({ "Bool": { "aws:SecureTransport": value } });
            }
            2 => {
                let operator = self.one_of(&["StringLike", "StringNotLike", "StringLikeIfExists"]);
                statement["Condition"] = json!({ operator: { "s3:prefix": "dir/*" } });
            }
            _ => {}
        }
        statement
    }

    fn policy(&mut self, bucket: Option<&str>) -> Value {
        let number = 1 + self.below(3);
        let statements: Vec<_> = (0..number).map(|_| self.statement(bucket)).collect();
        json!({ "Version": "2012-10-17", "Statement": statements })
    }

    /// Returns random policies of sessions.
    fn sessions(&mut self) -> Vec<Session> {
        let session = |_| {
            let text = self.policy(None);
            let parsed = Arc::new(Policy::parse_for_users(&text.to_string()).unwrap());
            Session { text, parsed }
        };
        (0..SESSIONS).map(session).collect()
    }
}

/// The policy of a session.
struct Session {
    text: Value,
    parsed: Arc<Policy>,
}

fn bucket_name(number: usize) -> String {
    format!("bucket-{number}")
}

/// A request, as the plain evaluator sees it.
struct Asked<'a> {
    user: Option<&'a str>,
    operation: &'a str,
    action: &'a str,
    right: &'a str,
    bucket: &'a str,
    key: &'a str,
    prefix: Option<&'a str>,
    is_encrypted: bool,
}

/// Matches by trying every length for each star.
fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.first() {
        None => text.is_empty(),
        Some(b'*') => (0..=text.len()).any(|skipped| is_like(&pattern[1..], &text[skipped..])),
        Some(b'?') => !text.is_empty() && is_like(&pattern[1..], &text[1..]),
        Some(byte) => text.first() == Some(byte) && is_like(&pattern[1..], &text[1..]),
    }
}

fn any_is_like(patterns: &Value, text: &str, ignores_case: bool) -> bool {
    let one = std::slice::from_ref(patterns);
    patterns.as_array().map_or(one, Vec::as_slice).iter().any(|pattern| {
        let pattern = pattern.as_str().unwrap().trim_start_matches("arn:aws:s3:::");
        match ignores_case {
            true => is_like(pattern.to_lowercase().as_bytes(), text.to_lowercase().as_bytes()),
            false => is_like(pattern.as_bytes(), text.as_bytes()),
        }
    })
}

/// Returns the effects of all statements of a policy that apply.
fn effects<'a>(policy: &'a Value, asked: &Asked<'_>) -> Vec<&'a str> {
    let resource = match asked.key {
        "" => asked.bucket.to_owned(),
        key => format!("{}/{key}", asked.bucket),
    };
    let applies = |statement: &&Value| {
        let is_meant = match &statement["Principal"] {
            Value::Null => true,
            Value::String(_) => true,
            names => names["AWS"].as_str() == asked.user,
        };
        let is_action = match statement.get("Action") {
            Some(actions) => any_is_like(actions, asked.action, true),
            None => !any_is_like(&statement["NotAction"], asked.action, true),
        };
        let is_resource = match statement.get("Resource") {
            Some(resources) => any_is_like(resources, &resource, false),
            None => !any_is_like(&statement["NotResource"], &resource, false),
        };
        let holds = statement.get("Condition").is_none_or(|condition| {
            let (operator, values) = condition.as_object().unwrap().iter().next().unwrap();
            let (name, expected) = values.as_object().unwrap().iter().next().unwrap();
            let expected = expected.as_str().unwrap();
            let found = match name.as_str() {
                "aws:username" => asked.user.map(str::to_owned),
                "aws:SecureTransport" => Some(asked.is_encrypted.to_string()),
                _ => asked.prefix.map(str::to_owned),
            };
            match (operator.as_str(), found) {
                ("StringLikeIfExists" | "StringNotEquals" | "StringNotLike", None) => true,
                (_, None) => false,
                ("StringEquals" | "Bool", Some(found)) => found == expected,
                ("StringNotEquals", Some(found)) => found != expected,
                ("StringNotLike", Some(found)) => !is_like(expected.as_bytes(), found.as_bytes()),
                (_, Some(found)) => is_like(expected.as_bytes(), found.as_bytes()),
            }
        });
        is_meant && is_action && is_resource && holds
    };
    let statements = policy["Statement"].as_array().unwrap().iter();
    statements.filter(applies).map(|one| one["Effect"].as_str().unwrap()).collect()
}

/// Grants: rights, and a bucket or `*` with a prefix.
type Grants = Vec<(String, String, String)>;

fn has_grant(grants: &Grants, asked: &Asked<'_>) -> bool {
    let name = if asked.right == "list" { asked.prefix.unwrap_or_default() } else { asked.key };
    grants.iter().any(|(right, bucket, prefix)| {
        let is_bucket = bucket == "*" || bucket == asked.bucket;
        let is_admin = right == "admin";
        match asked.right {
            "any" => is_bucket,
            "administer" => is_admin && bucket == "*",
            "create" => is_admin && is_bucket,
            "key" => false,
            needed => (right == needed || is_admin) && is_bucket && name.starts_with(prefix),
        }
    })
}

/// The state that decides about a request.
struct World<'a> {
    grants: &'a Grants,
    user_policies: Vec<&'a Value>,
    session: Option<&'a Value>,
    bucket_policy: Option<&'a Value>,
    owner: Option<&'a str>,
}

/// Decides plainly, in the order that `docs/access.md` describes.
fn is_allowed(world: &World<'_>, asked: &Asked<'_>) -> bool {
    let is_root = asked.user.is_none();
    let is_for_bucket = !matches!(asked.right, "create" | "key" | "administer");
    // An owner may create its bucket again, which changes nothing.
    let can_own = is_for_bucket || asked.right == "create";
    let is_owner = can_own && !is_root && world.owner == asked.user;
    let user: Vec<_> = world.user_policies.iter().flat_map(|one| effects(one, asked)).collect();
    let session = world.session.map(|one| effects(one, asked));
    let bucket = match world.bucket_policy {
        Some(policy) if is_for_bucket && !is_root => effects(policy, asked),
        _ => Vec::new(),
    };
    if !is_root && user.contains(&"Deny") {
        return false;
    }
    if session.as_ref().is_some_and(|found| found.contains(&"Deny") || !found.contains(&"Allow")) {
        return false;
    }
    let keeps_policy = is_owner && asked.operation == "PutBucketPolicy";
    if bucket.contains(&"Deny") && !keeps_policy {
        return false;
    }
    if is_root || is_owner || asked.right == "key" || has_grant(world.grants, asked) {
        return true;
    }
    asked.right != "administer" && (user.contains(&"Allow") || bucket.contains(&"Allow"))
}

/// A user's key, with all that the plain evaluator needs.
struct Subject {
    principal: Arc<ActiveKey>,
    user: Option<&'static str>,
    grants: Grants,
    policies: Vec<Value>,
}

/// Returns the administrator and a key of each user, with random grants and policies.
fn subjects(random: &mut Generator) -> Vec<Subject> {
    let mut list = KeyList::default();
    let mut named: BTreeMap<String, Value> = BTreeMap::new();
    for number in 0..4 {
        let (name, policy) = (format!("policy-{number}"), random.policy(None));
        list.policies_mut().put(&name, &policy.to_string()).unwrap();
        named.insert(name, policy);
    }
    for group in GROUPS {
        list.policies_mut().add_to_group(group, &["another".to_owned()]).unwrap();
    }
    let mut holders: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for holder in USERS.iter().chain(&GROUPS).copied() {
        for name in named.keys().filter(|_| random.chance(30)) {
            let is_user = USERS.contains(&holder);
            let attached =
                if is_user { PolicyHolder::User(holder) } else { PolicyHolder::Group(holder) };
            list.policies_mut().attach(name, attached).unwrap();
            holders.entry(holder).or_default().push(name.clone());
        }
    }
    for group in GROUPS {
        for user in USERS.into_iter().filter(|_| random.chance(40)) {
            list.policies_mut().add_to_group(group, &[user.to_owned()]).unwrap();
            let more = holders.get(group).cloned().unwrap_or_default();
            holders.entry(user).or_default().extend(more);
        }
    }
    let mut found = Vec::new();
    for user in USERS {
        let key = list.create(user, SystemTime::UNIX_EPOCH).unwrap();
        let mut grants = Grants::new();
        for _ in 0..random.below(3) {
            let right = random.one_of(&["read", "write", "list", "delete", "admin"]);
            let number = random.below(BUCKETS);
            let bucket = if random.chance(20) { "*".to_owned() } else { bucket_name(number) };
            let prefix = if right == "admin" { "" } else { random.one_of(&["", "dir/"]) };
            key.allow(format!("{bucket}/{prefix}").parse().unwrap(), right.parse().unwrap())
                .unwrap();
            grants.push((right.to_owned(), bucket, prefix.to_owned()));
        }
        found.push((key.access_key.clone(), user, grants));
    }
    let all = AllKeys { administrator: None, ring: Some(Arc::new(KeyRing::new(list))) };
    let credentials = Credentials { access_key: "root".into(), secret_key: "secret".into() };
    let root = Arc::new(ActiveKey::administrator(credentials));
    let root = Subject { principal: root, user: None, grants: Vec::new(), policies: Vec::new() };
    let users = found.into_iter().map(|(access_key, user, grants)| {
        let names = holders.get(user).cloned().unwrap_or_default();
        let policies = names.iter().map(|name| named[name].clone()).collect();
        Subject { principal: all.find(&access_key).unwrap(), user: Some(user), grants, policies }
    });
    std::iter::once(root).chain(users).collect()
}

/// A bucket in the store.
struct Bucket {
    owner: Option<&'static str>,
    policy: Option<Value>,
}

/// Returns a store with buckets of several owners, of which most have a policy.
fn store(random: &mut Generator) -> (Pool, tempfile::TempDir, Vec<Bucket>) {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = Pool::open(&[dir.path().into()], &Options::default()).unwrap();
    let buckets = (0..BUCKETS).map(|number| {
        let name = bucket_name(number);
        store.create_bucket(&name).unwrap();
        let owner = random.chance(50).then(|| random.one_of(&USERS));
        store.set_bucket_setting(&name, OWNER, owner).unwrap();
        let policy = random.chance(60).then(|| random.policy(Some(&name)));
        let text = policy.as_ref().map(Value::to_string);
        store.set_bucket_setting(&name, POLICY, text.as_deref()).unwrap();
        Bucket { owner, policy }
    });
    let buckets = buckets.collect();
    (store, dir, buckets)
}

/// Returns the request's client; a session has a policy.
fn caller(subject: &Subject, session: Option<&Session>, asked: &Asked<'_>) -> Caller {
    let mut principal = Arc::clone(&subject.principal);
    if let Some(Session { parsed, .. }) = session {
        let policy = Some(Arc::clone(parsed));
        let pair = Credentials { access_key: "a".into(), secret_key: "b".into() };
        principal =
            Arc::new(principal.limited(pair, SessionLimits { policy, token: "".into() }, i64::MAX));
    }
    let query = asked.prefix.map(|prefix| format!("?prefix={prefix}")).unwrap_or_default();
    let line = format!("GET /{}{query}", asked.bucket);
    Caller::new(Principal::Key(principal)).with_facts(RequestFacts {
        connection: Some(Connection { peer: None, is_encrypted: asked.is_encrypted }),
        head: Arc::new(head(&line, &[])),
        prefix: None,
        user: None,
        version: None,
        request_tags: Vec::new(),
        lock: RequestedLock::default(),
        existing_tags: BTreeMap::new(),
    })
}

#[test]
fn decisions_are_those_of_a_plain_evaluator() {
    let mut random = Generator(Random::from_environment());
    let (store, _dir, buckets) = store(&mut random);
    let (mut allowed, mut denied) = (0, 0);
    let (mut all, mut sessions) = (Vec::new(), Vec::new());
    for case in 0..CASES {
        if case % CASES_FOR_LIST == 0 {
            (all, sessions) = (subjects(&mut random), random.sessions());
        }
        let subject = &all[random.below(all.len())];
        let (operation, name, right) = OPERATIONS[random.below(OPERATIONS.len())];
        let number = random.below(BUCKETS);
        let bucket = if right == "key" { String::new() } else { bucket_name(number) };
        let is_object = matches!(right, "read" | "write" | "delete");
        let asked = Asked {
            user: subject.user,
            operation,
            action: name,
            right,
            bucket: &bucket,
            key: if is_object { random.one_of(&KEYS) } else { "" },
            prefix: (right == "list").then(|| random.one_of(&["", "dir/", "dir/sub/", "other/"])),
            is_encrypted: random.chance(50),
        };
        let session = random.chance(40).then(|| &sessions[random.below(SESSIONS)]);
        let (owner, policy) = match right {
            "key" => (None, None),
            _ => (buckets[number].owner, buckets[number].policy.as_ref()),
        };
        let world = World {
            grants: &subject.grants,
            user_policies: subject.policies.iter().collect(),
            session: session.map(|session| &session.text),
            bucket_policy: policy,
            owner,
        };
        let expected = is_allowed(&world, &asked);
        let caller = caller(subject, session, &asked);
        let used = if right == "list" { asked.prefix.unwrap_or_default() } else { asked.key };
        let action = action(operation).unwrap();
        let decision = caller.decide(&store, operation, action, (&bucket, used)).unwrap();
        assert_eq!(
            matches!(decision, Decision::Allowed(_)),
            expected,
            "{operation} on {bucket}/{used} by {:?}: {decision:?}\n{:?}\n{:?}\n{:?}\n{policy:?}",
            subject.user,
            subject.grants,
            subject.policies,
            world.session
        );
        *(if expected { &mut allowed } else { &mut denied }) += 1;
    }
    assert!(allowed > CASES / 10 && denied > CASES / 10, "{allowed} allowed, {denied} denied");
}
