//! Operations on an object's tags.

use haul_file_store::{Event, Tags, VersionId};
use haul_store_pool::Pool;

use crate::access::check::authorize_write;
use crate::answer::Answer;
use crate::body::Body;
use crate::body::digests::Claims;
use crate::body::receive::Receiver;
use crate::errors::S3Result;
use crate::objects::update::update;
use crate::request::name::ObjectName;
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::notification::name::EventName;
use crate::stored::{tags, versions};
use crate::xml::Document;
use crate::xml::tagging::Tagging;

pub(crate) async fn get_object_tagging(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let version = versions::parse(request.head.query.get(versions::PARAMETER))?;
    let name = request.name().clone();
    let get = move |store: &Pool| {
        let object = versions::head(store, &name.bucket, &name.key, version)?;
        let version_id = versions::response_id(store, &name.bucket, object.info.version_id);
        Ok((object.attributes.tags(), version_id))
    };
    let (tags, version_id) = haul.blocking(get).await?;
    let document = Tagging(tags.into_iter().collect()).text();
    Ok(Answer::xml(document).with_some(versions::VERSION_ID.as_str(), version_id))
}

pub(crate) async fn put_object_tagging(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    let version = versions::parse(request.head.query.get(versions::PARAMETER))?;
    let claims = Claims::for_document(request)?;
    let document = Receiver::document(haul, request, body, claims).await?;
    let Tagging(pairs) = Tagging::parse(&document)?;
    let caller = request.caller().with_request_tags(pairs.clone());
    authorize_write(&haul.shared_store(), caller, request.operation, request.name()).await?;
    let tags = tags::object_tags(pairs.into_iter())?;
    let name = request.name().clone();
    let event = haul.event(request, EventName::TagsPut, &name.key);
    let replace = move |store: &Pool| replace(store, &name, version, &tags, event);
    let version_id = haul.blocking(replace).await?;
    Ok(Answer::ok().with_some(versions::VERSION_ID.as_str(), version_id))
}

pub(crate) async fn delete_object_tagging(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let version = versions::parse(request.head.query.get(versions::PARAMETER))?;
    let name = request.name().clone();
    let event = haul.event(request, EventName::TagsDeleted, &name.key);
    let delete = move |store: &Pool| replace(store, &name, version, &Tags::new(), event);
    let version_id = haul.blocking(delete).await?;
    Ok(Answer::no_content().with_some(versions::VERSION_ID.as_str(), version_id))
}

/// Replaces the tags of an object or version. Returns the version ID for the response.
fn replace(
    store: &Pool,
    name: &ObjectName,
    version: Option<VersionId>,
    tags: &Tags,
    event: Option<Event>,
) -> S3Result<Option<String>> {
    let replaced = update(store, name, version, event, |attributes| {
        attributes.set_tags(tags);
        Ok(())
    })?;
    Ok(versions::response_id(store, &name.bucket, replaced.version_id))
}
