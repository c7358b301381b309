//! Parts of multipart uploads: upload, copy, list.

use haul_file_store::{Attributes, PART_NUMBER_MAX, PartInfo, Store, UploadInfo};
use s3s::dto::{
    ChecksumAlgorithm, ChecksumType, CopyPartResult, Initiator, ListPartsInput, ListPartsOutput,
    Owner, Part, Range, StorageClass, Timestamp, UploadPartCopyInput, UploadPartCopyOutput,
    UploadPartInput, UploadPartOutput,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::access::caller::owner_named;
use crate::access::service::SourceReader;
use crate::acl::rules::rules_of;
use crate::audit::Changes;
use crate::body::checksum::{
    ALGORITHM_ATTRIBUTE, Algorithm, Checksum, TYPE_ATTRIBUTE, show_checksum,
};
use crate::body::copy::copy_bytes;
use crate::body::receive::{Encoder, Receiver};
use crate::encryption::content::Content;
use crate::encryption::customer::{CustomerKey, SOURCE_PREFIX};
use crate::encryption::lengths::{content_bytes, stored_bytes};
use crate::encryption::new_content::NewContent;
use crate::encryption::request::{customer_key, described};
use crate::errors::{from_store, refuse};
use crate::objects::conditions::source_conditions;
use crate::objects::copy;
use crate::objects::listing::page::page_limit;
use crate::objects::range::{Selected, select};
use crate::objects::read::{etag, length};
use crate::objects::versions;
use crate::objects::write::keep;
use crate::output::Output;
use crate::service::Haul;

pub(crate) async fn upload_part(
    haul: &Haul,
    mut request: S3Request<UploadPartInput>,
) -> S3Result<Output<UploadPartOutput>> {
    let customer = customer_key(&request.headers)?;
    let body = request.input.body.take();
    let mut receiver = Receiver::of(haul, &request, body)?;
    let changes = Changes::of(&request.extensions).cloned();
    let UploadPartInput { bucket, key, upload_id, part_number, .. } = request.input;
    let number = part_number_of(part_number)?;
    let upload = haul
        .blocking({
            let (bucket, key, upload_id) = (bucket.clone(), key.clone(), upload_id.clone());
            // Waits while another request changes the key, and reads the attributes.
            move |store| store.upload(&bucket, &key, &upload_id).map_err(from_store)
        })
        .await?;
    if let Some(algorithm) = algorithm(&upload) {
        receiver.claims().want(algorithm)?;
    }
    let names = (&*bucket, &*key);
    let keys = haul.encryption();
    let new = NewContent::of_upload(keys.as_deref(), names, &upload.attributes, customer.as_ref())?;
    let encryption = new.as_ref().map(|new| new.start(number)).transpose()?;
    let streamed = receiver.stream(haul, Store::part_writer, encryption).await?;
    let bytes = streamed.bytes();
    let (part, checksum) = haul
        .blocking(move |store| {
            let (written, checksum) = streamed.finish()?;
            let mut attributes = Attributes::new();
            keep(&mut attributes, checksum.as_ref());
            let part = store.put_part(&bucket, &key, &upload_id, number, written, &attributes);
            Ok((part.map_err(from_store)?, checksum))
        })
        .await?;
    if let Some(changes) = changes {
        changes.stored(bytes, part.etag);
    }
    let mut output = UploadPartOutput { e_tag: Some(etag(part.etag)), ..Default::default() };
    show_checksum!(output, checksum);
    Ok(described(output, new.as_ref().map(|new| &new.master)))
}

pub(crate) async fn upload_part_copy(
    haul: &Haul,
    request: S3Request<UploadPartCopyInput>,
) -> S3Result<Output<UploadPartCopyOutput>> {
    let customer = customer_key(&request.headers)?;
    let source_key = CustomerKey::of(&request.headers, SOURCE_PREFIX)?;
    let keys = haul.encryption();
    let changes = Changes::of(&request.extensions).cloned();
    let reader = request.extensions.get::<SourceReader>().cloned();
    let mut input = request.input;
    let conditions = source_conditions!(input);
    let from = copy::source(&input.copy_source)?;
    let number = part_number_of(input.part_number)?;
    let range = input.copy_source_range.as_deref().map(whole_range).transpose()?;
    let bytes_max = haul.limits().object_bytes_max;
    let UploadPartCopyInput { bucket, key, upload_id, .. } = input;
    let (part, checksum, bytes, master) = haul
        .blocking(move |store| {
            let upload = store.upload(&bucket, &key, &upload_id).map_err(from_store)?;
            let (names, attributes) = ((&*bucket, &*key), &upload.attributes);
            let new = NewContent::of_upload(keys.as_deref(), names, attributes, customer.as_ref())?;
            let object = versions::get_source(store, &from.bucket, &from.key, from.version)?;
            let source = (from.bucket.as_str(), from.key.as_str());
            copy::confirm(reader.as_ref(), store, source, &object.attributes)?;
            copy::check_conditions(&conditions, &object.info)?;
            let source = (&*from.bucket, &*from.key);
            let content = Content::open(keys.as_deref(), source, object, source_key.as_ref())?;
            let selected = source_bytes(range.as_ref(), content.bytes())?;
            let bytes = selected.bytes.end - selected.bytes.start;
            if bytes > bytes_max {
                let message = format!("A part has at most {bytes_max} bytes; specify a range");
                return Err(refuse(S3ErrorCode::InvalidRequest, message));
            }
            let encryption = new.as_ref().map(|new| new.start(number)).transpose()?;
            let stored = if encryption.is_some() { stored_bytes(bytes) } else { bytes };
            let writer = store.part_writer(Some(stored)).map_err(from_store)?;
            let mut encoder = Encoder { writer, encryption };
            let checksum = copy_bytes(&content, selected.bytes, &mut encoder, algorithm(&upload))?;
            let mut attributes = Attributes::new();
            keep(&mut attributes, checksum.as_ref());
            let (written, _md5) = encoder.finish()?;
            let part = store.put_part(&bucket, &key, &upload_id, number, written, &attributes);
            let master = new.map(|new| new.master);
            Ok((part.map_err(from_store)?, checksum, bytes, master))
        })
        .await?;
    if let Some(changes) = changes {
        changes.stored(bytes, part.etag);
    }
    let mut result = CopyPartResult {
        e_tag: Some(etag(part.etag)),
        last_modified: Some(Timestamp::from(part.modified)),
        ..CopyPartResult::default()
    };
    show_checksum!(result, checksum);
    let copy_part_result = Some(result);
    let output = UploadPartCopyOutput { copy_part_result, ..UploadPartCopyOutput::default() };
    Ok(described(output, master.as_ref()))
}

pub(crate) async fn list_parts(
    haul: &Haul,
    request: S3Request<ListPartsInput>,
) -> S3Result<ListPartsOutput> {
    let ListPartsInput { bucket, key, upload_id, max_parts, part_number_marker, .. } =
        request.input;
    let (max_parts, limit) = page_limit(max_parts, "max-parts")?;
    let marker = part_number_marker.unwrap_or(0);
    let (upload, mut parts, owner) = haul
        .blocking({
            let (bucket, key, upload_id) = (bucket.clone(), key.clone(), upload_id.clone());
            move |store| {
                let upload = store.upload(&bucket, &key, &upload_id).map_err(from_store)?;
                let parts = store.parts(&bucket, &key, &upload_id).map_err(from_store)?;
                let owner = rules_of(store, &bucket)?.object(&upload.attributes).owner;
                Ok((upload, parts, owner_named(Some(&owner))))
            }
        })
        .await?;
    parts.retain(|part| i32::from(part.number) > marker);
    let more = limit > 0 && parts.len() > limit;
    parts.truncate(limit);
    let last = parts.last().filter(|_| more).map(|part| i32::from(part.number));
    let kind = upload.attributes.get(TYPE_ATTRIBUTE);
    let Owner { display_name, id } = owner.clone();
    Ok(ListPartsOutput {
        bucket: Some(bucket),
        checksum_algorithm: algorithm(&upload)
            .map(|algorithm| ChecksumAlgorithm::from_static(algorithm.name())),
        checksum_type: kind.map(|kind| ChecksumType::from(kind.to_owned())),
        initiator: Some(Initiator { display_name, id }),
        is_truncated: Some(more),
        key: Some(key),
        max_parts: Some(max_parts),
        next_part_number_marker: last,
        owner: Some(owner),
        part_number_marker: Some(marker),
        parts: Some(parts.into_iter().map(shown).collect()),
        storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
        upload_id: Some(upload_id),
        ..ListPartsOutput::default()
    })
}

/// Returns the length of a part as clients see it.
pub(super) fn part_bytes(part: &PartInfo) -> u64 {
    match part.etag.is_encoded() {
        true => content_bytes(part.bytes).unwrap_or(part.bytes),
        false => part.bytes,
    }
}

fn shown(info: PartInfo) -> Part {
    let mut part = Part {
        e_tag: Some(etag(info.etag)),
        last_modified: Some(Timestamp::from(info.modified)),
        part_number: Some(i32::from(info.number)),
        size: Some(length(part_bytes(&info))),
        ..Part::default()
    };
    show_checksum!(part, Checksum::from_attributes(&info.attributes));
    part
}

fn part_number_of(number: i32) -> S3Result<u16> {
    let number = u16::try_from(number).ok();
    number.filter(|number| (1..=PART_NUMBER_MAX).contains(number)).ok_or_else(|| {
        let message = format!("The part number must be between 1 and {PART_NUMBER_MAX}");
        refuse(S3ErrorCode::InvalidArgument, message)
    })
}

/// Returns the checksum algorithm that the client chose when it created the upload.
fn algorithm(upload: &UploadInfo) -> Option<Algorithm> {
    upload.attributes.get(ALGORITHM_ATTRIBUTE).and_then(Algorithm::from_name)
}

/// Returns the bytes of the source to copy. A range that exceeds the source is an error: the part
/// would be shorter than the client expects.
fn source_bytes(range: Option<&Range>, object_bytes: u64) -> S3Result<Selected> {
    match range {
        Some(Range::Int { last: Some(last), .. }) if *last >= object_bytes => {
            let message = format!("The range exceeds the source, which has {object_bytes} bytes");
            Err(refuse(S3ErrorCode::InvalidRange, message))
        }
        _ => select(range, None, &[object_bytes]),
    }
}

/// Parses the range of a source, which must have both ends.
fn whole_range(text: &str) -> S3Result<Range> {
    match Range::parse(text) {
        Ok(range @ Range::Int { last: Some(_), .. }) => Ok(range),
        _ => {
            let message = "x-amz-copy-source-range must have the form bytes=first-last";
            Err(refuse(S3ErrorCode::InvalidArgument, message))
        }
    }
}
