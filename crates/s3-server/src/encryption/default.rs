//! The encryption that a bucket applies to new objects by default.

use haul_file_store::Error;
use haul_store_pool::Pool;

use crate::encryption::customer::AES256;
use crate::encryption::master::Master;
use crate::encryption::operator::EncryptionKeys;
use crate::encryption::request::{KMS, RequestedEncryption, key_name, unsupported};
use crate::errors::{S3ErrorCode, S3Result, from_store, refuse};
use crate::settings::parse;
use crate::xml::Document;
use crate::xml::reader::Element;
use crate::xml::writer::Xml;

/// The name of the bucket setting with the default encryption.
pub(crate) const DEFAULT: &str = "encryption";

/// A bucket's default encryption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerSideEncryptionConfiguration {
    algorithm: String,
    /// The key's ID.
    key: Option<String>,
    /// `true` if AWS may call its key service less often. It has no effect on this server.
    has_bucket_key: Option<bool>,
}

impl Document for ServerSideEncryptionConfiguration {
    const ROOT: &'static str = "ServerSideEncryptionConfiguration";

    fn read(root: &Element) -> S3Result<Self> {
        let rule = root.only(&["Rule"])?.required("Rule")?;
        if rule.child("BlockedEncryptionTypes")?.is_some() {
            let message = "BlockedEncryptionTypes is not supported";
            return Err(refuse(S3ErrorCode::NotImplemented, message));
        }
        rule.only(&["ApplyServerSideEncryptionByDefault", "BucketKeyEnabled"])?;
        let default = rule.required("ApplyServerSideEncryptionByDefault")?;
        default.only(&["KMSMasterKeyID", "SSEAlgorithm"])?;
        Ok(Self {
            algorithm: default.required("SSEAlgorithm")?.word()?.to_owned(),
            key: default.word_of("KMSMasterKeyID")?.map(str::to_owned),
            has_bucket_key: rule.flag_of("BucketKeyEnabled")?,
        })
    }

    fn write(&self, xml: &mut Xml) {
        xml.group("Rule", |xml| {
            xml.group("ApplyServerSideEncryptionByDefault", |xml| {
                xml.optional("KMSMasterKeyID", self.key.as_ref());
                xml.element("SSEAlgorithm", &self.algorithm);
            });
            xml.optional("BucketKeyEnabled", self.has_bucket_key);
        });
    }
}

/// Returns the key for a new object in the bucket; `None` if the object is not encrypted.
pub(crate) fn master_for(
    store: &Pool,
    keys: Option<&EncryptionKeys>,
    bucket: &str,
    wanted: RequestedEncryption,
) -> S3Result<Option<Master>> {
    match wanted {
        RequestedEncryption::Customer(key) => Ok(Some(Master::Customer(key))),
        RequestedEncryption::Operator => Master::operator_key(keys).map(Some),
        RequestedEncryption::Named(name) => Master::named(keys, &name).map(Some),
        RequestedEncryption::Default => match store.bucket_settings(bucket) {
            Ok(settings) => parse(&settings, bucket, DEFAULT)?
                .map(|default| master_of_default(keys, &default))
                .transpose(),
            // A server without encryption keys has accepted no default encryption.
            Err(Error::Damaged { .. }) if keys.is_none() => Ok(None),
            Err(error) => Err(from_store(error)),
        },
    }
}

/// Returns the key for new objects in a bucket with this default.
///
/// # Errors
/// If the server does not support the encryption, or lacks the key.
pub(crate) fn master_of_default(
    keys: Option<&EncryptionKeys>,
    document: &ServerSideEncryptionConfiguration,
) -> S3Result<Master> {
    match (document.algorithm.as_str(), &document.key) {
        (AES256, None) => Master::operator_key(keys),
        (AES256, Some(_)) => {
            let message = format!("{AES256} has no KMSMasterKeyID");
            Err(refuse(S3ErrorCode::InvalidArgument, message))
        }
        (KMS, Some(id)) => Master::named(keys, key_name(id)),
        (KMS, None) => {
            let message = format!("{KMS} needs a KMSMasterKeyID: there is no default key");
            Err(refuse(S3ErrorCode::InvalidArgument, message))
        }
        (other, _) => Err(unsupported(other)),
    }
}

/// Returns the algorithm in a bucket's default encryption, and the key's ID, if it has one.
pub(crate) fn algorithm_and_key(
    store: &Pool,
    bucket: &str,
) -> S3Result<Option<(String, Option<String>)>> {
    let settings = store.bucket_settings(bucket).map_err(from_store)?;
    let found: Option<ServerSideEncryptionConfiguration> = parse(&settings, bucket, DEFAULT)?;
    Ok(found.map(|default| (default.algorithm, default.key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encryption::operator::EncryptionKey;

    /// Returns a rule with this algorithm and key.
    fn rule(algorithm: &str, key: Option<&str>) -> String {
        let key = key.map(|key| format!("<KMSMasterKeyID>{key}</KMSMasterKeyID>"));
        format!(
            "<Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>{algorithm}</SSEAlgorithm>{}\
             </ApplyServerSideEncryptionByDefault></Rule>",
            key.unwrap_or_default()
        )
    }

    fn parse(rules: &str) -> S3Result<ServerSideEncryptionConfiguration> {
        let root = ServerSideEncryptionConfiguration::ROOT;
        ServerSideEncryptionConfiguration::parse(format!("<{root}>{rules}</{root}>").as_bytes())
    }

    #[test]
    fn default_is_one_rule_with_a_key_of_the_server() {
        let key = || EncryptionKey::generate().unwrap();
        let text = key().to_text() + &key().with_name("x").unwrap().to_text();
        let keys = EncryptionKeys::parse(&text).unwrap();
        for (rules, code) in [
            (rule("AES256", None), None),
            (rule("\n AES256 \n", None), None),
            (rule("aws:kms", Some("x")), None),
            (String::new(), Some("MalformedXML")),
            (rule("AES256", None).repeat(2), Some("MalformedXML")),
            ("<Rule/>".to_owned(), Some("MalformedXML")),
            (rule("AES256", None).replace("SSEAlgorithm", "Algorithm"), Some("MalformedXML")),
            (rule("AES128", None), Some("InvalidArgument")),
            (rule("AES256", Some("x")), Some("InvalidArgument")),
            (rule("aws:kms", None), Some("InvalidArgument")),
            (rule("aws:kms", Some("y")), Some("KMS.NotFoundException")),
            (rule("aws:kms:dsse", Some("x")), Some("NotImplemented")),
            (rule("AES256", None).replace("</Rule>", BLOCKED), Some("NotImplemented")),
        ] {
            let master = |keys| master_of_default(keys, &parse(&rules)?);
            let refused = master(Some(&keys)).err();
            assert_eq!(refused.as_ref().map(|error| error.code().as_str()), code, "{rules}");
            assert!(master(None).is_err());
        }
    }

    const BLOCKED: &str = "<BlockedEncryptionTypes><EncryptionType>SSE-C</EncryptionType>\
                           </BlockedEncryptionTypes></Rule>";

    #[test]
    fn default_survives_a_round_trip() {
        let with_bucket_key = "<BucketKeyEnabled>true</BucketKeyEnabled></Rule>";
        for rules in [
            rule("AES256", None),
            rule("aws:kms", Some("alias/x")).replace("</Rule>", with_bucket_key),
        ] {
            let document = parse(&rules).unwrap();
            let again = ServerSideEncryptionConfiguration::parse(document.text().as_bytes());
            assert_eq!(again.unwrap(), document, "{rules}");
        }
    }
}
