//! The configuration of a bucket with logging.

use std::borrow::Cow;

use haul_file_store::{Attributes, Store};
use s3s::dto::{BucketLoggingStatus, LoggingEnabled, PartitionDateSource};
use s3s::{S3ErrorCode, S3Result};
use time::OffsetDateTime;

use crate::access::keys::key::ADMINISTRATOR;
use crate::buckets::settings::{LOGGING, OWNER, parse};
use crate::errors::refuse;
use crate::policy::condition::{Facts, Key};

/// The destination of the records of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogTarget {
    pub(crate) bucket: String,
    pub(crate) prefix: String,
    pub(crate) format: KeyFormat,
}

/// The format of the keys of objects with records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum KeyFormat {
    /// The time of the delivery after the prefix.
    Simple,
    /// A folder for the owner, the region, the bucket and the day of the requests.
    ByEvent,
    /// A folder for the owner, the region, the bucket and the day of the delivery.
    ByDelivery,
}

/// A bucket with logging.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    pub(crate) bucket: String,
    pub(crate) owner: String,
}

impl LogTarget {
    /// Returns the target of a bucket; `None` if it has no logging.
    ///
    /// # Errors
    /// If the setting is malformed.
    pub(crate) fn of_settings(settings: &Attributes, bucket: &str) -> S3Result<Option<Self>> {
        let status: Option<BucketLoggingStatus> = parse(settings, bucket, LOGGING)?;
        let enabled = status.and_then(|status| status.logging_enabled);
        enabled.map(|enabled| Self::of_document(&enabled)).transpose()
    }

    /// Returns the target in a document.
    ///
    /// # Errors
    /// `MalformedXML` for two formats of keys, and for an unknown source of the date.
    pub(crate) fn of_document(enabled: &LoggingEnabled) -> S3Result<Self> {
        let malformed = |message| Err(refuse(S3ErrorCode::MalformedXML, message));
        let wanted = enabled.target_object_key_format.as_ref();
        let partitioned = wanted.and_then(|format| format.partitioned_prefix.as_ref());
        let is_simple = wanted.is_some_and(|format| format.simple_prefix.is_some());
        let format = match partitioned {
            Some(_) if is_simple => {
                return malformed("A TargetObjectKeyFormat has one format of keys");
            }
            Some(prefix) => match prefix.partition_date_source.as_ref().map(|date| date.as_str()) {
                Some(PartitionDateSource::EVENT_TIME) => KeyFormat::ByEvent,
                Some(PartitionDateSource::DELIVERY_TIME) | None => KeyFormat::ByDelivery,
                Some(_) => {
                    return malformed("PartitionDateSource must be EventTime or DeliveryTime");
                }
            },
            None => KeyFormat::Simple,
        };
        let (bucket, prefix) = (enabled.target_bucket.clone(), enabled.target_prefix.clone());
        Ok(Self { bucket, prefix, format })
    }
}

impl Source {
    /// Returns a bucket with these settings.
    pub(crate) fn new(bucket: &str, settings: &Attributes) -> Self {
        let owner = settings.get(OWNER).unwrap_or(ADMINISTRATOR).to_owned();
        Self { bucket: bucket.to_owned(), owner }
    }
}

/// The properties of a delivery, as policies see it.
impl Facts for Source {
    fn value(&self, key: &Key) -> Option<Cow<'_, str>> {
        match key {
            Key::SourceArn => Some(format!("arn:aws:s3:::{}", self.bucket).into()),
            Key::SourceAccount => Some(Cow::Borrowed(&self.owner)),
            // A delivery leaves the server on no connection.
            Key::SecureTransport => Some("true".into()),
            Key::Time => Some(OffsetDateTime::now_utc().unix_timestamp().to_string().into()),
            _ => None,
        }
    }
}

/// Returns a bucket and the target of its records; `None` for a bucket without logging. A malformed
/// configuration and a damaged bucket fail no request: they are those without logging.
pub(crate) fn logging_of(store: &Store, bucket: &str) -> Option<(Source, LogTarget)> {
    let settings = store.bucket_settings(bucket).ok()?;
    // Most buckets have no logging: they cost this test.
    settings.get(LOGGING)?;
    let target = LogTarget::of_settings(&settings, bucket).ok()??;
    Some((Source::new(bucket, &settings), target))
}
