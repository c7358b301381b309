//! A bucket's versioning state.

use haul_file_store::Versioning;
use haul_store_pool::Pool;

use crate::answer::Answer;
use crate::body::Body;
use crate::buckets::documents::receive;
use crate::errors::{S3ErrorCode, S3Result, from_store, refuse};
use crate::service::Haul;
use crate::service::request::Request;
use crate::xml::Document;
use crate::xml::reader::{Element, malformed};
use crate::xml::writer::Xml;

const ENABLED: &str = "Enabled";
const SUSPENDED: &str = "Suspended";
const DISABLED: &str = "Disabled";

/// The document with a bucket's versioning state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct VersioningConfiguration {
    /// `Off` for a bucket that never had versions. The document then has no state.
    versioning: Versioning,
}

impl Document for VersioningConfiguration {
    const ROOT: &'static str = "VersioningConfiguration";

    fn read(root: &Element) -> S3Result<Self> {
        match root.only(&["MfaDelete", "Status"])?.word_of("MfaDelete")? {
            None | Some(DISABLED) => {}
            Some(ENABLED) => {
                return Err(refuse(S3ErrorCode::NotImplemented, "MFA delete is not supported"));
            }
            Some(_) => return Err(malformed("<MfaDelete> must be Enabled or Disabled")),
        }
        let versioning = match root.word_of("Status")? {
            None => Versioning::Off,
            Some(ENABLED) => Versioning::Enabled,
            Some(SUSPENDED) => Versioning::Suspended,
            Some(_) => return Err(malformed("<Status> must be Enabled or Suspended")),
        };
        Ok(Self { versioning })
    }

    fn write(&self, xml: &mut Xml) {
        let status = match self.versioning {
            Versioning::Off => None,
            Versioning::Enabled => Some(ENABLED),
            Versioning::Suspended => Some(SUSPENDED),
        };
        xml.optional("Status", status);
    }
}

pub(crate) async fn put_bucket_versioning(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    let VersioningConfiguration { versioning } = receive(haul, request, body).await?;
    if versioning == Versioning::Off {
        let message = "The status of the versioning must be Enabled or Suspended";
        return Err(refuse(S3ErrorCode::IllegalVersioningConfigurationException, message));
    }
    let bucket = request.name().bucket.clone();
    let set = move |store: &Pool| store.set_versioning(&bucket, versioning).map_err(from_store);
    haul.blocking(set).await?;
    Ok(Answer::ok())
}

pub(crate) async fn get_bucket_versioning(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let versioning = haul.store().versioning(&request.name().bucket).map_err(from_store)?;
    Ok(Answer::xml(VersioningConfiguration { versioning }.text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_those_of_s3() {
        let parse = |content: &str| {
            let root = VersioningConfiguration::ROOT;
            let parsed =
                VersioningConfiguration::parse(format!("<{root}>{content}</{root}>").as_bytes());
            parsed.map(|found| found.versioning).map_err(|error| error.code().as_str())
        };
        for (content, expected) in [
            ("", Ok(Versioning::Off)),
            ("<Status>Enabled</Status>", Ok(Versioning::Enabled)),
            ("<Status>\nSuspended\n</Status>", Ok(Versioning::Suspended)),
            ("<Status>Enabled</Status><MfaDelete>Disabled</MfaDelete>", Ok(Versioning::Enabled)),
            ("<Status>Enabled</Status><MfaDelete>Enabled</MfaDelete>", Err("NotImplemented")),
            ("<Status>Off</Status>", Err("MalformedXML")),
            ("<MfaDelete>Off</MfaDelete>", Err("MalformedXML")),
            ("<Status>Enabled</Status><Status>Enabled</Status>", Err("MalformedXML")),
            ("<State>Enabled</State>", Err("MalformedXML")),
        ] {
            assert_eq!(parse(content), expected, "{content}");
        }
        for versioning in [Versioning::Off, Versioning::Enabled, Versioning::Suspended] {
            let document = VersioningConfiguration { versioning };
            let again = VersioningConfiguration::parse(document.text().as_bytes());
            assert_eq!(again.unwrap(), document);
        }
    }
}
