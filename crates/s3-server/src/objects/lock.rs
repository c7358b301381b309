//! Object locks: retention periods and legal holds.

use std::time::SystemTime;

use haul_file_store::{Attributes, Error, ObjectLock, Retention, RetentionMode};
use haul_store_pool::Pool;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::access::action::Action;
use crate::access::caller::Caller;
use crate::access::check::authorize_write;
use crate::access::decision::Decision;
use crate::access::facts::RequestedLock;
use crate::access::rights::Right;
use crate::answer::Answer;
use crate::body::Body;
use crate::body::digests::Claims;
use crate::body::receive::Receiver;
use crate::errors::{
    S3Error, S3ErrorCode, S3Result, check_key, from_store, invalid_argument, refuse,
};
use crate::request::fields::Fields;
use crate::request::name::ObjectName;
use crate::service::Haul;
use crate::service::request::Request;
use crate::stored::versions;
use crate::times::{document_time, parse_any, parse_time};
use crate::xml::Document;
use crate::xml::reader::{Element, malformed};
use crate::xml::writer::Xml;

const ON: &str = "ON";
const OFF: &str = "OFF";
const GOVERNANCE: &str = "GOVERNANCE";
const COMPLIANCE: &str = "COMPLIANCE";

const MODE: &str = "x-amz-object-lock-mode";
const UNTIL: &str = "x-amz-object-lock-retain-until-date";
const LEGAL_HOLD: &str = "x-amz-object-lock-legal-hold";

/// The headers of a write that lock the new object, as the client sent them.
#[derive(Debug, Default)]
pub(crate) struct LockHeaders {
    mode: Option<String>,
    until: Option<String>,
    legal_hold: Option<String>,
}

impl LockHeaders {
    /// Reads a request's headers.
    pub(crate) fn from_fields(fields: &Fields) -> Self {
        // A value that is not text is invalid: it is not dropped.
        let text = |name| fields.first(name).map(|it| String::from_utf8_lossy(it).into_owned());
        Self { mode: text(MODE), until: text(UNTIL), legal_hold: text(LEGAL_HOLD) }
    }

    /// Returns the lock for an object that is stored in a bucket.
    ///
    /// # Errors
    /// If the headers are invalid, if the bucket has no object lock, or if the client may not lock
    /// objects: a policy or a bucket ACL that only allows storing objects does not suffice.
    pub(crate) fn into_lock(
        self,
        store: &Pool,
        caller: &Caller,
        name: &ObjectName,
    ) -> S3Result<ObjectLock> {
        let lock = self.parse()?;
        if lock != ObjectLock::default() {
            check_enabled(store, &name.bucket)?;
        }
        let operations = [
            lock.retention.map(|_retention| "PutObjectRetention"),
            lock.legal_hold.map(|_is_on| "PutObjectLegalHold"),
        ];
        for operation in operations.into_iter().flatten() {
            let write = Action::Use(Right::Write);
            caller.check_without_acls(store, (operation, write), (&name.bucket, &name.key))?;
        }
        Ok(lock)
    }

    fn parse(self) -> S3Result<ObjectLock> {
        let retention = match (self.mode, self.until) {
            (None, None) => None,
            (Some(mode), Some(until)) => {
                let unknown = || invalid_argument(MODE, &mode, "Unknown wormMode directive");
                let mode = mode_of(&mode).ok_or_else(unknown)?;
                // Policies compare this form only.
                let time = parse_time(&until).ok_or_else(|| {
                    let message = "The retain until date must be provided in ISO 8601 format, and \
                                   be before the year 10000";
                    invalid_argument(UNTIL, &until, message)
                })?;
                Some(in_future(Retention { mode, until: SystemTime::from(time) })?)
            }
            _ => {
                let message = "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode \
                               must both be supplied";
                return Err(refuse(S3ErrorCode::InvalidArgument, message));
            }
        };
        let legal_hold = match self.legal_hold.as_deref() {
            None => None,
            Some(ON) => Some(true),
            Some(OFF) => Some(false),
            Some(other) => {
                let message = "Legal Hold must be either of 'ON' or 'OFF'";
                return Err(invalid_argument(LEGAL_HOLD, other, message));
            }
        };
        Ok(ObjectLock { retention, legal_hold })
    }
}

/// Returns the response with the headers for an object's lock. A lock that this server version
/// cannot interpret has no headers; it protects the object nevertheless.
pub(crate) fn add_headers(answer: Answer, attributes: &Attributes) -> Answer {
    let ObjectLock { retention, legal_hold } = ObjectLock::of(attributes).unwrap_or_default();
    answer
        .with_some(MODE, retention.map(|retention| mode_name(retention.mode)))
        .with_some(UNTIL, retention.map(|retention| exact_time(retention.until)))
        .with_some(LEGAL_HOLD, legal_hold.map(hold_status))
}

pub(crate) async fn put_object_retention(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    let name = request.name().clone();
    check_key(&name.key)?;
    let version = versions::parse(request.head.query.get(versions::PARAMETER))?;
    let claims = Claims::for_document(request)?;
    let document = Receiver::document(haul, request, body, claims).await?;
    let RetentionDocument(retention) = RetentionDocument::parse(&document)?;
    let lock = RequestedLock::from_retention(
        retention.map(|retention| mode_name(retention.mode)),
        retention.map(|retention| retention.until.into()),
    );
    let caller = request.caller().with_requested_lock(lock);
    let caller = authorize_write(&haul.shared_store(), caller, request.operation, &name).await?;
    let retention = retention.map(in_future).transpose()?;
    let bypasses = wants_bypass(&request.head.fields);
    haul.blocking(move |store| {
        check_enabled(store, &name.bucket)?;
        let bypass = bypasses && may_bypass(&caller, store, &name)?;
        let ObjectName { bucket, key } = &name;
        let set = store.set_retention(bucket, key, version, retention, bypass);
        set.map(drop).map_err(|error| versions::refused(store, bucket, key, error))
    })
    .await?;
    Ok(Answer::ok())
}

pub(crate) async fn get_object_retention(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let retention = lock_of(haul, request).await?.retention.ok_or_else(no_lock)?;
    Ok(Answer::xml(RetentionDocument(Some(retention)).text()))
}

pub(crate) async fn put_object_legal_hold(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    let name = request.name().clone();
    check_key(&name.key)?;
    let version = versions::parse(request.head.query.get(versions::PARAMETER))?;
    let claims = Claims::for_document(request)?;
    let document = Receiver::document(haul, request, body, claims).await?;
    let LegalHold { is_on } = LegalHold::parse(&document)?;
    let lock = RequestedLock::from_legal_hold(Some(hold_status(is_on)));
    let caller = request.caller().with_requested_lock(lock);
    let caller = authorize_write(&haul.shared_store(), caller, request.operation, &name).await?;
    haul.blocking(move |store| {
        let ObjectName { bucket, key } = &name;
        if !is_on {
            // A client that may store objects may protect them; to lift the protection needs
            // another right.
            let lift = Action::Use(Right::Admin);
            caller.check(store, "PutObjectLegalHold", lift, (bucket, key))?;
        }
        check_enabled(store, bucket)?;
        let set = store.set_legal_hold(bucket, key, version, is_on);
        set.map(drop).map_err(|error| versions::refused(store, bucket, key, error))
    })
    .await?;
    Ok(Answer::ok())
}

pub(crate) async fn get_object_legal_hold(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let is_on = lock_of(haul, request).await?.legal_hold.ok_or_else(no_lock)?;
    Ok(Answer::xml(LegalHold { is_on }.text()))
}

/// The header of a request that may remove versions retained in governance mode.
const BYPASS: &str = "x-amz-bypass-governance-retention";

/// Returns `true` if a request asks to remove versions retained in governance mode.
pub(crate) fn wants_bypass(fields: &Fields) -> bool {
    fields.text(BYPASS).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

/// Returns `true` if the client has the right to remove versions retained in governance mode.
pub(crate) fn may_bypass(caller: &Caller, store: &Pool, name: &ObjectName) -> S3Result<bool> {
    let (operation, action) = ("BypassGovernanceRetention", Action::Use(Right::Admin));
    let ObjectName { bucket, key } = name;
    let decision = caller.decide_without_lists(store, operation, action, (bucket, key))?;
    Ok(matches!(decision, Some(Decision::Allowed(_))))
}

/// Parses a retention mode in a request.
pub(crate) fn mode_of(text: &str) -> Option<RetentionMode> {
    match text {
        GOVERNANCE => Some(RetentionMode::Governance),
        COMPLIANCE => Some(RetentionMode::Compliance),
        _ => None,
    }
}

/// Returns a retention mode's S3 name.
pub(crate) fn mode_name(mode: RetentionMode) -> &'static str {
    match mode {
        RetentionMode::Governance => GOVERNANCE,
        RetentionMode::Compliance => COMPLIANCE,
    }
}

fn hold_status(is_on: bool) -> &'static str {
    if is_on { ON } else { OFF }
}

/// The document with a retention; an empty document removes the retention.
#[derive(Debug, PartialEq, Eq)]
struct RetentionDocument(Option<Retention>);

impl Document for RetentionDocument {
    const ROOT: &'static str = "Retention";

    fn read(root: &Element) -> S3Result<Self> {
        root.only(&["Mode", "RetainUntilDate"])?;
        match (root.word_of("Mode")?, root.word_of("RetainUntilDate")?) {
            (None, None) => Ok(Self(None)),
            (Some(mode), Some(until)) => {
                let unknown = || malformed("the Mode is neither GOVERNANCE nor COMPLIANCE");
                let mode = mode_of(mode).ok_or_else(unknown)?;
                let until = parse_any(until).ok_or_else(|| invalid_retention_date(until))?.into();
                Ok(Self(Some(Retention { mode, until })))
            }
            _ => Err(malformed("a Retention needs a Mode and a RetainUntilDate")),
        }
    }

    fn write(&self, xml: &mut Xml) {
        if let Self(Some(Retention { mode, until })) = self {
            xml.element("Mode", mode_name(*mode));
            xml.element("RetainUntilDate", exact_time(*until));
        }
    }
}

/// Returns the error for a date that is malformed, or later than S3 accepts.
fn invalid_retention_date(date: &str) -> S3Error {
    match OffsetDateTime::parse(date, &Rfc3339) {
        Ok(_too_late) => {
            let message = "The retain until date must be before the year 10000";
            invalid_argument("RetainUntilDate", date, message)
        }
        Err(_) => malformed(&format!("the RetainUntilDate {date:?} is no date")),
    }
}

/// The document with a legal hold.
struct LegalHold {
    is_on: bool,
}

impl Document for LegalHold {
    const ROOT: &'static str = "LegalHold";

    fn read(root: &Element) -> S3Result<Self> {
        match root.only(&["Status"])?.word_of("Status")? {
            Some(ON) => Ok(Self { is_on: true }),
            Some(OFF) => Ok(Self { is_on: false }),
            _ => Err(malformed("the Status must be ON or OFF")),
        }
    }

    fn write(&self, xml: &mut Xml) {
        xml.element("Status", hold_status(self.is_on));
    }
}

/// Returns a time in milliseconds. A client may send back a retention's end, which must not become
/// earlier.
fn exact_time(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = document_time(time);
    format!("{}{:03}Z", seconds.trim_end_matches("000Z"), since.subsec_millis())
}

fn in_future(retention: Retention) -> S3Result<Retention> {
    if retention.until <= SystemTime::now() {
        let message = "The retain until date must be in the future!";
        return Err(invalid_argument(UNTIL, &exact_time(retention.until), message));
    }
    Ok(retention)
}

/// Fails if the bucket does not exist, or has no object lock.
fn check_enabled(store: &Pool, bucket: &str) -> S3Result<()> {
    match store.has_object_lock(bucket).map_err(from_store)? {
        true => Ok(()),
        false => Err(from_store(Error::NoObjectLock { bucket: bucket.to_owned() })),
    }
}

/// Returns the lock of the request's object or version. As in S3, a missing object is reported
/// before a bucket without object lock.
async fn lock_of(haul: &Haul, request: &Request) -> S3Result<ObjectLock> {
    let version = versions::parse(request.head.query.get(versions::PARAMETER))?;
    let name = request.name().clone();
    haul.blocking(move |store| {
        let object = versions::head(store, &name.bucket, &name.key, version)?;
        check_enabled(store, &name.bucket)?;
        ObjectLock::of(&object.attributes).map_err(from_store)
    })
    .await
}

fn no_lock() -> S3Error {
    let message = "The specified object does not have a ObjectLock configuration";
    refuse(S3ErrorCode::NoSuchObjectLockConfiguration, message)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const YEAR: &str = "2099-01-01T00:00:00Z";
    const EXACT: &str = "2099-01-01T00:00:00.500Z";

    fn parse(fields: &[(&str, &str)]) -> S3Result<ObjectLock> {
        LockHeaders::from_fields(&fields.iter().copied().collect()).parse()
    }

    #[test]
    fn headers_are_those_of_a_lock() {
        let fields = [(MODE, GOVERNANCE), (UNTIL, EXACT), (LEGAL_HOLD, OFF)];
        let lock = parse(&fields).unwrap();
        let mut attributes = Attributes::new();
        lock.set_in(&mut attributes);
        let answer = add_headers(Answer::ok(), &attributes);
        for (name, value) in fields {
            assert_eq!(answer.headers.get(name).unwrap(), value);
        }
        assert_eq!(parse(&[]).unwrap(), ObjectLock::default());
        assert!(add_headers(Answer::ok(), &Attributes::new()).headers.is_empty());
    }

    #[test]
    fn invalid_headers_are_refused() {
        for fields in [
            &[(MODE, GOVERNANCE)][..],
            &[(UNTIL, YEAR)],
            &[(MODE, "governance"), (UNTIL, YEAR)],
            &[(MODE, ""), (UNTIL, YEAR)],
            &[(MODE, GOVERNANCE), (UNTIL, "")],
            &[(MODE, GOVERNANCE), (UNTIL, "2020-01-01T00:00:00Z")],
            &[(MODE, GOVERNANCE), (UNTIL, "9999-12-31T23:59:59-01:00")],
            // A policy would not see this form.
            &[(MODE, GOVERNANCE), (UNTIL, "Thu, 01 Jan 2099 00:00:00 GMT")],
            &[(LEGAL_HOLD, "on")],
        ] {
            let refused = parse(fields).unwrap_err();
            assert_eq!(refused.code(), S3ErrorCode::InvalidArgument, "{fields:?}");
        }
        let mut fields = Fields::default();
        fields.push(LEGAL_HOLD.as_bytes(), b"\xff");
        assert!(LockHeaders::from_fields(&fields).parse().is_err());
    }

    #[test]
    fn retention_is_read_with_white_space_and_dates_of_all_forms() {
        let parse = |content: &str| {
            RetentionDocument::parse(format!("<Retention>{content}</Retention>").as_bytes())
        };
        let until = SystemTime::UNIX_EPOCH + Duration::from_secs(60);
        let expected =
            RetentionDocument(Some(Retention { mode: RetentionMode::Compliance, until }));
        for date in [
            "1970-01-01T00:01:00Z",
            " 1970-01-01T00:01:00.000Z\n",
            "1970-01-01T01:01:00+01:00",
            "Thu, 01 Jan 1970 00:01:00 GMT",
        ] {
            let content = format!(
                "\n  <Mode>\n COMPLIANCE </Mode>\n  <RetainUntilDate>{date}</RetainUntilDate>\n"
            );
            assert_eq!(parse(&content).unwrap(), expected, "{date}");
        }
        assert_eq!(parse("\n").unwrap(), RetentionDocument(None));
        assert_eq!(RetentionDocument::parse(expected.text().as_bytes()).unwrap(), expected);
        for content in [
            "<Mode>GOVERNANCE</Mode>",
            "<RetainUntilDate>1970-01-01T00:01:00Z</RetainUntilDate>",
            "<Mode>governance</Mode><RetainUntilDate>1970-01-01T00:01:00Z</RetainUntilDate>",
            "<Mode>GOVERNANCE</Mode><RetainUntilDate>tomorrow</RetainUntilDate>",
            "<Mode>GOVERNANCE</Mode><RetainUntilDate/>",
            "<Days>1</Days>",
            "a",
        ] {
            assert_eq!(parse(content).unwrap_err().code(), S3ErrorCode::MalformedXML, "{content}");
        }
        let late = "<Mode>GOVERNANCE</Mode><RetainUntilDate>9999-12-31T23:59:59-01:00\
                    </RetainUntilDate>";
        assert_eq!(parse(late).unwrap_err().code(), S3ErrorCode::InvalidArgument);
    }

    #[test]
    fn legal_hold_is_on_or_off() {
        let parse = |content: &str| {
            let text = format!("<LegalHold>{content}</LegalHold>");
            LegalHold::parse(text.as_bytes()).map(|hold| hold.is_on)
        };
        assert!(parse("\n<Status> ON\n</Status>").unwrap());
        assert!(!parse("<Status>OFF</Status>").unwrap());
        for content in ["", "<Status>on</Status>", "<Status/>", "<Status>ON</Status><Days/>"] {
            assert_eq!(parse(content).unwrap_err().code(), S3ErrorCode::MalformedXML, "{content}");
        }
    }

    #[test]
    fn bypass_is_true_in_any_case() {
        let wants = |value: &str| wants_bypass(&[(BYPASS, value)].into_iter().collect());
        assert!(["true", "True", "TRUE", " true "].into_iter().all(wants));
        assert!(!["", "false", "1", "yes"].into_iter().any(wants));
        assert!(!wants_bypass(&Fields::default()));
    }
}
