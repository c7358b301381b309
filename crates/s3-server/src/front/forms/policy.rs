//! A form's policy: its expiration, and the permitted values of its fields. Pure.
//!
//! Source: AWS, "POST Policy" in the S3 developer guide.

use std::ops::RangeInclusive;

use base64_simd::forgiving_decode_to_vec;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::errors::{S3Error, S3ErrorCode, S3Result, refuse};
use crate::front::forms::fields::FormFields;

const EXPIRATION: &str = "expiration";
const CONDITIONS: &str = "conditions";

const MEMBERS: [&str; 2] = [EXPIRATION, CONDITIONS];

/// The field for which every policy has a condition. Its value is the request's bucket.
const BUCKET: &str = "bucket";

/// The fields that need no condition, in addition to the file, and the prefixes of such fields:
/// ignored fields, and checksums, which permit nothing.
const EXEMPT: [&str; 4] = ["awsaccesskeyid", "policy", "signature", "x-amz-signature"];
const EXEMPT_PREFIXES: [&str; 2] = ["x-ignore-", "x-amz-checksum-"];

/// The only field that S3 treats as a list of values.
const LIST: &str = "content-type";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct FormPolicy {
    expiration: OffsetDateTime,
    conditions: Vec<Condition>,
}

/// A condition in a policy. Field names are in lower case.
#[derive(Debug, PartialEq, Eq)]
enum Condition {
    /// A condition on a field.
    Field {
        name: String,
        matching: Matching,
        /// The condition's text in the policy, for the error message.
        text: String,
    },
    /// A condition on the file's length, in bytes.
    Length(RangeInclusive<u64>),
}

/// The values that a field may have.
#[derive(Debug, PartialEq, Eq)]
enum Matching {
    Exact(String),
    Prefix(String),
}

impl FormPolicy {
    /// Parses a policy in Base64.
    ///
    /// # Errors
    /// `InvalidPolicyDocument`, and, as in S3, `AccessDenied` for a condition on a name without
    /// `$`, which no form can meet.
    pub(super) fn parse(encoded: &str) -> S3Result<Self> {
        let text = forgiving_decode_to_vec(encoded.as_bytes())
            .map_err(|_malformed| invalid("invalid Base64 encoding."))?;
        if text.is_empty() {
            return Err(invalid("Expecting '{' but found End-of-Input"));
        }
        let text = String::from_utf8(text).map_err(|_malformed| invalid_json())?;
        let document = serde_json::from_str(&to_json(&text));
        let Ok(Value::Object(members)) = document else { return Err(invalid_json()) };
        if let Some(unknown) = members.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
            return Err(invalid(&format!("Unexpected: \"{unknown}\"")));
        }
        let missing = |name: &str| invalid(&format!("Policy missing {name}."));
        let expiration = members.get(EXPIRATION).ok_or_else(|| missing(EXPIRATION))?;
        let conditions = members.get(CONDITIONS).ok_or_else(|| missing(CONDITIONS))?;
        let Value::Array(conditions) = conditions else {
            return Err(invalid("Invalid 'conditions' value: must be a List."));
        };
        let expiration = expiration_time(expiration.as_str().ok_or_else(invalid_json)?)?;
        let conditions = conditions.iter().map(Condition::parse).collect::<S3Result<_>>()?;
        Ok(Self { expiration, conditions })
    }

    /// Checks that the policy is valid at the time `now`, that each field has a condition, and that
    /// the fields meet all conditions. `bucket` is the request's bucket.
    ///
    /// # Errors
    /// `AccessDenied` with the first reason to reject the form.
    pub(super) fn check(
        &self,
        fields: &FormFields,
        bucket: &str,
        now: OffsetDateTime,
    ) -> S3Result<()> {
        if now > self.expiration {
            return Err(denied("Policy expired."));
        }
        let extra = |name: &str| denied(&format!("Extra input fields: {name}"));
        let is_exempt = |name: &str| {
            EXEMPT.contains(&name) || EXEMPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        };
        let mut names = fields.iter().map(|(name, _)| name);
        if let Some(name) = names.find(|name| !is_exempt(name) && !self.names(name)) {
            return Err(extra(name));
        }
        for condition in &self.conditions {
            let Condition::Field { name, matching, text } = condition else { continue };
            let value = if name == BUCKET { Some(bucket) } else { fields.get(name) };
            if !matching.permits(name, value) {
                return Err(failed(text));
            }
        }
        if !self.names(BUCKET) {
            return Err(extra(BUCKET));
        }
        if fields.get(BUCKET).is_some_and(|named| named != bucket) {
            return Err(denied("The field bucket names another bucket than the URL"));
        }
        Ok(())
    }

    /// Returns `true` if a field has a condition.
    fn names(&self, field: &str) -> bool {
        self.conditions.iter().any(|condition| match condition {
            Condition::Field { name, .. } => name == field,
            Condition::Length(_) => false,
        })
    }

    /// Returns the lengths that the file may have, in bytes.
    pub(super) fn lengths(&self) -> RangeInclusive<u64> {
        let all = 0..=u64::MAX;
        self.conditions.iter().fold(all, |lengths, condition| match condition {
            Condition::Length(range) => {
                *lengths.start().max(range.start())..=*lengths.end().min(range.end())
            }
            Condition::Field { .. } => lengths,
        })
    }
}

impl Condition {
    fn parse(condition: &Value) -> S3Result<Self> {
        match condition {
            Value::Object(members) => Self::from_object(members),
            Value::Array(items) => Self::from_array(items),
            _ => Err(invalid("Invalid condition test: must be a List or Object.")),
        }
    }

    /// Parses `{"field": "value"}`.
    fn from_object(members: &Map<String, Value>) -> S3Result<Self> {
        let simple = |why: &str| invalid(&format!("Invalid Simple-Condition: {why}"));
        let (Some((name, value)), 1) = (members.iter().next(), members.len()) else {
            return Err(simple("Simple-Conditions must have exactly one property specified."));
        };
        let value = value.as_str().ok_or_else(|| simple("value must be a string."))?;
        let text = format!("[\"eq\", \"${name}\", {}]", Value::from(value));
        let (name, matching) = (name.to_ascii_lowercase(), Matching::Exact(value.to_owned()));
        Ok(Self::Field { name, matching, text })
    }

    /// Parses `["eq", "$field", "value"]` and the like.
    fn from_array(items: &[Value]) -> S3Result<Self> {
        let Some(operation) = items.first() else {
            return Err(invalid("Invalid Condition: missing operation identifier."));
        };
        let operation = operation.as_str().ok_or_else(invalid_json)?;
        let lower = operation.to_ascii_lowercase();
        if !["eq", "starts-with", "content-length-range"].contains(&&*lower) {
            let why = format!("Invalid Condition: unknown operation '{operation}'.");
            return Err(invalid(&why));
        }
        let [_, first, second] = items else {
            return Err(invalid(&format!("Invalid {operation}: wrong number of arguments.")));
        };
        if lower == "content-length-range" {
            let limit = |value| number(value).ok_or_else(invalid_json);
            return Ok(Self::Length(limit(first)?..=limit(second)?));
        }
        let (Some(name), Some(value)) = (first.as_str(), second.as_str()) else {
            return Err(invalid_json());
        };
        // S3 puts blanks between the items, whatever the policy has.
        let text = format!("[{}, {first}, {second}]", items[0]);
        let Some(name) = name.strip_prefix('$').filter(|name| !name.is_empty()) else {
            return Err(failed(&text));
        };
        let value = value.to_owned();
        let matching = if lower == "eq" { Matching::Exact(value) } else { Matching::Prefix(value) };
        Ok(Self::Field { name: name.to_ascii_lowercase(), matching, text })
    }
}

impl Matching {
    /// Returns `true` if a field may have this value, or may be missing.
    fn permits(&self, field: &str, value: Option<&str>) -> bool {
        match (self, value) {
            (Self::Exact(expected), value) => value == Some(expected),
            // An empty prefix permits any content, and a missing field.
            (Self::Prefix(prefix), None) => prefix.is_empty(),
            (Self::Prefix(prefix), Some(value)) if field == LIST && value.contains(',') => {
                value.split(',').all(|one| one.trim_start().starts_with(prefix))
            }
            (Self::Prefix(prefix), Some(value)) => value.starts_with(prefix),
        }
    }
}

/// Returns a policy as JSON: without a comma after the last item, and without the escapes `\$` and
/// `\v`, which S3's documentation allows, but JSON does not.
fn to_json(policy: &str) -> String {
    let mut json = String::with_capacity(policy.len());
    let mut chars = policy.chars();
    let mut is_text = false;
    while let Some(char) = chars.next() {
        match char {
            '\\' if is_text => match chars.next() {
                Some('$') => json.push('$'),
                Some('v') => json.push_str("\\u000b"),
                escaped => {
                    json.push('\\');
                    json.extend(escaped);
                }
            },
            ',' if !is_text && ends_list(chars.clone()) => {}
            _ => {
                is_text ^= char == '"';
                json.push(char);
            }
        }
    }
    json
}

fn ends_list(mut rest: impl Iterator<Item = char>) -> bool {
    rest.find(|char| !char.is_ascii_whitespace()).is_some_and(|char| matches!(char, ']' | '}'))
}

fn expiration_time(text: &str) -> S3Result<OffsetDateTime> {
    // RFC 3339 also permits separators other than `T`, and other time zones.
    let is_iso = text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T');
    let time = OffsetDateTime::parse(text, &Rfc3339).ok().filter(|_| is_iso);
    time.ok_or_else(|| invalid(&format!("Invalid 'expiration' value: '{text}'")))
}

/// Returns a number, which some clients write as text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn invalid(why: &str) -> S3Error {
    refuse(S3ErrorCode::InvalidPolicyDocument, format!("Invalid Policy: {why}"))
}

fn invalid_json() -> S3Error {
    invalid("Invalid JSON.")
}

fn denied(why: &str) -> S3Error {
    refuse(S3ErrorCode::AccessDenied, format!("Invalid according to Policy: {why}"))
}

fn failed(condition: &str) -> S3Error {
    denied(&format!("Policy Condition failed: {condition}"))
}

/// The rows in the first tests are the sentences on the page "POST Policy", in its order.
#[cfg(test)]
mod tests {
    use base64_simd::STANDARD as BASE64;
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2007-12-01 12:00:00 UTC);

    const EXAMPLE: &str = r#"{ "expiration": "2007-12-01T12:00:00.000Z",
      "conditions": [
        {"acl": "public-read" },
        {"bucket": "johnsmith" },
        ["starts-with", "$key", "user/eric/"],
      ]
    }"#;

    fn parse(text: &str) -> S3Result<FormPolicy> {
        FormPolicy::parse(&BASE64.encode_to_string(text))
    }

    /// Returns a policy with these conditions and one for the bucket.
    fn policy(conditions: &str) -> S3Result<FormPolicy> {
        let conditions = format!("{{\"bucket\": \"b\"}}, {conditions}");
        let expiration = "2007-12-01T12:00:00Z";
        parse(&format!("{{\"expiration\": \"{expiration}\", \"conditions\": [{conditions}]}}"))
    }

    fn fields(fields: &[(&str, &str)]) -> FormFields {
        let all: [(&str, &str); 8] =
            std::array::from_fn(|at| fields.get(at).copied().unwrap_or(("x-ignore-nothing", "")));
        FormFields::from(all)
    }

    /// Returns the reason why a policy rejects fields; empty if it does not.
    fn refusal(policy: &FormPolicy, given: &[(&str, &str)], bucket: &str) -> String {
        match policy.check(&fields(given), bucket, NOW) {
            Ok(()) => String::new(),
            Err(error) => {
                assert_eq!(error.code(), S3ErrorCode::AccessDenied);
                error.message().trim_start_matches("Invalid according to Policy: ").to_owned()
            }
        }
    }

    #[test]
    fn example_is_met_by_its_bucket_key_and_list_only() {
        let policy = parse(EXAMPLE).unwrap();
        let (acl, key) = (("acl", "public-read"), ("key", "user/eric/a.jpg"));
        assert_eq!(refusal(&policy, &[acl, key], "johnsmith"), "");
        for (given, bucket, reason) in [
            ([acl, key], "other", r#"failed: ["eq", "$bucket", "johnsmith"]"#),
            (
                [acl, ("key", "user/betty/a")],
                "johnsmith",
                r#"["starts-with", "$key", "user/eric/"]"#,
            ),
            ([("acl", "private"), key], "johnsmith", r#"["eq", "$acl", "public-read"]"#),
        ] {
            let refused = refusal(&policy, &given, bucket);
            assert!(refused.ends_with(reason), "{refused}");
        }
    }

    #[test]
    fn policy_is_not_valid_after_its_expiration() {
        let policy = parse(EXAMPLE).unwrap();
        let given = fields(&[("acl", "public-read"), ("key", "user/eric/a")]);
        assert!(policy.check(&given, "johnsmith", NOW).is_ok());
        let error =
            policy.check(&given, "johnsmith", NOW + time::Duration::MILLISECOND).unwrap_err();
        assert_eq!(error.message(), "Invalid according to Policy: Policy expired.");
    }

    #[test]
    fn conditions_match_as_the_documentation_says() {
        for (condition, name, value, is_met) in [
            // Exact matches: "The form field value must match the value specified."
            (r#"{"acl": "public-read" }"#, "acl", "public-read", true),
            (r#"{"acl": "public-read" }"#, "acl", "public-read-write", false),
            (r#"{"acl": "public-read" }"#, "acl", "PUBLIC-READ", false),
            (r#"[ "eq", "$acl", "public-read" ]"#, "acl", "public-read", true),
            (r#"[ "eq", "$acl", "public-read" ]"#, "acl", "", false),
            // Starts with: "The value must start with the specified value."
            (r#"["starts-with", "$key", "user/user1/"]"#, "key", "user/user1/a", true),
            (r#"["starts-with", "$key", "user/user1/"]"#, "key", "user/user1", false),
            (r#"["starts-with", "$key", "user/user1/"]"#, "key", "User/user1/a", false),
            // "Content-Types values for a starts-with condition that include commas are
            // interpreted as lists. Each value in the list must meet the condition."
            (
                r#"["starts-with", "$Content-Type", "image/"]"#,
                "content-type",
                "image/jpg,image/png,image/gif",
                true,
            ),
            (
                r#"["starts-with", "$Content-Type", "image/"]"#,
                "content-type",
                "image/a, image/b",
                true,
            ),
            (
                r#"["starts-with", "$Content-Type", "image/"]"#,
                "content-type",
                "image/jpg,text/plain",
                false,
            ),
            (r#"["starts-with", "$Content-Type", "image/"]"#, "content-type", "image/jpg,", false),
            (r#"["starts-with", "$Content-Type", "image/"]"#, "content-type", " image/a", false),
            (r#"["eq", "$Content-Type", "a/b,c/d"]"#, "content-type", "a/b,c/d", true),
            // "Data elements other than Content-Type are treated as strings, regardless of commas."
            (r#"["starts-with", "$x-amz-meta-a", "b"]"#, "x-amz-meta-a", "b,c", true),
            // Matching any content.
            (
                r#"["starts-with", "$success_action_redirect", ""]"#,
                "success_action_redirect",
                "http://a/",
                true,
            ),
            (r#"["starts-with", "$Content-Type", ""]"#, "content-type", "a/b,c/d", true),
            (r#"["starts-with", "$x-amz-meta-a", ""]"#, "key", "k", true),
            (r#"["starts-with", "$x-amz-meta-a", "b"]"#, "key", "k", false),
            (r#"["eq", "$x-amz-meta-a", ""]"#, "key", "k", false),
            // Field names and operations are compared without regard to case.
            (r#"{"AcL": "private"}"#, "aCl", "private", true),
            (
                r#"["StArTs-WiTh", "$CoNtEnT-TyPe", "text/plain"]"#,
                "Content-Type",
                "text/plain",
                true,
            ),
            // If a field has several conditions, it must meet all.
            (
                r#"["starts-with", "$acl", "p"], ["starts-with", "$acl", "pr"]"#,
                "acl",
                "private",
                true,
            ),
            (
                r#"["starts-with", "$acl", "p"], ["eq", "$acl", "private"]"#,
                "acl",
                "public-read",
                false,
            ),
        ] {
            let conditions = format!("{condition}, [\"starts-with\", \"${name}\", \"\"]");
            let refused = refusal(&policy(&conditions).unwrap(), &[(name, value)], "b");
            assert_eq!(refused.is_empty(), is_met, "{condition} {value}: {refused}");
            assert!(is_met || refused.starts_with("Policy Condition failed: ["), "{refused}");
        }
    }

    #[test]
    fn ranges_limit_the_length_of_the_file() {
        for (conditions, lengths) in [
            (r#"["content-length-range", 1048576, 10485760]"#, 1_048_576..=10_485_760),
            (r#"["content-length-range", "5", "10"]"#, 5..=10),
            (r#"["content-length-range", 1, "20"], ["content-length-range", 0, 10]"#, 1..=10),
            (r#"["eq", "$key", "k"]"#, 0..=u64::MAX),
        ] {
            assert_eq!(policy(conditions).unwrap().lengths(), lengths, "{conditions}");
        }
    }

    #[test]
    fn each_field_but_the_exempt_ones_needs_a_condition() {
        let policy = policy(r#"{"key": "k"}"#).unwrap();
        for name in [
            "x-amz-signature",
            "X-Amz-Signature",
            "policy",
            "AWSAccessKeyId",
            "Signature",
            "x-ignore-a",
            "x-amz-checksum-crc32",
        ] {
            assert_eq!(refusal(&policy, &[("key", "k"), (name, "")], "b"), "", "{name}");
        }
        for name in [
            "acl",
            "Content-Type",
            "filename",
            "submit",
            "success_action_status",
            "tagging",
            "x-amz-algorithm",
            "x-amz-credential",
            "x-amz-date",
            "x-amz-meta-a",
            "x-amz-security-token",
        ] {
            let expected = format!("Extra input fields: {}", name.to_ascii_lowercase());
            assert_eq!(refusal(&policy, &[("key", "k"), (name, "")], "b"), expected);
        }
    }

    #[test]
    fn policy_and_form_name_the_bucket_of_the_request() {
        let expiration = r#""expiration": "2007-12-01T12:00:00Z""#;
        let without = format!("{{{expiration}, \"conditions\": [{{\"key\": \"k\"}}]}}");
        let refused = refusal(&parse(&without).unwrap(), &[("key", "k")], "b");
        assert_eq!(refused, "Extra input fields: bucket");
        let policy = policy(r#"["starts-with", "$bucket", ""], {"key": "k"}"#).unwrap();
        assert_eq!(refusal(&policy, &[("key", "k"), ("bucket", "b")], "b"), "");
        let refused = refusal(&policy, &[("key", "k"), ("bucket", "c")], "b");
        assert!(refused.contains("another bucket"), "{refused}");
    }

    #[test]
    fn characters_are_escaped_as_in_the_documentation() {
        for (escaped, value) in [
            (r"\\", "\\"),
            (r"\$", "$"),
            (r"\\$", "\\$"),
            (r"\\\$", "\\$"),
            (r"\b\f\n\r\t", "\u{8}\u{c}\n\r\t"),
            (r"\v", "\u{b}"),
            (r"\u00e4\u20ac", "\u{e4}\u{20ac}"),
            (r#"\",]"#, "\",]"),
            ("\u{e4},]", "\u{e4},]"),
        ] {
            let policy = policy(&format!("[\"eq\", \"$key\", \"{escaped}\"]")).unwrap();
            assert_eq!(refusal(&policy, &[("key", value)], "b"), "", "{escaped}");
            assert_ne!(refusal(&policy, &[("key", "other")], "b"), "", "{escaped}");
        }
        assert_eq!(to_json("{\"a\": [1, 2 , ] ,\n}"), "{\"a\": [1, 2  ] \n}");
        assert_eq!(to_json("[\",]\\"), "[\",]\\");
    }

    #[test]
    fn malformed_conditions_are_refused() {
        for (conditions, reason) in [
            ("{}", "exactly one property"),
            (r#"{"a": "b", "c": "d"}"#, "exactly one property"),
            (r#"{"a": 1}"#, "value must be a string"),
            (r#"{"a": null}"#, "value must be a string"),
            ("true", "must be a List or Object"),
            ("[]", "missing operation identifier"),
            (r#"[1, "$a", "b"]"#, "Invalid JSON."),
            (r#"["like", "$a", "b"]"#, "unknown operation 'like'"),
            (r#"["eq", "$a"]"#, "Invalid eq: wrong number of arguments"),
            (r#"["eq", "$a", "b", "c"]"#, "Invalid eq: wrong number of arguments"),
            (r#"["eq", false, "b"]"#, "Invalid JSON."),
            (r#"["eq", "$a", true]"#, "Invalid JSON."),
            (r#"["content-length-range", 0]"#, "wrong number of arguments"),
            (r#"["content-length-range", -1, 0]"#, "Invalid JSON."),
            (r#"["content-length-range", 0, 512.0]"#, "Invalid JSON."),
            (r#"["content-length-range", 12, false]"#, "Invalid JSON."),
            (r#"["content-length-range", "invalid", "14"]"#, "Invalid JSON."),
            (r"['eq', '$a', 'b']", "Invalid JSON."),
        ] {
            let error = policy(conditions).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::InvalidPolicyDocument, "{conditions}");
            assert!(error.message().contains(reason), "{conditions}: {}", error.message());
        }
        for name in ["a", "", "$"] {
            let error = policy(&format!(r#"["eq", "{name}", "b"]"#)).unwrap_err();
            let expected = format!(r#"Policy Condition failed: ["eq", "{name}", "b"]"#);
            assert_eq!(error.code(), S3ErrorCode::AccessDenied, "{name}");
            assert!(error.message().ends_with(&expected), "{}", error.message());
        }
    }

    #[test]
    fn malformed_policies_are_refused() {
        let expiration = |text: &str| format!("{{\"expiration\": {text}, \"conditions\": []}}");
        for (text, reason) in [
            (String::new(), "found End-of-Input"),
            ("[]".to_owned(), "Invalid JSON."),
            ("invalid json".to_owned(), "Invalid JSON."),
            (r#"{"conditions": []}"#.to_owned(), "missing expiration"),
            (r#"{"expiration": "2007-12-01T12:00:00Z"}"#.to_owned(), "missing conditions"),
            (r#"{"EXPIRATION": "", "conditions": []}"#.to_owned(), "Unexpected: \"EXPIRATION\""),
            (r#"{"expiration": "", "conditions": [], "x": 1}"#.to_owned(), "Unexpected: \"x\""),
            (r#"{"expiration": "", "conditions": true}"#.to_owned(), "must be a List"),
            (expiration("true"), "Invalid JSON."),
            (expiration("\"invalid\""), "Invalid 'expiration' value: 'invalid'"),
            (expiration("\"2007-12-01 12:00:00Z\""), "'expiration'"),
            (expiration("\"2007-12-01 12:00:00.123456+00:00\""), "'expiration'"),
            (expiration("\"2007-12-01T12:00:00+01:00\""), "'expiration'"),
        ] {
            let error = parse(&text).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::InvalidPolicyDocument, "{text}");
            assert!(error.message().contains(reason), "{text}: {}", error.message());
        }
        let error = FormPolicy::parse("!").unwrap_err();
        assert!(error.message().contains("Base64"), "{}", error.message());
    }

    #[test]
    fn base64_may_have_line_ends_and_no_padding() {
        let encoded = BASE64.encode_to_string(EXAMPLE);
        let lines: Vec<_> = encoded.as_bytes().chunks(60).map(String::from_utf8_lossy).collect();
        let expected = parse(EXAMPLE).unwrap();
        for text in [lines.join("\r\n"), encoded.trim_end_matches('=').to_owned()] {
            assert_eq!(FormPolicy::parse(&text).unwrap(), expected);
        }
    }
}
