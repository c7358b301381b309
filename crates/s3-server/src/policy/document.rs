//! Bucket policies outside a server.

use std::borrow::Cow;

use crate::encryption::request::key_name;
use crate::error::{Error, Result};
use crate::policy::condition::{EncryptionPart, Facts, Key};
use crate::policy::evaluate::{Access, Client, Verdict};
use crate::policy::statement::Policy;

/// A bucket policy, as a server enforces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyDocument(Policy);

/// A request for which a policy decides.
#[derive(Debug, Clone, Copy)]
pub struct PolicyRequest<'a> {
    /// The user whose key signed the request; `None` if it is not signed.
    pub user: Option<&'a str>,
    /// The action, such as `s3:GetObject`.
    pub action: &'a str,
    /// The bucket name, or the bucket name, a slash and a key.
    pub resource: &'a str,
    /// The names of condition keys, such as `aws:SourceIp`, and their values in the request.
    pub values: &'a [(&'a str, &'a str)],
}

impl PolicyDocument {
    /// Parses a bucket policy for the bucket `bucket`.
    ///
    /// # Errors
    /// [`Error::Policy`] if the text is malformed, or has parts that a server would not enforce.
    pub fn parse(text: &str, bucket: &str) -> Result<Self> {
        Policy::parse(text, bucket).map(Self).map_err(|why| Error::Policy { why })
    }

    /// Decides about a request: `true` allows it, `false` denies it, and `None` leaves the decision
    /// to the user's rights and to ACLs.
    #[must_use]
    pub fn decide(&self, request: &PolicyRequest<'_>) -> Option<bool> {
        let PolicyRequest { user, action, resource, values } = *request;
        let access = Access { client: Client::User(user), action, resource };
        match self.0.evaluate(&access, &Values(values)) {
            Verdict::Denied => Some(false),
            Verdict::Allowed => Some(true),
            Verdict::Silent => None,
        }
    }
}

/// The values of condition keys.
struct Values<'a>(&'a [(&'a str, &'a str)]);

impl Facts for Values<'_> {
    fn value(&self, key: &Key) -> Option<Cow<'_, str>> {
        let found = self.0.iter().find(|(name, _)| Key::parse(name).as_ref() == Some(key));
        let is_key_name = *key == Key::Encryption(EncryptionPart::KeyName);
        found.map(|(_, value)| if is_key_name { key_name(value) } else { value }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_decides_by_its_statements_and_conditions() {
        let text = r#"{"Statement": [
            {"Effect": "Allow", "Principal": "*", "Action": "s3:Get*",
             "Resource": "arn:aws:s3:::b/*"},
            {"Effect": "Deny", "Principal": "*", "Action": "*", "Resource": "arn:aws:s3:::b/*",
             "Condition": {"NotIpAddress": {"aws:SourceIp": "192.0.2.0/24"}}}]}"#;
        let policy = PolicyDocument::parse(text, "b").unwrap();
        let decide = |action, address| {
            let values = [("aws:sourceip", address)];
            let request = PolicyRequest { user: None, action, resource: "b/k", values: &values };
            policy.decide(&request)
        };
        assert_eq!(decide("s3:GetObject", "192.0.2.1"), Some(true));
        assert_eq!(decide("s3:GetObject", "203.0.113.1"), Some(false));
        assert_eq!(decide("s3:PutObject", "192.0.2.1"), None);
        let refused = PolicyDocument::parse(text, "c").unwrap_err().to_string();
        assert!(refused.contains("not in the bucket c"), "{refused}");
    }
}
