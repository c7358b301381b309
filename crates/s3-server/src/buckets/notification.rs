//! Operations on a bucket's notification rules, and listening to its events.

use haul_file_store::KEY_BYTES_MAX;
use haul_store_pool::Pool;

use crate::access::decision::Basis;
use crate::answer::{Answer, Content};
use crate::body::Body;
use crate::buckets::documents::receive;
use crate::errors::{S3ErrorCode, S3Result, from_store, refuse};
use crate::events::listeners::{Interest, Listener};
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::notification::configuration::{NotificationConfiguration, no_destination};
use crate::settings::notification::name::EventNames;
use crate::settings::{NOTIFICATION, load, set};
use crate::xml::Document;

pub(crate) async fn put_bucket_notification_configuration(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    let configuration: NotificationConfiguration = receive(haul, request, body).await?;
    let skips_check = request.head.fields.text("x-amz-skip-destination-validation");
    let skips_check = skips_check.is_some_and(|text| text.eq_ignore_ascii_case("true"));
    let is_known =
        |name: &str| haul.events.as_ref().is_some_and(|targets| targets.find(name).is_some());
    if !skips_check && !configuration.rules.iter().all(|rule| is_known(&rule.target)) {
        return Err(no_destination());
    }
    let bucket = request.name().bucket.clone();
    let put = move |store: &Pool| {
        let text = (!configuration.rules.is_empty()).then(|| configuration.text());
        set(store, &bucket, NOTIFICATION, text.as_deref())
    };
    haul.blocking(put).await?;
    Ok(Answer::ok())
}

pub(crate) async fn get_bucket_notification_configuration(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let bucket = request.name().bucket.clone();
    let found: Option<NotificationConfiguration> =
        haul.blocking(move |store| load(store, &bucket, NOTIFICATION)).await?;
    let mut configuration = found.unwrap_or_default();
    // The names of targets are known to those who may configure the bucket.
    if request.caller().basis() == Basis::Acl {
        configuration.rules.clear();
    }
    Ok(Answer::xml(configuration.text()))
}

/// Sends the events of a bucket, or of all buckets, as lines of JSON for as long as the client is
/// connected, as in MinIO.
pub(crate) async fn listen_notification(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let Some(targets) = &haul.events else {
        let message = "This server sends no events: it is read-only";
        return Err(refuse(S3ErrorCode::NotImplemented, message));
    };
    let listener = Listener {
        interest: interest(haul, request)?,
        caller: request.caller().clone(),
        operation: request.operation,
        peer: request.requester.peer,
    };
    let stream = targets.listeners().listen(listener).ok_or_else(|| {
        let message = "Too many clients listen to events, of this server or at this address";
        refuse(S3ErrorCode::SlowDown, message)
    })?;
    let answer = Answer { content: Content::Events(stream), ..Answer::ok() };
    Ok(answer.with("content-type", "text/event-stream"))
}

/// Returns the events that a request selects.
fn interest(haul: &Haul, request: &Request) -> S3Result<Interest> {
    let query = &request.head.query;
    let name = &request.name().bucket;
    let bucket = match name.is_empty() {
        true => None,
        false => {
            let id = haul.store().bucket_id(name).map_err(from_store)?;
            // The client was authorized for this bucket.
            request.check_bucket(&haul.store())?;
            Some((name.clone(), id))
        }
    };
    let mut names = EventNames::default();
    for (_, text) in query.iter().filter(|(name, _)| *name == "events") {
        if !text.starts_with("s3:") {
            let message = format!("The event {text:?} does not begin with s3:");
            return Err(refuse(S3ErrorCode::InvalidArgument, message));
        }
        names.add(text);
    }
    let affix = |name: &str| match query.get(name).unwrap_or_default() {
        text if text.len() <= KEY_BYTES_MAX => Ok(text.to_owned()),
        text => {
            let message = format!("The {name} is longer than a key: {} bytes", text.len());
            Err(refuse(S3ErrorCode::InvalidArgument, message))
        }
    };
    Ok(Interest { bucket, names, prefix: affix("prefix")?, suffix: affix("suffix")? })
}
