//! The locks of objects and versions: retention periods and legal holds.

use std::time::SystemTime;

use haul_file_store::{Attributes, ObjectLock, Retention, RetentionMode, Store, VersionId};
use s3s::dto::{
    GetObjectLegalHoldInput, GetObjectLegalHoldOutput, GetObjectRetentionInput,
    GetObjectRetentionOutput, ObjectLockLegalHold, ObjectLockLegalHoldStatus, ObjectLockMode,
    ObjectLockRetention, ObjectLockRetentionMode, PutObjectLegalHoldInput,
    PutObjectLegalHoldOutput, PutObjectRetentionInput, PutObjectRetentionOutput, Timestamp,
};
use s3s::{S3ErrorCode, S3Request, S3Result};
use time::OffsetDateTime;

use crate::access::action::Action;
use crate::access::caller::{Caller, Decision};
use crate::access::rights::Right;
use crate::errors::{check_key, from_store, refuse};
use crate::objects::versions;
use crate::service::Haul;
use crate::times::{timestamp, utc};

const ON: &str = ObjectLockLegalHoldStatus::ON;
const OFF: &str = ObjectLockLegalHoldStatus::OFF;

/// The headers of a write that lock the new object.
#[derive(Debug, Default)]
pub(crate) struct LockHeaders {
    pub(crate) mode: Option<ObjectLockMode>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) legal_hold: Option<ObjectLockLegalHoldStatus>,
}

/// Takes the headers of a lock out of the input of a write.
macro_rules! lock_headers {
    ($input:expr) => {
        $crate::objects::lock::LockHeaders {
            mode: $input.object_lock_mode.take(),
            until: $input.object_lock_retain_until_date.take(),
            legal_hold: $input.object_lock_legal_hold_status.take(),
        }
    };
}
pub(crate) use lock_headers;

impl LockHeaders {
    /// Returns the lock of an object that is stored in a bucket.
    ///
    /// # Errors
    /// If the headers are invalid, if the bucket has no object lock, or if the client may not lock
    /// objects: neither the policy nor the list of a bucket that allow to store objects suffice.
    pub(crate) fn into_lock(
        self,
        store: &Store,
        caller: &Caller,
        (bucket, key): (&str, &str),
    ) -> S3Result<ObjectLock> {
        let invalid = |message: &str| Err(refuse(S3ErrorCode::InvalidArgument, message));
        let retention = match (self.mode, self.until) {
            (None, None) => None,
            (Some(mode), Some(until)) => match mode_of(mode.as_str()) {
                Some(mode) => Some(Retention { mode, until: in_future(&until)? }),
                None => return invalid("Unknown wormMode directive"),
            },
            _ => {
                return invalid(
                    "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be \
                     supplied",
                );
            }
        };
        let legal_hold = match self.legal_hold.as_ref().map(ObjectLockLegalHoldStatus::as_str) {
            None => None,
            Some(ON) => Some(true),
            Some(OFF) => Some(false),
            Some(_) => return invalid("Legal Hold must be either of 'ON' or 'OFF'"),
        };
        let lock = ObjectLock { retention, legal_hold };
        if lock != ObjectLock::default() {
            check_enabled(store, bucket)?;
        }
        let operations = [
            lock.retention.map(|_retention| "PutObjectRetention"),
            lock.legal_hold.map(|_is_on| "PutObjectLegalHold"),
        ];
        for operation in operations.into_iter().flatten() {
            let write = Action::Use(Right::Write);
            caller.check_without_lists(store, (operation, write), (bucket, key))?;
        }
        Ok(lock)
    }
}

pub(crate) async fn put_object_retention(
    haul: &Haul,
    request: S3Request<PutObjectRetentionInput>,
) -> S3Result<PutObjectRetentionOutput> {
    let caller = Caller::of(&request.extensions);
    let PutObjectRetentionInput {
        bucket,
        key,
        version_id,
        retention,
        bypass_governance_retention,
        ..
    } = request.input;
    check_key(&key)?;
    let version = versions::parse(version_id.as_deref())?;
    let retention = retention.map(retention_of).transpose()?.flatten();
    haul.blocking(move |store| {
        check_enabled(store, &bucket)?;
        let bypass = may_bypass(&caller, store, (&bucket, &key), bypass_governance_retention)?;
        let set = store.set_retention(&bucket, &key, version, retention, bypass);
        set.map(drop).map_err(|error| versions::refused(store, &bucket, &key, error))
    })
    .await?;
    Ok(PutObjectRetentionOutput::default())
}

pub(crate) async fn get_object_retention(
    haul: &Haul,
    request: S3Request<GetObjectRetentionInput>,
) -> S3Result<GetObjectRetentionOutput> {
    let GetObjectRetentionInput { bucket, key, version_id, .. } = request.input;
    let version = versions::parse(version_id.as_deref())?;
    let lock = haul.blocking(move |store| lock_of(store, &bucket, &key, version)).await?;
    let Some(Retention { mode, until }) = lock.retention else { return Err(no_lock()) };
    let retention = Some(ObjectLockRetention {
        mode: Some(ObjectLockRetentionMode::from_static(mode_name(mode))),
        retain_until_date: Some(timestamp(until)),
    });
    Ok(GetObjectRetentionOutput { retention })
}

pub(crate) async fn put_object_legal_hold(
    haul: &Haul,
    request: S3Request<PutObjectLegalHoldInput>,
) -> S3Result<PutObjectLegalHoldOutput> {
    let caller = Caller::of(&request.extensions);
    let PutObjectLegalHoldInput { bucket, key, version_id, legal_hold, .. } = request.input;
    check_key(&key)?;
    let version = versions::parse(version_id.as_deref())?;
    let status = legal_hold.and_then(|hold| hold.status);
    let is_on = match status.as_ref().map(ObjectLockLegalHoldStatus::as_str) {
        Some(ON) => true,
        Some(OFF) => false,
        _ => return Err(refuse(S3ErrorCode::MalformedXML, "The Status must be ON or OFF")),
    };
    haul.blocking(move |store| {
        if !is_on {
            // A client that may store objects may protect them; another right lifts the protection.
            let lift = Action::Use(Right::Admin);
            caller.check(store, "PutObjectLegalHold", lift, (&bucket, &key))?;
        }
        check_enabled(store, &bucket)?;
        let set = store.set_legal_hold(&bucket, &key, version, is_on);
        set.map(drop).map_err(|error| versions::refused(store, &bucket, &key, error))
    })
    .await?;
    Ok(PutObjectLegalHoldOutput::default())
}

pub(crate) async fn get_object_legal_hold(
    haul: &Haul,
    request: S3Request<GetObjectLegalHoldInput>,
) -> S3Result<GetObjectLegalHoldOutput> {
    let GetObjectLegalHoldInput { bucket, key, version_id, .. } = request.input;
    let version = versions::parse(version_id.as_deref())?;
    let lock = haul.blocking(move |store| lock_of(store, &bucket, &key, version)).await?;
    let is_on = lock.legal_hold.ok_or_else(no_lock)?;
    let status = Some(hold_status(is_on));
    Ok(GetObjectLegalHoldOutput { legal_hold: Some(ObjectLockLegalHold { status }) })
}

/// Returns `true` if a request may remove versions that are retained in governance mode: if it has
/// the header for it, and its client has the right.
pub(crate) fn may_bypass(
    caller: &Caller,
    store: &Store,
    (bucket, key): (&str, &str),
    is_requested: Option<bool>,
) -> S3Result<bool> {
    if is_requested != Some(true) {
        return Ok(false);
    }
    let (operation, action) = ("BypassGovernanceRetention", Action::Use(Right::Admin));
    let decision = caller.decide_without_lists(store, operation, action, (bucket, key))?;
    Ok(matches!(decision, Some(Decision::Allowed(_))))
}

/// The lock of an object in the headers of a response.
pub(crate) struct ShownLock {
    pub(crate) mode: Option<ObjectLockMode>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) legal_hold: Option<ObjectLockLegalHoldStatus>,
}

/// Returns the headers for the lock of an object. A lock that this version cannot interpret has
/// none; it protects the version nevertheless.
pub(crate) fn shown(attributes: &Attributes) -> ShownLock {
    let ObjectLock { retention, legal_hold } = ObjectLock::of(attributes).unwrap_or_default();
    ShownLock {
        mode: retention.map(|it| ObjectLockMode::from_static(mode_name(it.mode))),
        until: retention.map(|it| timestamp(it.until)),
        legal_hold: legal_hold.map(hold_status),
    }
}

/// Parses a mode in a request.
pub(crate) fn mode_of(text: &str) -> Option<RetentionMode> {
    match text {
        ObjectLockMode::GOVERNANCE => Some(RetentionMode::Governance),
        ObjectLockMode::COMPLIANCE => Some(RetentionMode::Compliance),
        _ => None,
    }
}

/// Returns the name of a mode in S3.
pub(crate) fn mode_name(mode: RetentionMode) -> &'static str {
    match mode {
        RetentionMode::Governance => ObjectLockMode::GOVERNANCE,
        RetentionMode::Compliance => ObjectLockMode::COMPLIANCE,
    }
}

fn hold_status(is_on: bool) -> ObjectLockLegalHoldStatus {
    ObjectLockLegalHoldStatus::from_static(if is_on { ON } else { OFF })
}

/// Returns the retention in the body of a request; `None` for an empty one, which removes it.
fn retention_of(retention: ObjectLockRetention) -> S3Result<Option<Retention>> {
    let ObjectLockRetention { mode, retain_until_date } = retention;
    let mode_of = |mode: &ObjectLockRetentionMode| mode_of(mode.as_str());
    match (mode, retain_until_date) {
        (None, None) => Ok(None),
        (Some(mode), Some(until)) if mode_of(&mode).is_some() => {
            let until = in_future(&until)?;
            Ok(mode_of(&mode).map(|mode| Retention { mode, until }))
        }
        _ => {
            let message =
                "A retention needs the Mode GOVERNANCE or COMPLIANCE, and a RetainUntilDate";
            Err(refuse(S3ErrorCode::MalformedXML, message))
        }
    }
}

fn in_future(until: &Timestamp) -> S3Result<SystemTime> {
    let Some(until) = utc(until) else {
        let message = "The retain until date must be before the year 10000";
        return Err(refuse(S3ErrorCode::InvalidArgument, message));
    };
    if until <= OffsetDateTime::now_utc() {
        let message = "The retain until date must be in the future!";
        return Err(refuse(S3ErrorCode::InvalidArgument, message));
    }
    Ok(SystemTime::from(until))
}

/// Fails if the bucket does not exist, or has no object lock.
fn check_enabled(store: &Store, bucket: &str) -> S3Result<()> {
    match store.has_object_lock(bucket).map_err(from_store)? {
        true => Ok(()),
        false => {
            Err(from_store(haul_file_store::Error::NoObjectLock { bucket: bucket.to_owned() }))
        }
    }
}

fn lock_of(
    store: &Store,
    bucket: &str,
    key: &str,
    version: Option<VersionId>,
) -> S3Result<ObjectLock> {
    check_enabled(store, bucket)?;
    let object = versions::head(store, bucket, key, version)?;
    ObjectLock::of(&object.attributes).map_err(from_store)
}

fn no_lock() -> s3s::S3Error {
    let message = "The object has no such object lock configuration";
    let mut error = refuse(S3ErrorCode::NoSuchObjectLockConfiguration, message);
    error.set_status_code(hyper::StatusCode::NOT_FOUND);
    error
}
