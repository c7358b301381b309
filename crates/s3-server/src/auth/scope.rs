//! The scope of a Version 4 signature: date, region, service and a fixed word.

use crate::auth::REGION;
use crate::errors::{S3Error, S3ErrorCode, invalid_argument, refuse};

/// The credential in a signature: an access key and a scope.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Credential<'a> {
    pub(crate) access_key: &'a str,
    /// The date, such as `20261128`.
    pub(crate) date: &'a str,
    /// The whole scope, as it is signed.
    pub(crate) scope: &'a str,
}

/// The location of a credential in a request, which determines the error for a malformed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Header,
    Query,
    Form,
}

impl Place {
    /// Returns the error for a malformed signature.
    pub(super) fn malformed(self, why: &str) -> S3Error {
        match self {
            Self::Header => {
                let message = format!("The authorization header is malformed; {why}");
                refuse(S3ErrorCode::AuthorizationHeaderMalformed, message)
            }
            Self::Query => refuse(S3ErrorCode::AuthorizationQueryParametersError, why),
            Self::Form => refuse(S3ErrorCode::InvalidArgument, why),
        }
    }

    fn malformed_credential(self, text: &str, why: &str) -> S3Error {
        match self {
            Self::Header => self.malformed(why),
            Self::Query => {
                self.malformed(&format!("Error parsing the X-Amz-Credential parameter; {why}"))
            }
            Self::Form => invalid_argument("x-amz-credential", text, why),
        }
    }
}

impl<'a> Credential<'a> {
    /// Parses `ACCESS-KEY/DATE/REGION/s3/aws4_request`.
    pub(crate) fn parse(text: &'a str, place: Place) -> Result<Self, S3Error> {
        Self::parse_for(text, place, &["s3"])
    }

    /// Parses a credential whose service is one of `services`.
    pub(super) fn parse_for(
        text: &'a str,
        place: Place,
        services: &[&str],
    ) -> Result<Self, S3Error> {
        let error = |why: &str| place.malformed_credential(text, why);
        let form = || {
            error(
                "the Credential is mal-formed; expecting \
                 \"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\"",
            )
        };
        let (access_key, scope) = text.split_once('/').ok_or_else(form)?;
        let parts: Vec<_> = scope.split('/').collect();
        let [date, region, service, end] = parts[..] else { return Err(form()) };
        if access_key.is_empty() {
            return Err(form());
        }
        if date.len() != 8 || !date.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(error(&format!(
                "invalid credential date \"{date}\"; it must have the form YYYYMMDD"
            )));
        }
        let is_region = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if region.is_empty() || !region.bytes().all(is_region) {
            let why = format!("the region '{region}' is wrong; expecting '{REGION}'");
            return Err(error(&why).with_field("Region", REGION));
        }
        if !services.contains(&service) {
            let expected = services.last().copied().unwrap_or_default();
            return Err(error(&format!(
                "incorrect service \"{service}\"; this endpoint belongs to \"{expected}\""
            )));
        }
        if end != "aws4_request" {
            return Err(error(&format!(
                "incorrect terminal \"{end}\"; this endpoint uses \"aws4_request\""
            )));
        }
        Ok(Self { access_key, date, scope })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credential_has_five_parts() {
        let text = "key/20261122/us-east-1/s3/aws4_request";
        let found = Credential::parse(text, Place::Header).unwrap();
        let scope = "20261122/us-east-1/s3/aws4_request";
        assert_eq!(found, Credential { access_key: "key", date: "20261122", scope });
        assert!(Credential::parse("k/20261122/garage/s3/aws4_request", Place::Query).is_ok());
        for text in [
            "",
            "key",
            "/20261122/us-east-1/s3/aws4_request",
            "key/2026112/us-east-1/s3/aws4_request",
            "key/\"0130563/us-east-1/s3/aws4_request",
            "key/20261122/us-east-1/s3",
            "key/20261122/us-east-1/ec2/aws4_request",
            "key/20261122/us-east-1/s3/aws4",
            "key/20261122/us-east-1/s3/aws4_request/a",
        ] {
            let code = |place| {
                let error = Credential::parse(text, place).unwrap_err();
                assert_eq!(error.field("Region"), None, "{text}");
                error.code().as_str().to_owned()
            };
            assert_eq!(code(Place::Header), "AuthorizationHeaderMalformed", "{text}");
            assert_eq!(code(Place::Query), "AuthorizationQueryParametersError", "{text}");
            assert_eq!(code(Place::Form), "InvalidArgument", "{text}");
        }
        for region in ["US", ""] {
            let text = format!("key/20261122/{region}/s3/aws4_request");
            let error = Credential::parse(&text, Place::Header).unwrap_err();
            assert_eq!(error.field("Region"), Some(REGION));
        }
    }
}
