//! Deleting objects and versions.

use haul_file_store::{Deleted, Deletion, ObjectInfo, Store, VersionId};
use s3s::dto::{
    self, DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput,
    DeletedObject, ObjectIdentifier,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::access::action::Action;
use crate::access::caller::Caller;
use crate::access::rights::Right;
use crate::audit::Changes;
use crate::errors::{check_key, from_store, refuse};
use crate::objects::conditions::DeleteConditions;
use crate::objects::lock::may_bypass;
use crate::objects::versions;
use crate::objects::write::check_bucket;
use crate::service::Haul;

/// The number of objects that one request can delete, as in S3.
const DELETE_MAX: usize = 1000;

pub(crate) async fn delete_object(
    haul: &Haul,
    request: S3Request<DeleteObjectInput>,
) -> S3Result<DeleteObjectOutput> {
    let caller = Caller::of(&request.extensions);
    let bypass = request.input.bypass_governance_retention;
    let DeleteObjectInput { bucket, key, version_id, .. } = request.input;
    check_key(&key)?;
    let mut asked = Asked {
        bypasses_governance: false,
        version: versions::parse(version_id.as_deref())?,
        conditions: DeleteConditions {
            // Every object has an ETag.
            etag: request.input.if_match.and_then(|condition| condition.into_etag()),
            bytes: request.input.if_match_size,
            modified: request.input.if_match_last_modified_time,
            stored_bytes: None,
        },
    };
    let delete = move |store: &Store| {
        asked.bypasses_governance = may_bypass(&caller, store, (&bucket, &key), bypass)?;
        asked.conditions = asked.conditions.resolve(store, &bucket, &key);
        delete_all(store, &bucket, &[(&key, asked)]).remove(0)
    };
    let deleted = haul.blocking(delete).await?;
    let version_id = deleted.version_id.map(|version| version.to_string());
    let delete_marker = deleted.is_delete_marker.then_some(true);
    Ok(DeleteObjectOutput { delete_marker, version_id, ..DeleteObjectOutput::default() })
}

pub(crate) async fn delete_objects(
    haul: &Haul,
    request: S3Request<DeleteObjectsInput>,
) -> S3Result<DeleteObjectsOutput> {
    let changes = Changes::of(&request.extensions).cloned();
    let caller = Caller::of(&request.extensions);
    let DeleteObjectsInput { bucket, delete, bypass_governance_retention: bypass, .. } =
        request.input;
    if delete.objects.is_empty() || delete.objects.len() > DELETE_MAX {
        let message = format!("One request can delete 1 to {DELETE_MAX} objects");
        return Err(refuse(S3ErrorCode::MalformedXML, message));
    }
    check_bucket(&haul.store(), &bucket)?;
    let quiet = delete.quiet == Some(true);
    let outcomes = haul
        .blocking(move |store| Ok(delete_listed(store, &caller, &bucket, (delete.objects, bypass))))
        .await?;
    let mut deleted = Vec::new();
    let mut errors = Vec::new();
    for (object, outcome) in outcomes {
        if let Some(changes) = &changes {
            let version = object.version_id.as_deref();
            changes.deleted(&object.key, version, outcome.as_ref().err());
        }
        let ObjectIdentifier { key, version_id, .. } = object;
        match outcome {
            Ok(_) if quiet => {}
            Ok(done) => deleted.push(DeletedObject {
                key: Some(key),
                version_id,
                delete_marker: done.is_delete_marker.then_some(true),
                delete_marker_version_id: done
                    .version_id
                    .filter(|_| done.is_delete_marker)
                    .map(|version| version.to_string()),
            }),
            Err(error) => errors.push(dto::Error {
                code: Some(error.code().as_str().to_owned()),
                key: Some(key),
                message: error.message().map(str::to_owned),
                version_id,
            }),
        }
    }
    Ok(DeleteObjectsOutput { deleted: Some(deleted), errors: Some(errors), request_charged: None })
}

/// Deletes the objects of a request that the client may delete; returns the outcome for each.
fn delete_listed(
    store: &Store,
    caller: &Caller,
    bucket: &str,
    (objects, bypass): (Vec<ObjectIdentifier>, Option<bool>),
) -> Vec<(ObjectIdentifier, S3Result<Deleted>)> {
    let delete = Action::Use(Right::Delete);
    let checked: Vec<_> = objects
        .into_iter()
        .map(|object| {
            let version = object.version_id.as_deref().filter(|version| !version.is_empty());
            let operation = if version.is_some() { "DeleteObjectVersion" } else { "DeleteObjects" };
            let caller = caller.with_version(version);
            let version =
                caller.with_tags(store, bucket, (&object.key, version)).and_then(|caller| {
                    caller.check(store, operation, delete, (bucket, &object.key))?;
                    check_key(&object.key)?;
                    let version = versions::parse(object.version_id.as_deref())?;
                    Ok((version, may_bypass(&caller, store, (bucket, &object.key), bypass)?))
                });
            (object, version)
        })
        .collect();
    let deletions: Vec<_> = checked
        .iter()
        .filter_map(|(object, version)| {
            let conditions = DeleteConditions {
                etag: object.e_tag.clone(),
                bytes: object.size,
                modified: object.last_modified_time.clone(),
                stored_bytes: None,
            };
            let conditions = conditions.resolve(store, bucket, &object.key);
            let (version, bypasses_governance) = *version.as_ref().ok()?;
            Some((object.key.as_str(), Asked { version, conditions, bypasses_governance }))
        })
        .collect();
    let mut outcomes = delete_all(store, bucket, &deletions).into_iter();
    checked
        .into_iter()
        .map(|(object, version)| {
            let outcome = version.and_then(|_asked| {
                let missing = || refuse(S3ErrorCode::InternalError, "The store has no outcome");
                outcomes.next().ok_or_else(missing)?
            });
            (object, outcome)
        })
        .collect()
}

/// A deletion that a request asks for.
struct Asked {
    /// `None` for the current object.
    version: Option<VersionId>,
    conditions: DeleteConditions,
    /// The request may delete a version that is retained in governance mode.
    bypasses_governance: bool,
}

/// Deletes objects with one call of the store; returns the outcome for each. The ID of a version
/// that does not exist is part of the response, too, but a bucket without versions has only the ID
/// `null`, which responses omit.
fn delete_all(store: &Store, bucket: &str, deletions: &[(&str, Asked)]) -> Vec<S3Result<Deleted>> {
    let has_versions = versions::has_versions(store, bucket);
    let tests: Vec<_> = deletions
        .iter()
        .map(|(_, asked)| |object: &ObjectInfo| asked.conditions.hold(object))
        .collect();
    let of_store: Vec<_> = deletions
        .iter()
        .zip(&tests)
        .map(|(&(key, ref asked), test)| {
            let test: &dyn Fn(&ObjectInfo) -> bool = test;
            let condition = asked.conditions.any().then_some(test);
            let bypass_governance = asked.bypasses_governance;
            Deletion { key, version: asked.version, condition, bypass_governance }
        })
        .collect();
    let outcomes = store.delete_objects(bucket, &of_store).into_iter();
    let shown = |(outcome, (_, asked)): (haul_file_store::Result<Deleted>, &(&str, Asked))| {
        let deleted = outcome.map_err(from_store)?;
        match asked.version {
            version if has_versions => {
                Ok(Deleted { version_id: deleted.version_id.or(version), ..deleted })
            }
            Some(VersionId::Id(_)) => {
                Err(refuse(S3ErrorCode::NoSuchVersion, "The version does not exist"))
            }
            _ => Ok(Deleted { version_id: None, ..deleted }),
        }
    };
    outcomes.zip(deletions).map(shown).collect()
}
