//! GetObjectAttributes.

use s3s::dto::{
    GetObjectAttributesInput, GetObjectAttributesOutput, GetObjectAttributesParts, ObjectPart,
    Timestamp,
};
use s3s::{S3Request, S3Result};

use crate::access::caller::Caller;
use crate::body::checksum::show_checksum;
use crate::body::part_checksums::PartChecksums;
use crate::encryption::content::Content;
use crate::encryption::request::key_of_read;
use crate::errors::check_key;
use crate::objects::listing::page::page_limit;
use crate::objects::read::{checksum, etag, length, standard};
use crate::objects::versions;
use crate::service::Haul;

pub(crate) async fn get_object_attributes(
    haul: &Haul,
    request: S3Request<GetObjectAttributesInput>,
) -> S3Result<GetObjectAttributesOutput> {
    let customer = key_of_read(&request.headers)?;
    let GetObjectAttributesInput { bucket, key, version_id, object_attributes, .. } = request.input;
    let GetObjectAttributesInput { max_parts, part_number_marker, .. } = request.input;
    let (max_parts, limit) = page_limit(max_parts, "x-amz-max-parts")?;
    let marker = part_number_marker.unwrap_or(0);
    check_key(&key)?;
    let version = versions::parse(version_id.as_deref())?;
    let (of, caller) = ((bucket.clone(), key.clone()), Caller::of(&request.extensions));
    let object = haul
        .blocking(move |store| {
            let object = versions::head(store, &bucket, &key, version)?;
            for operation in ["GetObjectAttributes", "GetObject"] {
                caller.confirm_read(store, operation, (&bucket, &key), &object.attributes)?;
            }
            Ok(object)
        })
        .await?;
    let content = haul.content((&of.0, &of.1), object, customer.as_ref())?;
    let object = &content.object;
    let mut output = GetObjectAttributesOutput {
        version_id: versions::shown(&haul.store(), &of.0, object.info.version_id),
        last_modified: Some(Timestamp::from(object.info.modified)),
        ..GetObjectAttributesOutput::default()
    };
    // Clients send them in one header or in several.
    for wanted in object_attributes.iter().flat_map(|wanted| wanted.as_str().split(',')) {
        match wanted.trim() {
            "ETag" => output.e_tag = Some(etag(object.info.etag)),
            "ObjectSize" => output.object_size = Some(length(content.bytes())),
            "StorageClass" => output.storage_class = Some(standard()),
            "Checksum" => output.checksum = checksum(&object.attributes),
            "ObjectParts" if object.info.etag.part_count() > 0 => {
                let parts = object_parts(&content, marker, limit);
                output.object_parts = Some(GetObjectAttributesParts {
                    max_parts: Some(max_parts),
                    total_parts_count: Some(i32::from(object.info.etag.part_count())),
                    ..parts
                });
            }
            _ => {}
        }
    }
    Ok(output)
}

/// Returns the parts after number `marker`, at most `limit`, with their checksums if these are
/// stored.
fn object_parts(content: &Content, marker: i32, limit: usize) -> GetObjectAttributesParts {
    let part_bytes = content.part_bytes();
    let checksums = PartChecksums::from_attributes(&content.object.attributes);
    let parts: Vec<_> = (1..)
        .zip(part_bytes.iter().enumerate())
        .skip_while(|(number, _)| *number <= marker)
        .take(limit)
        .map(|(number, (index, bytes))| {
            let mut part = ObjectPart {
                part_number: Some(number),
                size: Some(length(*bytes)),
                ..ObjectPart::default()
            };
            show_checksum!(part, checksums.as_ref().and_then(|checksums| checksums.get(index)));
            part
        })
        .collect();
    let last = parts.last().and_then(|part| part.part_number);
    let more = last.filter(|last| usize::try_from(*last).is_ok_and(|last| last < part_bytes.len()));
    GetObjectAttributesParts {
        is_truncated: Some(more.is_some()),
        next_part_number_marker: more,
        part_number_marker: Some(marker),
        parts: Some(parts),
        ..GetObjectAttributesParts::default()
    }
}
