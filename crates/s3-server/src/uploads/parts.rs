//! Parts of multipart uploads: upload, copy, list.

use haul_file_store::{Attributes, PartInfo};
use haul_store_pool::Pool;

use crate::access::caller::Caller;
use crate::acl::owner::owner_named;
use crate::acl::rules::rules_of;
use crate::answer::encryption::described;
use crate::answer::{Answer, quoted};
use crate::body::Body;
use crate::body::checksum::{Algorithm, Checksum, TYPE_ATTRIBUTE};
use crate::body::copy::copy_bytes;
use crate::body::receive::{Encoder, Receiver};
use crate::encryption::content::Content;
use crate::encryption::customer::{CustomerKey, SOURCE_KEY};
use crate::encryption::lengths::stored_bytes;
use crate::encryption::new_content::NewContent;
use crate::encryption::request::customer_key;
use crate::errors::{S3ErrorCode, S3Result, from_store, invalid_argument, refuse};
use crate::objects::conditions::Conditions;
use crate::objects::copy::{self, Source};
use crate::objects::get_attributes::part_number_marker;
use crate::objects::listing::page::{page_limit, parts_bytes};
use crate::objects::write::add_checksum;
use crate::request::name::ObjectName;
use crate::request::operation::{PART_NUMBER, part_number};
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::lifecycle::operations::{abortion, with_abortion};
use crate::stored::versions;
use crate::times::document_time;
use crate::uploads::checksums::{UploadChecksum, part_bytes};
use crate::uploads::name::{UploadName, algorithm};
use crate::xml::writer::Xml;

const COPY_RANGE: &str = "x-amz-copy-source-range";

const PART_MARKER: &str = "part-number-marker";

pub(crate) async fn upload_part(haul: &Haul, request: &Request, body: Body) -> S3Result<Answer> {
    let customer = customer_key(&request.head.fields)?;
    let mut receiver = Receiver::new(haul, request, body)?;
    let name = UploadName::new(request);
    let number = part_number(request.head.query.get(PART_NUMBER).unwrap_or_default())?;
    let upload = haul
        .blocking({
            let name = name.clone();
            move |store| name.find(store)
        })
        .await?;
    let claims = receiver.claims();
    let chosen = algorithm(&upload);
    let shows_checksum = chosen.is_some() || claims.has_checksum();
    UploadChecksum::new(&upload.attributes).check_given(claims.has_checksum())?;
    match chosen {
        Some(algorithm) => claims.require(algorithm)?,
        // The object's checksum follows from its parts' checksums.
        None => claims.require_crc64nvme(),
    }
    let names = (&*name.object.bucket, &*name.object.key);
    let keys = haul.encryption();
    let new =
        NewContent::for_upload(keys.as_deref(), names, &upload.attributes, customer.as_ref())?;
    let encryption = new.as_ref().map(|new| new.start(number)).transpose()?;
    let mut streamed = receiver.stream(haul, &name.object, Pool::part_writer, encryption).await?;
    let bytes = streamed.bytes();
    let store_part = move |store: &Pool| {
        let mut attributes = Attributes::new();
        add_checksum(&mut attributes, streamed.take_crc64nvme().as_ref());
        let (written, checksum) = streamed.finish()?;
        add_checksum(&mut attributes, checksum.as_ref());
        let ObjectName { bucket, key } = &name.object;
        let part = store.put_part(bucket, key, &name.id, number, written, &attributes);
        Ok((part.map_err(|error| name.map_error(error))?, checksum))
    };
    let (part, checksum) = haul.blocking(store_part).await?;
    if let Some(changes) = &request.changes {
        changes.stored(bytes, part.etag);
    }
    let mut answer = Answer::ok().with("etag", quoted(&part.etag));
    if let Some(Checksum { algorithm, value }) = checksum.filter(|_| shows_checksum) {
        answer.add(algorithm.header(), value);
    }
    Ok(described(answer, new.as_ref().map(|new| &new.master)))
}

pub(crate) async fn upload_part_copy(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let fields = &request.head.fields;
    let copy = PartCopy {
        customer: customer_key(fields)?,
        source_key: CustomerKey::of(fields, SOURCE_KEY)?,
        conditions: Conditions::from_source(fields),
        from: Source::new(&request.head)?,
        reader: request.source().cloned(),
        name: UploadName::new(request),
        number: part_number(request.head.query.get(PART_NUMBER).unwrap_or_default())?,
        range: fields.given(COPY_RANGE).map(CopyRange::parse).transpose()?,
        bytes_max: haul.limits().object_bytes_max,
    };
    let keys = haul.encryption();
    let copied = haul
        .blocking(move |store| {
            let upload = copy.name.find(store)?;
            let (names, attributes) =
                ((&*copy.name.object.bucket, &*copy.name.object.key), &upload.attributes);
            let keys = keys.as_deref();
            let new = NewContent::for_upload(keys, names, attributes, copy.customer.as_ref())?;
            let ObjectName { bucket, key } = &copy.from.name;
            let object = versions::get_source(store, bucket, key, copy.from.version)?;
            copy::confirm(copy.reader.as_ref(), store, &copy.from.name, &object.attributes)?;
            copy::check_conditions(&copy.conditions, &object.info)?;
            let source_version = versions::response_id(store, bucket, object.info.version_id);
            let content = Content::open(keys, (bucket, key), object, copy.source_key.as_ref())?;
            let copied = copy.execute(store, &content, new, algorithm(&upload))?;
            Ok(CopiedPart { source_version, ..copied })
        })
        .await?;
    let CopiedPart { part, checksum, bytes, master, source_version } = copied;
    if let Some(changes) = &request.changes {
        changes.stored(bytes, part.etag);
    }
    let document = Xml::document("CopyPartResult", |xml| {
        xml.element("ETag", format_args!("\"{}\"", part.etag));
        xml.element("LastModified", document_time(part.modified));
        if let Some(checksum) = checksum {
            checksum.write_xml(xml);
        }
    });
    let answer = Answer::xml(document).with_some(copy::SOURCE_VERSION, source_version);
    Ok(described(answer, master.as_ref()))
}

/// The parameters of a part copy request.
struct PartCopy {
    customer: Option<CustomerKey>,
    source_key: Option<CustomerKey>,
    conditions: Conditions,
    from: Source,
    /// The client as the reader of the source.
    reader: Option<Caller>,
    name: UploadName,
    number: u16,
    range: Option<CopyRange>,
    bytes_max: u64,
}

/// A stored copy.
struct CopiedPart {
    part: PartInfo,
    /// The checksum, if the client chose an algorithm for the upload.
    checksum: Option<Checksum>,
    /// The length, as seen by clients.
    bytes: u64,
    master: Option<crate::encryption::master::Master>,
    source_version: Option<String>,
}

impl PartCopy {
    /// Stores the content as a part of the upload, encrypted with `new`, with a checksum by
    /// `algorithm`. Blocks.
    fn execute(
        &self,
        store: &Pool,
        content: &Content,
        new: Option<NewContent>,
        algorithm: Option<Algorithm>,
    ) -> S3Result<CopiedPart> {
        let range = match self.range {
            None => 0..content.bytes(),
            Some(range) => range.within(content.bytes())?,
        };
        let (bytes, bytes_max) = (range.end - range.start, self.bytes_max);
        if bytes > bytes_max {
            let message = format!("A part has at most {bytes_max} bytes; specify a range");
            return Err(refuse(S3ErrorCode::InvalidRequest, message));
        }
        let encryption = new.as_ref().map(|new| new.start(self.number)).transpose()?;
        let stored = if encryption.is_some() { stored_bytes(bytes) } else { bytes };
        let ObjectName { bucket, key } = &self.name.object;
        let writer = store.part_writer(bucket, key, Some(stored)).map_err(from_store)?;
        let mut encoder = Encoder { writer, encryption };
        // The same default as for a part that is uploaded.
        let computed = algorithm.unwrap_or(Algorithm::Crc64Nvme);
        let checksum = copy_bytes(content, range, &mut encoder, Some(computed))?;
        let mut attributes = Attributes::new();
        add_checksum(&mut attributes, checksum.as_ref());
        let (written, _md5) = encoder.finish()?;
        let (ObjectName { bucket, key }, id) = (&self.name.object, &self.name.id);
        let part = store.put_part(bucket, key, id, self.number, written, &attributes);
        Ok(CopiedPart {
            part: part.map_err(|error| self.name.map_error(error))?,
            checksum: checksum.filter(|_| algorithm.is_some()),
            bytes,
            master: new.map(|new| new.master),
            source_version: None,
        })
    }
}

pub(crate) async fn list_parts(haul: &Haul, request: &Request, _body: Body) -> S3Result<Answer> {
    let query = &request.head.query;
    let limit = page_limit(query.get("max-parts"), "max-parts")?;
    let marker = part_number_marker(query.get(PART_MARKER), PART_MARKER)?;
    let memory = haul.reserve(request.memory.as_ref(), parts_bytes(limit)).await?;
    let name = UploadName::new(request);
    let list = {
        let name = name.clone();
        move |store: &Pool| {
            let upload = name.find(store)?;
            let parts = name.parts(store)?;
            let ObjectName { bucket, key } = &name.object;
            let owner = rules_of(store, bucket)?.object(&upload.attributes).owner;
            let abortion = abortion(store, bucket, key, upload.started);
            Ok((upload, parts, owner_named(Some(&owner)), abortion))
        }
    };
    let (upload, mut parts, owner, abortion) = haul.blocking(list).await?;
    parts.retain(|part| u32::from(part.number) > marker);
    let is_truncated = limit > 0 && parts.len() > limit;
    parts.truncate(limit);
    let chosen = algorithm(&upload);
    let document = Xml::document("ListPartsResult", |xml| {
        xml.element("Bucket", &name.object.bucket);
        xml.element("Key", &name.object.key);
        xml.element("UploadId", &name.id);
        xml.element("PartNumberMarker", marker);
        let last = parts.last().filter(|_| is_truncated);
        xml.optional("NextPartNumberMarker", last.map(|part| part.number));
        xml.element("MaxParts", limit);
        xml.element("IsTruncated", is_truncated);
        for part in &parts {
            xml.group("Part", |xml| write_part(xml, part, chosen));
        }
        owner.write(xml, "Initiator");
        owner.write(xml, "Owner");
        xml.element("StorageClass", "STANDARD");
        xml.optional("ChecksumAlgorithm", chosen.map(Algorithm::name));
        xml.optional("ChecksumType", upload.attributes.get(TYPE_ATTRIBUTE));
    });
    Ok(with_abortion(Answer::xml_reserved(document, memory), abortion))
}

/// Writes the element for a part; the upload has this checksum algorithm.
fn write_part(xml: &mut Xml, part: &PartInfo, algorithm: Option<Algorithm>) {
    xml.element("PartNumber", part.number);
    xml.element("LastModified", document_time(part.modified));
    xml.element("ETag", format_args!("\"{}\"", part.etag));
    xml.element("Size", part_bytes(part));
    // Without a chosen algorithm, S3 shows no checksum, although it has computed one.
    let checksum = algorithm.and_then(|algorithm| Checksum::stored(&part.attributes, algorithm));
    if let Some(checksum) = checksum {
        checksum.write_xml(xml);
    }
}

/// The source range of a part copy: the offsets of its first and last bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CopyRange {
    first: u64,
    last: u64,
}

impl CopyRange {
    /// Parses a header value such as `bytes=0-9`.
    fn parse(text: &str) -> S3Result<Self> {
        let number = |digits: &str| {
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<u64>().ok().filter(|_| is_number)
        };
        let ends = text.strip_prefix("bytes=").and_then(|ends| ends.split_once('-'));
        let range = ends
            .and_then(|(first, last)| Some(Self { first: number(first)?, last: number(last)? }));
        range.filter(|range| range.first <= range.last).ok_or_else(|| {
            let message = "The x-amz-copy-source-range value must be of the form bytes=first-last \
                           where first and last are the zero-based offsets of the first and last \
                           bytes to copy";
            invalid_argument(COPY_RANGE, text, message)
        })
    }

    /// Returns the bytes in an object with this length. A range that exceeds it is an error: the
    /// part would be shorter than the client expects.
    fn within(self, object_bytes: u64) -> S3Result<std::ops::Range<u64>> {
        if self.last >= object_bytes {
            let message = format!("The range exceeds the source, which has {object_bytes} bytes");
            return Err(refuse(S3ErrorCode::InvalidRange, message)
                .with_field("RangeRequested", format!("bytes={}-{}", self.first, self.last))
                .with_field("ActualObjectSize", object_bytes.to_string()));
        }
        Ok(self.first..self.last + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_of_a_copy_has_both_ends() {
        let found = CopyRange::parse("bytes=5-9").unwrap();
        assert_eq!(found, CopyRange { first: 5, last: 9 });
        assert_eq!(found.within(10).unwrap(), 5..10);
        assert_eq!(found.within(9).unwrap_err().code(), S3ErrorCode::InvalidRange);
        for text in [
            "",
            "5-9",
            "bytes",
            "bytes=",
            "bytes=5",
            "bytes=5-",
            "bytes=-5",
            "bytes=9-5",
            "bytes=+5-9",
            "bytes= 5-9",
            "bytes=0-1,3-4",
            "bytes=0-99999999999999999999",
            "items=0-1",
        ] {
            let error = CopyRange::parse(text).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::InvalidArgument, "{text}");
        }
    }
}
