//! The policy of a form: until when the form may be used, and the values that its fields may have.
//! Pure.

use std::ops::RangeInclusive;

use base64_simd::STANDARD as BASE64;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::front::forms::fields::Fields;

/// A policy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FormPolicy {
    expiration: OffsetDateTime,
    conditions: Vec<Condition>,
}

/// A condition. The names of fields are in lower case.
#[derive(Debug, PartialEq, Eq)]
enum Condition {
    Equals { field: String, value: String },
    StartsWith { field: String, prefix: String },
    Length(RangeInclusive<u64>),
}

impl FormPolicy {
    /// Parses a policy.
    ///
    /// # Errors
    /// The reason why it is malformed.
    pub(super) fn parse(encoded: &str) -> Result<Self, String> {
        let text = BASE64.decode_to_vec(encoded).map_err(|error| error.to_string())?;
        let document: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        let expiration = document["expiration"].as_str().ok_or("expiration is missing")?;
        let expiration = OffsetDateTime::parse(expiration, &Rfc3339)
            .ok()
            .filter(|_| expiration.ends_with('Z'))
            .ok_or("expiration must be a time such as 2026-11-27T12:00:00Z")?;
        let conditions = document["conditions"].as_array().ok_or("conditions are missing")?;
        let conditions = conditions.iter().map(Condition::parse).collect::<Option<Vec<_>>>();
        let conditions = conditions.ok_or("a condition is malformed")?;
        Ok(Self { expiration, conditions })
    }

    /// Checks that the policy is valid at this time, that the fields meet all conditions, and that
    /// there is a condition for each field. `bucket` is the bucket of the request.
    ///
    /// # Errors
    /// The first reason why the form is refused.
    pub(super) fn check(
        &self,
        fields: &Fields,
        bucket: &str,
        now: OffsetDateTime,
    ) -> Result<(), String> {
        if now > self.expiration {
            return Err("the policy has expired".to_owned());
        }
        let value = |field: &str| match field {
            "bucket" => bucket,
            _ => fields.get(field).unwrap_or_default(),
        };
        for condition in &self.conditions {
            match condition {
                Condition::Equals { field, value: expected } if value(field) != expected => {
                    return Err(format!("the field {field} must be \"{expected}\""));
                }
                Condition::StartsWith { field, prefix } if !value(field).starts_with(prefix) => {
                    return Err(format!("the field {field} must begin with \"{prefix}\""));
                }
                _ => {}
            }
        }
        if fields.get("bucket").is_some_and(|named| named != bucket) {
            return Err("the field bucket names another bucket than the URL".to_owned());
        }
        let has_condition = |name: &str| {
            self.conditions.iter().any(|condition| match condition {
                Condition::Equals { field, .. } | Condition::StartsWith { field, .. } => {
                    field == name
                }
                Condition::Length(_) => false,
            })
        };
        let missing = fields.iter().find(|(name, _)| !is_exempt(name) && !has_condition(name));
        missing.map_or(Ok(()), |(name, _)| Err(format!("no condition permits the field {name}")))
    }

    /// Returns the lengths that the file may have.
    pub(super) fn lengths(&self) -> RangeInclusive<u64> {
        let all = 0..=u64::MAX;
        self.conditions.iter().fold(all, |lengths, condition| match condition {
            Condition::Length(range) => {
                *lengths.start().max(range.start())..=*lengths.end().min(range.end())
            }
            _ => lengths,
        })
    }
}

impl Condition {
    fn parse(condition: &Value) -> Option<Self> {
        match condition {
            Value::Object(members) => Self::of_member(members),
            Value::Array(items) => Self::of_array(items),
            _ => None,
        }
    }

    /// Parses `{"field": "value"}`.
    fn of_member(members: &Map<String, Value>) -> Option<Self> {
        let (field, value) = members.iter().next().filter(|_| members.len() == 1)?;
        let value = value.as_str()?.to_owned();
        Some(Self::Equals { field: field.to_ascii_lowercase(), value })
    }

    /// Parses `["eq", "$field", "value"]` and the like.
    fn of_array(items: &[Value]) -> Option<Self> {
        let [kind, first, second] = items else { return None };
        let field = || Some(first.as_str()?.strip_prefix('$')?.to_ascii_lowercase());
        Some(match kind.as_str()?.to_ascii_lowercase().as_str() {
            "eq" => Self::Equals { field: field()?, value: second.as_str()?.to_owned() },
            "starts-with" => {
                Self::StartsWith { field: field()?, prefix: second.as_str()?.to_owned() }
            }
            "content-length-range" => Self::Length(number(first)?..=number(second)?),
            _ => return None,
        })
    }
}

/// Returns a number, which some clients write as text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Returns `true` for the fields that need no condition: those of the signature, and those that S3
/// ignores or only compares with the content.
fn is_exempt(name: &str) -> bool {
    const NAMES: [&str; 6] =
        ["awsaccesskeyid", "bucket", "policy", "signature", "submit", "x-amz-signature"];
    NAMES.contains(&name) || name.starts_with("x-ignore-") || name.starts_with("x-amz-checksum-")
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-11-27 12:00:00 UTC);

    fn parse(text: &str) -> Result<FormPolicy, String> {
        FormPolicy::parse(&BASE64.encode_to_string(text))
    }

    /// Returns a policy with these conditions.
    fn policy(conditions: &str) -> Result<FormPolicy, String> {
        let expiration = "2026-11-27T12:00:00Z";
        parse(&format!("{{\"expiration\": \"{expiration}\", \"conditions\": [{conditions}]}}"))
    }

    #[test]
    fn fields_must_meet_all_conditions() {
        let conditions = r#"{"bUcKeT": "b"}, ["Starts-With", "$Key", "a/"], ["eq", "$acl", "x"],
            ["content-length-range", 1, "20"], ["content-length-range", 0, 10]"#;
        let policy = policy(conditions).unwrap();
        assert_eq!(policy.lengths(), 1..=10);
        let check = |fields: Fields, bucket| policy.check(&fields, bucket, NOW);
        let with = |name: &str, value: &str| {
            Fields::from([("key", "a/1"), ("acl", "x"), ("signature", "s"), (name, value)])
        };
        assert_eq!(check(with("x-ignore-a", "b"), "b"), Ok(()));
        assert_eq!(check(with("x-amz-checksum-crc32", "b"), "b"), Ok(()));
        assert_eq!(check(with("bucket", "b"), "b"), Ok(()));
        for (fields, bucket, reason) in [
            (with("policy", ""), "c", "bucket must be \"b\""),
            (with("bucket", "c"), "b", "names another bucket"),
            (with("x-amz-meta-a", ""), "b", "permits the field x-amz-meta-a"),
            (Fields::from([("key", "a"), ("acl", "x")]), "b", "key must begin with \"a/\""),
            (Fields::from([("key", "a/")]), "b", "acl must be \"x\""),
        ] {
            let refused = check(fields, bucket).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
        let late = policy.check(&with("policy", ""), "b", NOW + time::Duration::SECOND);
        assert_eq!(late, Err("the policy has expired".to_owned()));
    }

    #[test]
    fn malformed_policies_are_refused() {
        for conditions in [
            "{}",
            r#"{"a": "b", "c": "d"}"#,
            r#"{"a": 1}"#,
            r#"["eq", "$a"]"#,
            r#"["eq", "a", "b"]"#,
            r#"["like", "$a", "b"]"#,
            r#"["content-length-range", 0]"#,
            r#"["content-length-range", -1, 0]"#,
        ] {
            assert!(policy(conditions).is_err(), "{conditions}");
        }
        for text in [
            "",
            "[]",
            r#"{"expiration": "2026-11-27T12:00:00Z"}"#,
            r#"{"expiration": "2026-11-27T12:00:00Z", "CONDITIONS": []}"#,
            r#"{"EXPIRATION": "2026-11-27T12:00:00Z", "conditions": []}"#,
            r#"{"expiration": "2026-11-27 12:00:00", "conditions": []}"#,
            r#"{"expiration": "2026-11-27T12:00:00+01:00", "conditions": []}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(FormPolicy::parse("!").is_err());
    }
}
