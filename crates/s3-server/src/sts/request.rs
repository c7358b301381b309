//! Parses the forms of STS requests. Pure.

use std::collections::BTreeMap;

use form_urlencoded::parse;

use crate::errors::{S3Error, S3ErrorCode, S3Result, refuse};
use crate::policy::statement::Policy;
use crate::sts::document::Names;

/// The version of the interface, which each form names.
const VERSION: &str = "2011-06-15";

/// The shortest session, in seconds.
const DURATION_S_MIN: i64 = 900;

/// The longest session of AssumeRole, in seconds: 12 hours.
const ROLE_DURATION_S_MAX: i64 = 43_200;

/// The longest session of GetSessionToken, in seconds: 36 hours.
const TOKEN_DURATION_S_MAX: i64 = 129_600;

/// The default of AssumeRole.
const ROLE_DURATION_S: i64 = 3_600;

/// The maximum length of a session policy, in characters.
const POLICY_CHARACTERS_MAX: usize = 2048;

/// The requests that are supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    AssumeRole,
    AssumeRoleWithWebIdentity,
    GetSessionToken,
}

impl Action {
    /// Returns the names of the response's elements.
    pub(super) fn names(self) -> Names {
        let (response, result) = match self {
            Self::AssumeRole => ("AssumeRoleResponse", "AssumeRoleResult"),
            Self::AssumeRoleWithWebIdentity => {
                ("AssumeRoleWithWebIdentityResponse", "AssumeRoleWithWebIdentityResult")
            }
            Self::GetSessionToken => ("GetSessionTokenResponse", "GetSessionTokenResult"),
        };
        Names { response, result }
    }

    fn name(self) -> &'static str {
        match self {
            Self::AssumeRole => "AssumeRole",
            Self::AssumeRoleWithWebIdentity => "AssumeRoleWithWebIdentity",
            Self::GetSessionToken => "GetSessionToken",
        }
    }

    /// Returns the default and the maximum of a session's duration, in seconds.
    fn durations_s(self) -> (i64, i64) {
        match self {
            Self::AssumeRole | Self::AssumeRoleWithWebIdentity => {
                (ROLE_DURATION_S, ROLE_DURATION_S_MAX)
            }
            Self::GetSessionToken => (ROLE_DURATION_S_MAX, TOKEN_DURATION_S_MAX),
        }
    }

    /// Returns the parameters of the form. Those that select a role have no effect: each key
    /// assumes itself. Others could restrict the session, and are refused.
    fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::AssumeRole => &["DurationSeconds", "Policy", "RoleArn", "RoleSessionName"],
            Self::AssumeRoleWithWebIdentity => {
                &["DurationSeconds", "Policy", "RoleArn", "RoleSessionName", "WebIdentityToken"]
            }
            Self::GetSessionToken => &["DurationSeconds"],
        }
    }
}

/// A request for a temporary key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SessionRequest {
    pub(super) action: Action,
    pub(super) duration_s: i64,
    /// The text of a policy that was parsed without an error.
    pub(super) policy: Option<String>,
    /// The ID token of a provider; empty without one.
    pub(super) identity: String,
}

impl SessionRequest {
    /// Parses a form.
    ///
    /// # Errors
    /// The STS error for an unknown action or parameter, and for an invalid value.
    pub(super) fn parse(form: &[u8]) -> S3Result<Self> {
        let mut fields: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in parse(form).into_owned() {
            if fields.contains_key(&name) {
                return Err(invalid(format!("the parameter {name} is given twice")));
            }
            fields.insert(name, value);
        }
        let action = match fields.get("Action").map(String::as_str) {
            Some("AssumeRole") => Action::AssumeRole,
            Some("AssumeRoleWithWebIdentity") => Action::AssumeRoleWithWebIdentity,
            Some("GetSessionToken") => Action::GetSessionToken,
            Some(other) => {
                let message = format!("Could not find operation {other} for version {VERSION}");
                return Err(refuse(S3ErrorCode::InvalidAction, message));
            }
            None => {
                let message = "The form of an STS request has the parameter Action";
                return Err(refuse(S3ErrorCode::MissingAction, message));
            }
        };
        if fields.get("Version").is_some_and(|version| version != VERSION) {
            let message = format!("The version of the interface is {VERSION}");
            return Err(refuse(S3ErrorCode::InvalidAction, message));
        }
        let known = |name: &str| {
            matches!(name, "Action" | "Version") || action.parameters().contains(&name)
        };
        if let Some(name) = fields.keys().find(|name| !known(name)) {
            let message = format!("{} with the parameter {name} is not supported", action.name());
            return Err(invalid(message));
        }
        let (default_s, max_s) = action.durations_s();
        let duration_s = match fields.get("DurationSeconds") {
            None => default_s,
            Some(text) => match text.parse() {
                Ok(seconds) if (DURATION_S_MIN..=max_s).contains(&seconds) => seconds,
                _ => {
                    let message = format!(
                        "DurationSeconds is \"{text}\", but must be a number of seconds between \
                         {DURATION_S_MIN} and {max_s}"
                    );
                    return Err(invalid(message));
                }
            },
        };
        let policy = fields.remove("Policy").map(checked_policy).transpose()?;
        let identity = fields.remove("WebIdentityToken").unwrap_or_default();
        Ok(Self { action, duration_s, policy, identity })
    }
}

/// Returns a session policy that the server can apply.
fn checked_policy(text: String) -> S3Result<String> {
    if text.chars().count() > POLICY_CHARACTERS_MAX {
        let message = format!("A session policy has at most {POLICY_CHARACTERS_MAX} characters");
        return Err(refuse(S3ErrorCode::PackedPolicyTooLarge, message));
    }
    match Policy::parse_for_users(&text) {
        Ok(_) => Ok(text),
        Err(reason) => {
            let message = format!("The session policy cannot be applied: {reason}");
            Err(refuse(S3ErrorCode::MalformedPolicyDocument, message))
        }
    }
}

fn invalid(message: String) -> S3Error {
    refuse(S3ErrorCode::ValidationError, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"{"Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*"}}"#;

    fn parse(form: &[(&str, &str)]) -> Result<SessionRequest, String> {
        let mut text = form_urlencoded::Serializer::new(String::new());
        let text = text.extend_pairs(form).finish();
        let parsed = SessionRequest::parse(text.as_bytes());
        parsed.map_err(|error| error.code().as_str().to_owned())
    }

    #[test]
    fn form_has_an_action_a_duration_and_a_policy() {
        let role = [("Action", "AssumeRole"), ("Version", VERSION), ("RoleArn", "arn:x")];
        let expected = |action, duration_s| SessionRequest {
            action,
            duration_s,
            policy: None,
            identity: String::new(),
        };
        assert_eq!(parse(&role), Ok(expected(Action::AssumeRole, 3_600)));
        let token = [("Action", "GetSessionToken"), ("DurationSeconds", "129600")];
        assert_eq!(parse(&token), Ok(expected(Action::GetSessionToken, 129_600)));
        let policy = [("Action", "AssumeRole"), ("Policy", POLICY), ("DurationSeconds", "900")];
        let parsed = parse(&policy).unwrap();
        assert_eq!((parsed.policy.as_deref(), parsed.duration_s), (Some(POLICY), 900));
    }

    #[test]
    fn what_could_restrict_a_session_is_refused() {
        let long = format!("{POLICY}{}", " ".repeat(POLICY_CHARACTERS_MAX));
        for (form, code) in [
            (&[][..], "MissingAction"),
            (&[("Action", "AssumeRoleWithSAML")], "InvalidAction"),
            (&[("Action", "AssumeRole"), ("Version", "2010")], "InvalidAction"),
            (&[("Action", "AssumeRole"), ("Action", "AssumeRole")], "ValidationError"),
            (&[("Action", "AssumeRole"), ("PolicyArns.member.1.arn", "a")], "ValidationError"),
            (&[("Action", "AssumeRole"), ("WebIdentityToken", "a")], "ValidationError"),
            (&[("Action", "AssumeRole"), ("TokenCode", "1")], "ValidationError"),
            (&[("Action", "GetSessionToken"), ("Policy", POLICY)], "ValidationError"),
            (&[("Action", "AssumeRole"), ("DurationSeconds", "899")], "ValidationError"),
            (&[("Action", "AssumeRole"), ("DurationSeconds", "43201")], "ValidationError"),
            (&[("Action", "AssumeRole"), ("DurationSeconds", "")], "ValidationError"),
            (&[("Action", "GetSessionToken"), ("DurationSeconds", "129601")], "ValidationError"),
            (&[("Action", "AssumeRole"), ("Policy", "{")], "MalformedPolicyDocument"),
            (&[("Action", "AssumeRole"), ("Policy", "")], "MalformedPolicyDocument"),
            (&[("Action", "AssumeRole"), ("Policy", &long)], "PackedPolicyTooLarge"),
        ] {
            assert_eq!(parse(form).unwrap_err(), code, "{form:?}");
        }
    }
}
