//! The object lock configuration of buckets.

use haul_file_store::{DefaultRetention, RetentionPeriod, Store};
use s3s::dto::{
    self, GetObjectLockConfigurationInput, GetObjectLockConfigurationOutput,
    ObjectLockConfiguration, ObjectLockEnabled, ObjectLockRetentionMode, ObjectLockRule,
    PutObjectLockConfigurationInput, PutObjectLockConfigurationOutput,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::buckets::documents::absent;
use crate::errors::{from_store, invalid_retention_period, refuse};
use crate::objects::lock::{mode_name, mode_of};
use crate::service::Haul;

/// The longest default retention, as in S3.
const YEARS_MAX: u32 = 100;
const DAYS_MAX: u32 = 36_500;

pub(crate) async fn put_object_lock_configuration(
    haul: &Haul,
    request: S3Request<PutObjectLockConfigurationInput>,
) -> S3Result<PutObjectLockConfigurationOutput> {
    let PutObjectLockConfigurationInput { bucket, object_lock_configuration, .. } = request.input;
    let default = default_retention(object_lock_configuration.unwrap_or_default())?;
    let set = move |store: &Store| {
        store.enable_object_lock(&bucket).map_err(from_store)?;
        store.set_default_retention(&bucket, default).map_err(from_store)
    };
    haul.blocking(set).await?;
    Ok(PutObjectLockConfigurationOutput::default())
}

pub(crate) async fn get_object_lock_configuration(
    haul: &Haul,
    request: S3Request<GetObjectLockConfigurationInput>,
) -> S3Result<GetObjectLockConfigurationOutput> {
    let bucket = request.input.bucket;
    let get = move |store: &Store| {
        if !store.has_object_lock(&bucket).map_err(from_store)? {
            return Err(absent("ObjectLockConfigurationNotFoundError"));
        }
        store.default_retention(&bucket).map_err(from_store)
    };
    let rule = haul.blocking(get).await?.map(rule);
    let object_lock_enabled = Some(ObjectLockEnabled::from_static(ObjectLockEnabled::ENABLED));
    let configuration = ObjectLockConfiguration { object_lock_enabled, rule };
    Ok(GetObjectLockConfigurationOutput { object_lock_configuration: Some(configuration) })
}

fn rule(default: DefaultRetention) -> ObjectLockRule {
    let (days, years) = match default.period {
        RetentionPeriod::Days(days) => (Some(days), None),
        RetentionPeriod::Years(years) => (None, Some(years)),
    };
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let default_retention = Some(dto::DefaultRetention {
        days: days.map(number),
        mode: Some(ObjectLockRetentionMode::from_static(mode_name(default.mode))),
        years: years.map(number),
    });
    ObjectLockRule { default_retention }
}

/// Returns the default retention in a configuration, which need not have one.
fn default_retention(configuration: ObjectLockConfiguration) -> S3Result<Option<DefaultRetention>> {
    let malformed = |message: &str| Err(refuse(S3ErrorCode::MalformedXML, message));
    let enabled = configuration.object_lock_enabled;
    if enabled.as_ref().map(ObjectLockEnabled::as_str) != Some(ObjectLockEnabled::ENABLED) {
        return malformed("ObjectLockEnabled must be Enabled");
    }
    let Some(rule) = configuration.rule else { return Ok(None) };
    let Some(retention) = rule.default_retention else {
        return malformed("The Rule must have a DefaultRetention");
    };
    let mode = retention.mode.as_ref().and_then(|mode| mode_of(mode.as_str()));
    let Some(mode) = mode else {
        return malformed("The Mode must be GOVERNANCE or COMPLIANCE");
    };
    let period = match (retention.days, retention.years) {
        (Some(days), None) => RetentionPeriod::Days(period(days, DAYS_MAX)?),
        (None, Some(years)) => RetentionPeriod::Years(period(years, YEARS_MAX)?),
        _ => return malformed("A DefaultRetention must have either Days or Years"),
    };
    Ok(Some(DefaultRetention { mode, period }))
}

fn period(number: i32, max: u32) -> S3Result<u32> {
    let number = u32::try_from(number).ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(invalid_retention_period)
}
