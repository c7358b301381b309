//! The logging configuration of a bucket.

use std::borrow::Cow;

use haul_file_store::Attributes;
use haul_store_pool::Pool;
use time::OffsetDateTime;

use crate::acl::owner::ADMINISTRATOR;
use crate::errors::S3Result;
use crate::policy::condition::{Facts, Key};
use crate::settings::{LOGGING, OWNER, parse};
use crate::xml::Document;
use crate::xml::reader::{Element, malformed};
use crate::xml::writer::Xml;

/// The values of `PartitionDateSource`.
const EVENT_TIME: &str = "EventTime";
const DELIVERY_TIME: &str = "DeliveryTime";

/// The destination of a bucket's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogTarget {
    pub(crate) bucket: String,
    pub(crate) prefix: String,
    pub(crate) format: KeyFormat,
}

/// The format of log object keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum KeyFormat {
    /// The delivery time after the prefix.
    Simple,
    /// Folders for the owner, the region, the bucket and the requests' day.
    ByEvent,
    /// Folders for the owner, the region, the bucket and the delivery day.
    ByDelivery,
}

/// A bucket with logging.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    pub(crate) bucket: String,
    pub(crate) owner: String,
}

impl LogTarget {
    /// Returns a bucket's log target; `None` if the bucket has no logging.
    ///
    /// # Errors
    /// If the setting is malformed.
    pub(crate) fn from_settings(settings: &Attributes, bucket: &str) -> S3Result<Option<Self>> {
        let status: Option<BucketLoggingStatus> = parse(settings, bucket, LOGGING)?;
        Ok(status.and_then(|status| status.target))
    }
}

/// A bucket's access log configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BucketLoggingStatus {
    /// `None` for a bucket without an access log.
    pub(crate) target: Option<LogTarget>,
}

impl Document for BucketLoggingStatus {
    const ROOT: &'static str = "BucketLoggingStatus";

    fn read(root: &Element) -> S3Result<Self> {
        let enabled = root.only(&["LoggingEnabled"])?.child("LoggingEnabled")?;
        Ok(Self { target: enabled.map(read_target).transpose()? })
    }

    /// Writes no grants: the target bucket's owner owns the records.
    fn write(&self, xml: &mut Xml) {
        let Some(LogTarget { bucket, prefix, format }) = &self.target else { return };
        let source = match format {
            KeyFormat::Simple => None,
            KeyFormat::ByEvent => Some(EVENT_TIME),
            KeyFormat::ByDelivery => Some(DELIVERY_TIME),
        };
        xml.group("LoggingEnabled", |xml| {
            xml.element("TargetBucket", bucket);
            xml.group("TargetObjectKeyFormat", |xml| match source {
                Some(source) => xml.group("PartitionedPrefix", |xml| {
                    xml.element("PartitionDateSource", source);
                }),
                None => xml.group("SimplePrefix", |_xml| {}),
            });
            xml.element("TargetPrefix", prefix);
        });
    }
}

/// Reads a `LoggingEnabled` element. Its grants have no effect.
fn read_target(enabled: &Element) -> S3Result<LogTarget> {
    enabled.only(&["TargetBucket", "TargetGrants", "TargetObjectKeyFormat", "TargetPrefix"])?;
    let wanted = enabled.child("TargetObjectKeyFormat")?;
    Ok(LogTarget {
        bucket: enabled.required("TargetBucket")?.word()?.to_owned(),
        prefix: enabled.required("TargetPrefix")?.text()?.to_owned(),
        format: wanted.map_or(Ok(KeyFormat::Simple), read_format)?,
    })
}

fn read_format(wanted: &Element) -> S3Result<KeyFormat> {
    wanted.only(&["PartitionedPrefix", "SimplePrefix"])?;
    let simple = wanted.child("SimplePrefix")?.map(|simple| simple.only(&[])).transpose()?;
    let Some(partitioned) = wanted.child("PartitionedPrefix")? else {
        return Ok(KeyFormat::Simple);
    };
    if simple.is_some() {
        return Err(malformed("<TargetObjectKeyFormat> has one format of keys"));
    }
    match partitioned.only(&["PartitionDateSource"])?.word_of("PartitionDateSource")? {
        Some(EVENT_TIME) => Ok(KeyFormat::ByEvent),
        Some(DELIVERY_TIME) | None => Ok(KeyFormat::ByDelivery),
        Some(_) => Err(malformed("<PartitionDateSource> must be EventTime or DeliveryTime")),
    }
}

impl Source {
    pub(crate) fn new(bucket: &str, settings: &Attributes) -> Self {
        let owner = settings.get(OWNER).unwrap_or(ADMINISTRATOR).to_owned();
        Self { bucket: bucket.to_owned(), owner }
    }
}

/// The properties of a delivery, as compared by policy conditions.
impl Facts for Source {
    fn value(&self, key: &Key) -> Option<Cow<'_, str>> {
        match key {
            Key::SourceArn => Some(format!("arn:aws:s3:::{}", self.bucket).into()),
            Key::SourceAccount => Some(Cow::Borrowed(&self.owner)),
            // A delivery does not leave the server, so no connection is unencrypted.
            Key::SecureTransport => Some("true".into()),
            Key::Time => Some(OffsetDateTime::now_utc().unix_timestamp().to_string().into()),
            _ => None,
        }
    }
}

/// Returns a bucket and its log target; `None` for a bucket without logging. A bucket that is
/// corrupt or has a malformed configuration is treated as a bucket without logging, so that no
/// request fails.
pub(crate) fn logging_of(store: &Pool, bucket: &str) -> Option<(Source, LogTarget)> {
    let settings = store.bucket_settings(bucket).ok()?;
    // Most buckets have no logging: they cost only this test.
    settings.get(LOGGING)?;
    let target = LogTarget::from_settings(&settings, bucket).ok()??;
    Some((Source::new(bucket, &settings), target))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(enabled: &str) -> S3Result<Option<LogTarget>> {
        let text = format!("<BucketLoggingStatus>{enabled}</BucketLoggingStatus>");
        BucketLoggingStatus::parse(text.as_bytes()).map(|status| status.target)
    }

    /// Returns a document with this key format.
    fn enabled(format: &str) -> String {
        format!(
            "<LoggingEnabled><TargetBucket> logs </TargetBucket><TargetPrefix> a/ </TargetPrefix>\
             {format}</LoggingEnabled>"
        )
    }

    fn date(source: &str) -> String {
        format!(
            "<TargetObjectKeyFormat><PartitionedPrefix>{source}</PartitionedPrefix>\
             </TargetObjectKeyFormat>"
        )
    }

    #[test]
    fn target_survives_a_round_trip() {
        for (form, format) in [
            (String::new(), KeyFormat::Simple),
            ("<TargetObjectKeyFormat/>".to_owned(), KeyFormat::Simple),
            (
                "<TargetObjectKeyFormat><SimplePrefix/></TargetObjectKeyFormat>".to_owned(),
                KeyFormat::Simple,
            ),
            (date(""), KeyFormat::ByDelivery),
            (date("<PartitionDateSource>\nEventTime\n</PartitionDateSource>"), KeyFormat::ByEvent),
            (format!("<TargetGrants><Grant/></TargetGrants>{}", date("")), KeyFormat::ByDelivery),
        ] {
            let target = parse(&enabled(&form)).unwrap();
            let (bucket, prefix) = ("logs".to_owned(), " a/ ".to_owned());
            assert_eq!(target, Some(LogTarget { bucket, prefix, format }), "{form}");
            let status = BucketLoggingStatus { target };
            let again = BucketLoggingStatus::parse(status.text().as_bytes()).unwrap();
            assert_eq!(again, status, "{form}");
        }
        assert_eq!(parse("").unwrap(), None);
    }

    #[test]
    fn malformed_targets_are_refused() {
        for document in [
            "<LoggingEnabled/>".to_owned(),
            enabled("").repeat(2),
            enabled("<Other/>"),
            enabled("<TargetPrefix>b</TargetPrefix>"),
            enabled(&date("<PartitionDateSource>Noon</PartitionDateSource>")),
            enabled(&date("").replace("</Target", "<SimplePrefix/></Target")),
            enabled("").replace("TargetPrefix", "Prefix"),
        ] {
            let code = parse(&document).unwrap_err().code();
            assert_eq!(code.as_str(), "MalformedXML", "{document}");
        }
    }
}
