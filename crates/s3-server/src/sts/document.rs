//! Writes the documents of STS responses.

use time::OffsetDateTime;

use crate::access::keys::session::TemporaryKey;
use crate::errors::S3Error;
use crate::times::document_time;
use crate::xml::writer::Xml;

/// The namespace of STS documents.
const NAMESPACE: &str = "https://sts.amazonaws.com/doc/2011-06-15/";

/// The names of a response's elements.
pub(super) struct Names {
    pub(super) response: &'static str,
    pub(super) result: &'static str,
}

/// A temporary key, and its user.
pub(super) struct Session<'a> {
    pub(super) key: &'a TemporaryKey,
    pub(super) expires: OffsetDateTime,
    /// `None` for a response that does not name its user.
    pub(super) user: Option<&'a str>,
    /// The provider of a user, and the audience of its token.
    pub(super) provider: Option<Provider<'a>>,
}

/// The provider of a user, and the audience of its token.
pub(super) struct Provider<'a> {
    pub(super) issuer: &'a str,
    pub(super) audience: &'a str,
}

/// Returns the response with a temporary key.
pub(super) fn session_document(names: &Names, session: &Session<'_>, id: &str) -> String {
    let Session { key, expires, user, provider } = session;
    Xml::with_namespace(names.response, NAMESPACE, |xml| {
        xml.group(names.result, |xml| {
            xml.group("Credentials", |xml| {
                xml.element("AccessKeyId", &key.access_key);
                xml.element("SecretAccessKey", &key.secret_key);
                xml.element("SessionToken", &key.token);
                xml.element("Expiration", document_time((*expires).into()));
            });
            if let Some(user) = user {
                xml.group("AssumedRoleUser", |xml| {
                    xml.element("AssumedRoleId", format_args!("{user}:{}", key.access_key));
                    xml.element("Arn", format_args!("arn:aws:iam:::user/{user}"));
                });
            }
            if let (Some(user), Some(provider)) = (user, provider) {
                xml.element("SubjectFromWebIdentityToken", user);
                xml.element("Provider", provider.issuer);
                xml.element("Audience", provider.audience);
            }
        });
        xml.group("ResponseMetadata", |xml| xml.element("RequestId", id));
    })
}

/// Returns the response with an error.
pub(crate) fn error_document(error: &S3Error, id: &str) -> String {
    let is_client_error = error.code().status().is_client_error();
    Xml::with_namespace("ErrorResponse", NAMESPACE, |xml| {
        xml.group("Error", |xml| {
            xml.element("Type", if is_client_error { "Sender" } else { "Receiver" });
            xml.element("Code", error.code().as_str());
            xml.message(error.message());
        });
        xml.element("RequestId", id);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::{S3ErrorCode, refuse};

    #[test]
    fn documents_are_those_of_aws() {
        let key = TemporaryKey {
            access_key: "A".to_owned(),
            secret_key: "B".to_owned(),
            token: "C".to_owned(),
        };
        let names = Names { response: "AssumeRoleResponse", result: "AssumeRoleResult" };
        let expires = OffsetDateTime::UNIX_EPOCH;
        let session = Session { key: &key, expires, user: Some("ann"), provider: None };
        let text = session_document(&names, &session, "7");
        let expected = "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
            <AssumeRoleResult><Credentials><AccessKeyId>A</AccessKeyId>\
            <SecretAccessKey>B</SecretAccessKey><SessionToken>C</SessionToken>\
            <Expiration>1970-01-01T00:00:00.000Z</Expiration></Credentials><AssumedRoleUser>\
            <AssumedRoleId>ann:A</AssumedRoleId><Arn>arn:aws:iam:::user/ann</Arn>\
            </AssumedRoleUser></AssumeRoleResult><ResponseMetadata><RequestId>7</RequestId>\
            </ResponseMetadata></AssumeRoleResponse>";
        assert!(text.ends_with(expected), "{text}");
        let text = error_document(&refuse(S3ErrorCode::ValidationError, "a<b"), "7");
        let expected = "<Error><Type>Sender</Type><Code>ValidationError</Code>\
            <Message>a&lt;b</Message></Error><RequestId>7</RequestId></ErrorResponse>";
        assert!(text.ends_with(expected), "{text}");
    }
}
