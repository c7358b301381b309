//! Operations on a bucket's notification rules.

use haul_store_pool::Pool;

use crate::access::caller::Basis;
use crate::answer::Answer;
use crate::body::Body;
use crate::buckets::documents::receive;
use crate::errors::S3Result;
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::notification::configuration::{NotificationConfiguration, no_destination};
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
