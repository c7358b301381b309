//! A statement's conditions: a value in the request, an operator and the values for comparison.

use std::borrow::Cow;

use crate::encryption::request::{ENCRYPTION, KEY_NAME, key_name};
use crate::policy::operand::{Comparison, Operand, Order};

/// A request property that conditions compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    /// The client's address.
    SourceIp,
    /// `true` if the connection is encrypted.
    SecureTransport,
    /// The present time, in seconds since 1970.
    Time,
    /// The user whose key signed the request.
    User,
    /// The bucket for which a service acts, as an ARN.
    SourceArn,
    /// The owner of this bucket.
    SourceAccount,
    /// A header, by its lowercase name.
    Header(String),
    /// A query parameter.
    Query(&'static str),
    /// A part of the object lock that the request sets.
    Lock(LockPart),
    /// A part of the encryption for the object that the request stores.
    Encryption(EncryptionPart),
    /// The value of a tag that the object has.
    ExistingTag(String),
    /// The value of a tag in the request.
    RequestTag(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockPart {
    /// `GOVERNANCE` or `COMPLIANCE`.
    Mode,
    /// The end of the retention, in seconds since 1970.
    RetainUntil,
    /// The days until the end of the retention, rounded up.
    RemainingDays,
    /// `ON` or `OFF`.
    LegalHold,
}

/// A part of an encryption with an operator key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EncryptionPart {
    /// `AES256` or `aws:kms`.
    Algorithm,
    /// The key's name.
    KeyName,
}

/// A request's properties.
pub(crate) trait Facts {
    /// Returns the value of a property, if the request has it.
    fn value(&self, key: &Key) -> Option<Cow<'_, str>>;
}

/// A condition in a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(super) key: Key,
    /// One of these must match, or none if the operator is negated.
    pub(super) operands: Vec<Operand>,
    pub(super) is_negated: bool,
    /// `true` if a request without a value meets the condition.
    pub(super) holds_without_value: bool,
}

impl Condition {
    /// Returns `true` if the request meets the condition.
    pub(super) fn holds(&self, facts: &dyn Facts) -> bool {
        let value = facts.value(&self.key);
        let is_absent = |operand: &Operand| matches!(operand, Operand::Absent(_));
        if value.is_none() && !self.operands.iter().any(is_absent) {
            return self.holds_without_value;
        }
        let matches = self.operands.iter().any(|operand| operand.matches(value.as_deref()));
        matches != self.is_negated
    }
}

impl Key {
    /// Parses the name of a condition key; `None` if this server does not know its value. Ignores
    /// case, except in tag names.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        for (prefix, tag) in [
            ("s3:existingobjecttag/", Self::ExistingTag as fn(String) -> Self),
            ("s3:requestobjecttag/", Self::RequestTag),
        ] {
            if lower.starts_with(prefix) && lower.len() > prefix.len() {
                return Some(tag(name[prefix.len()..].to_owned()));
            }
        }
        Some(match lower.as_str() {
            "aws:sourceip" => Self::SourceIp,
            "aws:securetransport" => Self::SecureTransport,
            "aws:currenttime" | "aws:epochtime" => Self::Time,
            "aws:username" => Self::User,
            "aws:sourcearn" => Self::SourceArn,
            "aws:sourceaccount" => Self::SourceAccount,
            "aws:referer" => Self::Header("referer".to_owned()),
            "aws:useragent" => Self::Header("user-agent".to_owned()),
            "s3:if-match" => Self::Header("if-match".to_owned()),
            "s3:if-none-match" => Self::Header("if-none-match".to_owned()),
            "s3:object-lock-mode" => Self::Lock(LockPart::Mode),
            "s3:object-lock-retain-until-date" => Self::Lock(LockPart::RetainUntil),
            "s3:object-lock-remaining-retention-days" => Self::Lock(LockPart::RemainingDays),
            "s3:object-lock-legal-hold" => Self::Lock(LockPart::LegalHold),
            "s3:prefix" => Self::Query("prefix"),
            "s3:delimiter" => Self::Query("delimiter"),
            "s3:max-keys" => Self::Query("max-keys"),
            "s3:versionid" => Self::Query("versionId"),
            _ => match lower.strip_prefix("s3:").filter(|name| name.starts_with("x-amz-"))? {
                ENCRYPTION => Self::Encryption(EncryptionPart::Algorithm),
                KEY_NAME => Self::Encryption(EncryptionPart::KeyName),
                name => Self::Header(name.to_owned()),
            },
        })
    }

    /// Converts a policy's value to the form that requests have, such as a key's name for an
    /// operator key.
    pub(super) fn comparable(&self, comparison: Comparison, value: String) -> String {
        match (self, comparison) {
            (Self::Encryption(EncryptionPart::KeyName), Comparison::Text) => {
                key_name(&value).to_owned()
            }
            (Self::Encryption(EncryptionPart::KeyName), Comparison::TextIgnoringCase) => {
                key_name(&value.to_lowercase()).to_owned()
            }
            // Key names have neither colons nor slashes: the part after the last of these is
            // compared.
            (Self::Encryption(EncryptionPart::KeyName), Comparison::Pattern | Comparison::Arn) => {
                value.rsplit([':', '/']).next().unwrap_or_default().to_owned()
            }
            _ => value,
        }
    }
}

/// Parses an operator's name: the comparison, `true` if it is negated, and `true` if a request
/// without a value meets the condition. `None` if the operator is unknown.
pub(super) fn operator(name: &str) -> Option<(Comparison, bool, bool)> {
    use Comparison::{Absent, Arn, Flag, Network, Number, Pattern, Text, TextIgnoringCase, Time};
    use Order::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};

    let bare = name.strip_suffix("IfExists").unwrap_or(name);
    let (comparison, is_negated) = match bare {
        "StringEquals" => (Text, false),
        "StringNotEquals" => (Text, true),
        "StringEqualsIgnoreCase" => (TextIgnoringCase, false),
        "StringNotEqualsIgnoreCase" => (TextIgnoringCase, true),
        "StringLike" => (Pattern, false),
        "StringNotLike" => (Pattern, true),
        "ArnEquals" | "ArnLike" => (Arn, false),
        "ArnNotEquals" | "ArnNotLike" => (Arn, true),
        "NumericEquals" => (Number(Equal), false),
        "NumericNotEquals" => (Number(Equal), true),
        "NumericLessThan" => (Number(Less), false),
        "NumericLessThanEquals" => (Number(LessOrEqual), false),
        "NumericGreaterThan" => (Number(Greater), false),
        "NumericGreaterThanEquals" => (Number(GreaterOrEqual), false),
        "DateEquals" => (Time(Equal), false),
        "DateNotEquals" => (Time(Equal), true),
        "DateLessThan" => (Time(Less), false),
        "DateLessThanEquals" => (Time(LessOrEqual), false),
        "DateGreaterThan" => (Time(Greater), false),
        "DateGreaterThanEquals" => (Time(GreaterOrEqual), false),
        "Bool" => (Flag, false),
        "IpAddress" => (Network, false),
        "NotIpAddress" => (Network, true),
        "Null" if name == bare => (Absent, false),
        _ => return None,
    };
    Some((comparison, is_negated, is_negated || name != bare))
}
