//! The encryption that a bucket has for new objects by default.

use s3s::dto::{
    DeleteBucketEncryptionInput, DeleteBucketEncryptionOutput, GetBucketEncryptionInput,
    GetBucketEncryptionOutput, PutBucketEncryptionInput, PutBucketEncryptionOutput,
    ServerSideEncryption, ServerSideEncryptionConfiguration,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::buckets::documents::absent;
use crate::buckets::settings::{encode, load, set};
use crate::encryption::default::DEFAULT;
use crate::encryption::master::Master;
use crate::errors::refuse;
use crate::service::Haul;

pub(crate) async fn put_bucket_encryption(
    haul: &Haul,
    request: S3Request<PutBucketEncryptionInput>,
) -> S3Result<PutBucketEncryptionOutput> {
    let input = request.input;
    let (bucket, document) = (input.bucket, input.server_side_encryption_configuration);
    check(&document)?;
    // Without keys, every PUT to the bucket would fail.
    Master::of_operator(haul.encryption().as_deref())?;
    let text = encode(&document)?;
    haul.blocking(move |store| set(store, &bucket, DEFAULT, Some(&text))).await?;
    Ok(PutBucketEncryptionOutput::default())
}

pub(crate) async fn get_bucket_encryption(
    haul: &Haul,
    request: S3Request<GetBucketEncryptionInput>,
) -> S3Result<GetBucketEncryptionOutput> {
    let bucket = request.input.bucket;
    let found = haul.blocking(move |store| load(store, &bucket, DEFAULT)).await?;
    let found: ServerSideEncryptionConfiguration =
        found.ok_or_else(|| absent("ServerSideEncryptionConfigurationNotFoundError"))?;
    Ok(GetBucketEncryptionOutput { server_side_encryption_configuration: Some(found) })
}

pub(crate) async fn delete_bucket_encryption(
    haul: &Haul,
    request: S3Request<DeleteBucketEncryptionInput>,
) -> S3Result<DeleteBucketEncryptionOutput> {
    let bucket = request.input.bucket;
    haul.blocking(move |store| set(store, &bucket, DEFAULT, None)).await?;
    Ok(DeleteBucketEncryptionOutput::default())
}

fn check(document: &ServerSideEncryptionConfiguration) -> S3Result<()> {
    let [rule] = document.rules.as_slice() else {
        return Err(refuse(S3ErrorCode::MalformedXML, "Expected one rule"));
    };
    let Some(default) = &rule.apply_server_side_encryption_by_default else {
        let message = "The rule needs an ApplyServerSideEncryptionByDefault";
        return Err(refuse(S3ErrorCode::MalformedXML, message));
    };
    match default.sse_algorithm.as_str() {
        ServerSideEncryption::AES256 if default.kms_master_key_id.is_none() => Ok(()),
        ServerSideEncryption::AES256 => {
            let message = "AES256 has no KMSMasterKeyID";
            Err(refuse(S3ErrorCode::InvalidArgument, message))
        }
        ServerSideEncryption::AWS_KMS | ServerSideEncryption::AWS_KMS_DSSE => {
            let message = "There is no key management service: use AES256";
            Err(refuse(S3ErrorCode::NotImplemented, message))
        }
        other => {
            let message = format!("Unknown SSEAlgorithm: {other}");
            Err(refuse(S3ErrorCode::MalformedXML, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use s3s::dto::{ServerSideEncryptionByDefault, ServerSideEncryptionRule};

    use super::*;

    #[test]
    fn default_is_one_rule_with_aes256() {
        let rule = |algorithm: &'static str, key: Option<&str>| ServerSideEncryptionRule {
            apply_server_side_encryption_by_default: Some(ServerSideEncryptionByDefault {
                kms_master_key_id: key.map(str::to_owned),
                sse_algorithm: ServerSideEncryption::from_static(algorithm),
            }),
            ..ServerSideEncryptionRule::default()
        };
        for (rules, code) in [
            (vec![rule("AES256", None)], None),
            (vec![], Some("MalformedXML")),
            (vec![rule("AES256", None), rule("AES256", None)], Some("MalformedXML")),
            (vec![ServerSideEncryptionRule::default()], Some("MalformedXML")),
            (vec![rule("AES128", None)], Some("MalformedXML")),
            (vec![rule("AES256", Some("x"))], Some("InvalidArgument")),
            (vec![rule("aws:kms", Some("x"))], Some("NotImplemented")),
        ] {
            let outcome = check(&ServerSideEncryptionConfiguration { rules });
            let refused = outcome.err().map(|error| error.code().as_str().to_owned());
            assert_eq!(refused.as_deref(), code);
        }
    }
}
