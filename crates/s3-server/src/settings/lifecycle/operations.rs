//! The requests that read and change lifecycle rules, and the response headers about rules.

use std::time::SystemTime;

use form_urlencoded::byte_serialize;
use haul_file_store::{Attributes, Lifecycle, ObjectInfo};
use haul_store_pool::Pool;

use super::configuration::LifecycleConfiguration;
use super::{parse, render};
use crate::answer::Answer;
use crate::errors::{S3ErrorCode, S3Result, from_store, invalid_argument, refuse};
use crate::request::fields::Fields;
use crate::settings::{TRANSITION_SIZE, set};
use crate::times::header_time;

/// The minimum size of objects to which transitions apply, as named by S3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransitionSize {
    AllClasses128K,
    VariesByClass,
}

impl TransitionSize {
    /// The header with the minimum size.
    pub(crate) const HEADER: &str = "x-amz-transition-default-minimum-object-size";

    /// Reads the size that a request names; the default if it names none.
    pub(crate) fn from_fields(fields: &Fields) -> S3Result<Self> {
        let Some(text) = fields.given(Self::HEADER) else { return Ok(Self::AllClasses128K) };
        Self::from_name(text).ok_or_else(|| {
            let message = format!(
                "{} must be {} or {}",
                Self::HEADER,
                Self::AllClasses128K.name(),
                Self::VariesByClass.name()
            );
            invalid_argument(Self::HEADER, text, message)
        })
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::AllClasses128K, Self::VariesByClass].into_iter().find(|size| size.name() == name)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::AllClasses128K => "all_storage_classes_128K",
            Self::VariesByClass => "varies_by_storage_class",
        }
    }
}

/// Replaces the bucket's rules.
pub(crate) fn put(
    store: &Pool,
    bucket: &str,
    configuration: LifecycleConfiguration,
    transition_size: TransitionSize,
) -> S3Result<()> {
    store.bucket(bucket).map_err(from_store)?;
    let lifecycle = parse::lifecycle(configuration)?;
    store.set_lifecycle(bucket, &lifecycle).map_err(from_store)?;
    let kept = Some(transition_size).filter(|size| *size != TransitionSize::AllClasses128K);
    set(store, bucket, TRANSITION_SIZE, kept.map(TransitionSize::name))
}

/// Returns the bucket's rules. Fails if there are none.
pub(crate) fn get(
    store: &Pool,
    bucket: &str,
) -> S3Result<(LifecycleConfiguration, TransitionSize)> {
    let lifecycle = store.lifecycle(bucket).map_err(from_store)?;
    if lifecycle.rules.is_empty() {
        let message = "The lifecycle configuration does not exist";
        return Err(refuse(S3ErrorCode::NoSuchLifecycleConfiguration, message));
    }
    let settings = store.bucket_settings(bucket).map_err(from_store)?;
    let size = settings.get(TRANSITION_SIZE).and_then(TransitionSize::from_name);
    Ok((render::configuration(&lifecycle), size.unwrap_or(TransitionSize::AllClasses128K)))
}

pub(crate) fn delete(store: &Pool, bucket: &str) -> S3Result<()> {
    store.set_lifecycle(bucket, &Lifecycle::default()).map_err(from_store)?;
    set(store, bucket, TRANSITION_SIZE, None)
}

/// Adds to a response about an upload the time at which a rule aborts it, and this rule, if there
/// is one.
pub(crate) fn with_abortion(answer: Answer, abortion: Option<(SystemTime, String)>) -> Answer {
    let (at, rule) = abortion.unzip();
    answer.with_some("x-amz-abort-date", at.map(header_time)).with_some("x-amz-abort-rule-id", rule)
}

/// Returns the time at which a rule aborts an upload, and the rule's ID.
///
/// Returns `None` if the rules cannot be read, because sweeps do not apply them either.
pub(crate) fn abortion(
    store: &Pool,
    bucket: &str,
    key: &str,
    started: SystemTime,
) -> Option<(SystemTime, String)> {
    store.upload_expiration(bucket, key, started).ok()?
}

/// Returns the value of `x-amz-expiration` if a rule in the bucket expires an object with these
/// attributes. The first call for a bucket may read the bucket's rules from the disk.
///
/// Returns `None` if the rules cannot be read, because sweeps do not apply them either.
pub(crate) fn expiration(
    store: &Pool,
    bucket: &str,
    info: &ObjectInfo,
    attributes: &Attributes,
) -> Option<String> {
    let (at, rule) = store.expiration(bucket, info, attributes).ok()??;
    let date = header_time(at);
    let rule: String = byte_serialize(rule.as_bytes()).collect();
    Some(format!("expiry-date=\"{date}\", rule-id=\"{rule}\""))
}
