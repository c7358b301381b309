//! Parses a policy's text. Rejects parts that this server would not enforce as AWS does.

use serde_json::{Map, Value};

use crate::pattern;
use crate::policy::action_names::names_an_action;
use crate::policy::condition::{self, Condition, Key};
use crate::policy::members::repeated_member;
use crate::policy::operand::{Comparison, Operand};
use crate::policy::statement::{Effect, Names, Patterns, Policy, Principals, Statement};

/// The maximum length of a policy, in bytes, as in S3.
pub(crate) const POLICY_BYTES_MAX: usize = 20 * 1024;

/// The maximum total length of the pattern pieces that are compared at each position in a text, in
/// bytes. A request may name a thousand keys, and a header may have many KiB.
const SLOW_PATTERN_BYTES_MAX: usize = 512;

/// The principal that stands for every client.
const EVERYONE: &str = "*";

/// The prefix of bucket and object names in policies.
const ARN: &str = "arn:aws:s3:::";

/// The resource that stands for all buckets and objects in a policy of users.
const ALL_RESOURCES: &str = "*";

/// The part of a server to which a policy is attached.
#[derive(Debug, Clone, Copy)]
enum Attached<'a> {
    /// A bucket: statements name principals, and resources in this bucket.
    ToBucket(&'a str),
    /// Users: statements name no principals, and resources in any bucket.
    ToUsers,
}

type Object = Map<String, Value>;
type Parsed<T> = Result<T, String>;

impl Policy {
    /// Parses a bucket policy for the bucket `bucket`.
    ///
    /// # Errors
    /// The reason why the text is malformed or not supported.
    pub(crate) fn parse(text: &str, bucket: &str) -> Parsed<Self> {
        Self::parse_attached(text, Attached::ToBucket(bucket))
    }

    /// Parses a policy of users, which has no principals: it applies to all requests of the users,
    /// groups or sessions that have it.
    ///
    /// # Errors
    /// The reason why the text is malformed or not supported, or why a statement has no effect.
    pub(crate) fn parse_for_users(text: &str) -> Parsed<Self> {
        let policy = Self::parse_attached(text, Attached::ToUsers)?;
        policy.check_actions()?;
        Ok(policy)
    }

    fn parse_attached(text: &str, attached: Attached<'_>) -> Parsed<Self> {
        if text.len() > POLICY_BYTES_MAX {
            return Err(format!("a policy has at most {POLICY_BYTES_MAX} bytes"));
        }
        let document: Value =
            serde_json::from_str(text).map_err(|error| format!("the text is not JSON: {error}"))?;
        if let Some(name) = repeated_member(text) {
            return Err(format!("the member {name} is given twice"));
        }
        let fields = object(&document, "the policy", &["Version", "Id", "Statement"])?;
        match fields.get("Version").map(Value::as_str) {
            None | Some(Some("2012-10-17" | "2008-10-17")) => {}
            Some(_) => return Err("Version must be \"2012-10-17\" or \"2008-10-17\"".to_owned()),
        }
        let statements = match fields.get("Statement") {
            Some(Value::Array(many)) if !many.is_empty() => many.as_slice(),
            Some(one @ Value::Object(_)) => std::slice::from_ref(one),
            _ => return Err("Statement must have at least one statement".to_owned()),
        };
        let parsed = (1..).zip(statements).map(|(number, value)| {
            statement(value, attached).map_err(|reason| format!("statement {number}: {reason}"))
        });
        let policy = Self { statements: parsed.collect::<Parsed<_>>()? };
        if policy.slow_pattern_bytes() > SLOW_PATTERN_BYTES_MAX {
            return Err(format!(
                "the parts of patterns between two \"*\" that have a \"?\" have more than \
                 {SLOW_PATTERN_BYTES_MAX} bytes"
            ));
        }
        Ok(policy)
    }

    fn slow_pattern_bytes(&self) -> usize {
        let statement_bytes = |statement: &Statement| {
            let conditions = statement.conditions.iter().flat_map(|condition| &condition.operands);
            let condition_bytes: usize = conditions.map(Operand::slow_pattern_bytes).sum();
            let (Patterns::OneOf(resources) | Patterns::NoneOf(resources)) = &statement.resources;
            let resource_bytes = resources.iter().map(|resource| pattern::slow_bytes(resource));
            condition_bytes + resource_bytes.sum::<usize>()
        };
        self.statements.iter().map(statement_bytes).sum()
    }
}

fn statement(value: &Value, attached: Attached<'_>) -> Parsed<Statement> {
    let known = [
        "Sid",
        "Effect",
        "Principal",
        "NotPrincipal",
        "Action",
        "NotAction",
        "Resource",
        "NotResource",
        "Condition",
    ];
    let fields = object(value, "a statement", &known)?;
    let effect = match fields.get("Effect").and_then(Value::as_str) {
        Some("Allow") => Effect::Allow,
        Some("Deny") => Effect::Deny,
        _ => return Err("Effect must be \"Allow\" or \"Deny\"".to_owned()),
    };
    if fields.get("Sid").is_some_and(|id| !id.is_string()) {
        return Err("Sid must be a string".to_owned());
    }
    Ok(Statement {
        effect,
        principals: match attached {
            Attached::ToBucket(_) => principals(fields, effect)?,
            Attached::ToUsers => no_principals(fields)?,
        },
        actions: patterns(fields, "Action", "NotAction", action)?,
        resources: patterns(fields, "Resource", "NotResource", |text| resource(text, attached))?,
        conditions: conditions(fields.get("Condition"))?,
    })
}

/// Returns the principals of a policy of users: everyone who has the policy.
fn no_principals(fields: &Object) -> Parsed<Principals> {
    match fields.get("Principal").or_else(|| fields.get("NotPrincipal")) {
        Some(_) => Err("a policy of users has neither Principal nor NotPrincipal".to_owned()),
        None => Ok(Principals::Everyone { users: Vec::new(), services: Vec::new() }),
    }
}

fn principals(fields: &Object, effect: Effect) -> Parsed<Principals> {
    match (fields.get("Principal"), fields.get("NotPrincipal")) {
        (Some(value), None) => {
            let Names { mut users, services } = names(value)?;
            let is_everyone = users.iter().any(|user| user == EVERYONE);
            users.retain(|user| user != EVERYONE);
            Ok(match is_everyone {
                true => Principals::Everyone { users, services },
                false => Principals::Listed(Names { users, services }),
            })
        }
        (None, Some(_)) if effect == Effect::Allow => {
            Err("NotPrincipal is allowed with the effect Deny only".to_owned())
        }
        (None, Some(value)) => Ok(Principals::EveryoneBut(names(value)?)),
        _ => Err("exactly one of Principal and NotPrincipal is needed".to_owned()),
    }
}

/// Returns the users that a principal names, or `*` for everyone, and the services.
fn names(value: &Value) -> Parsed<Names> {
    let Value::Object(kinds) = value else {
        let users = named(value)?.into_iter().map(user).collect::<Parsed<_>>()?;
        return Ok(Names { users, services: Vec::new() });
    };
    if kinds.is_empty() {
        return Err("the principal is empty".to_owned());
    }
    let (mut users, mut services) = (Vec::new(), Vec::new());
    for (kind, names) in kinds {
        let names = named(names)?.into_iter();
        match kind.as_str() {
            "AWS" => users.extend(names.map(user).collect::<Parsed<Vec<_>>>()?),
            "CanonicalUser" => {
                users.extend(names.map(canonical_user).collect::<Parsed<Vec<_>>>()?);
            }
            "Service" => services.extend(names.map(service).collect::<Parsed<Vec<_>>>()?),
            _ => return Err(format!("principals of the kind {kind} are not supported")),
        }
    }
    Ok(Names { users, services })
}

/// Returns the names in a principal. Fails if there are none.
fn named(value: &Value) -> Parsed<Vec<&str>> {
    let names = strings(value, "Principal")?;
    if names.is_empty() { Err("the principal is empty".to_owned()) } else { Ok(names) }
}

/// Checks a user's ID, which is the user name.
fn canonical_user(name: &str) -> Parsed<String> {
    if name.is_empty() || name.contains('*') {
        return Err(format!("the canonical user \"{name}\" is not supported"));
    }
    Ok(name.to_owned())
}

/// Parses a service principal without wildcards. Unknown services are accepted: they never send
/// requests, so the statement has no effect for them.
fn service(name: &str) -> Parsed<String> {
    if name.is_empty() || name.contains(['*', '?']) {
        return Err(format!("the service \"{name}\" is not supported"));
    }
    Ok(name.to_owned())
}

/// Returns a principal's user: `*`, a user name, `arn:aws:iam::ACCOUNT:user/NAME`, or
/// `arn:aws:iam::NAME:root`.
fn user(name: &str) -> Parsed<String> {
    let Some(arn) = name.strip_prefix("arn:aws:iam::") else {
        if name.is_empty() || name.starts_with("arn:") || name != EVERYONE && name.contains('*') {
            return Err(format!("the principal \"{name}\" is not supported"));
        }
        return Ok(name.to_owned());
    };
    let (account, user) = arn.split_once(':').unwrap_or((arn, ""));
    let name = match user {
        "root" => Some(account),
        _ => user.strip_prefix("user/").and_then(|path| path.rsplit('/').next()),
    };
    let is_name = |name: &&str| !name.is_empty() && !name.contains(['*', '?']);
    name.filter(is_name).map(str::to_owned).ok_or(format!("the principal \"{arn}\" is malformed"))
}

/// Parses a pattern for action names.
fn action(text: &str) -> Parsed<String> {
    if text != "*" && !text.to_ascii_lowercase().starts_with("s3:") {
        return Err("an action begins with \"s3:\"".to_owned());
    }
    if !names_an_action(text) {
        return Err(format!("there is no action \"{text}\""));
    }
    Ok(text.to_owned())
}

/// Parses the name of a bucket or of objects in it.
fn resource(text: &str, attached: Attached<'_>) -> Parsed<String> {
    if text == ALL_RESOURCES && matches!(attached, Attached::ToUsers) {
        return Ok(text.to_owned());
    }
    let path = text.strip_prefix(ARN).ok_or(format!("a resource begins with \"{ARN}\""))?;
    if path.contains("${") {
        return Err(format!("variables such as those in \"{text}\" are not supported"));
    }
    let own = path.split('/').next().unwrap_or_default();
    match attached {
        Attached::ToBucket(bucket) if !pattern::matches(own, bucket) => {
            Err(format!("the resource \"{text}\" is not in the bucket {bucket}"))
        }
        Attached::ToUsers if own.is_empty() => Err(format!("\"{text}\" names no bucket")),
        Attached::ToBucket(_) | Attached::ToUsers => Ok(path.to_owned()),
    }
}

fn patterns(
    fields: &Object,
    name: &str,
    negated: &str,
    parse: impl Fn(&str) -> Parsed<String>,
) -> Parsed<Patterns> {
    let parsed = |value: &Value, name: &str| -> Parsed<Vec<String>> {
        let found = strings(value, name)?;
        if found.is_empty() {
            return Err(format!("{name} is empty"));
        }
        found.into_iter().map(&parse).collect()
    };
    match (fields.get(name), fields.get(negated)) {
        (Some(value), None) => Ok(Patterns::OneOf(parsed(value, name)?)),
        (None, Some(value)) => Ok(Patterns::NoneOf(parsed(value, negated)?)),
        _ => Err(format!("exactly one of {name} and {negated} is needed")),
    }
}

fn conditions(value: Option<&Value>) -> Parsed<Vec<Condition>> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let operators = value.as_object().ok_or("Condition must be an object")?;
    let mut conditions = Vec::new();
    for (name, keys) in operators {
        let (comparison, is_negated, holds_without_value) = condition::operator(name)
            .ok_or(format!("the condition operator {name} is not supported"))?;
        let keys = keys.as_object().ok_or(format!("{name} must be an object"))?;
        for (key, values) in keys {
            let key = Key::parse(key).ok_or(format!("the condition key {key} is not supported"))?;
            let operands = operands(name, (&key, comparison), values)?;
            conditions.push(Condition { key, operands, is_negated, holds_without_value });
        }
    }
    Ok(conditions)
}

fn operands(
    name: &str,
    (key, comparison): (&Key, Comparison),
    values: &Value,
) -> Parsed<Vec<Operand>> {
    let values = match values {
        Value::Array(many) => many.as_slice(),
        one => std::slice::from_ref(one),
    };
    let operands = values.iter().map(|value| {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            _ => return Err(format!("the values of {name} must be strings")),
        };
        if text.contains("${") {
            return Err(format!("variables such as those in \"{text}\" are not supported"));
        }
        let text = key.comparable(comparison, text);
        Operand::parse(comparison, &text).ok_or(format!("\"{text}\" is no value for {name}"))
    });
    let operands = operands.collect::<Parsed<Vec<_>>>()?;
    if operands.is_empty() { Err(format!("{name} has no values")) } else { Ok(operands) }
}

/// Returns an object's fields. Fails if one of them is unknown.
fn object<'a>(value: &'a Value, what: &str, known: &[&str]) -> Parsed<&'a Object> {
    let fields = value.as_object().ok_or(format!("{what} must be an object"))?;
    match fields.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("{what} has the unknown field {name}")),
        None => Ok(fields),
    }
}

/// Returns a string, or the strings in an array.
fn strings<'a>(value: &'a Value, name: &str) -> Parsed<Vec<&'a str>> {
    let wrong = || format!("{name} must be a string or an array of strings");
    match value {
        Value::String(text) => Ok(vec![text]),
        Value::Array(many) => many.iter().map(|one| one.as_str().ok_or_else(wrong)).collect(),
        _ => Err(wrong()),
    }
}
