//! GetObjectAttributes.

use crate::answer::Answer;
use crate::body::Body;
use crate::body::checksum::{Checksum, kind_of};
use crate::body::part_checksums::PartChecksums;
use crate::encryption::content::Content;
use crate::encryption::request::key_of_read;
use crate::errors::{S3ErrorCode, S3Result, check_key, invalid_argument, refuse};
use crate::objects::listing::page::{page_limit, parts_bytes};
use crate::request::fields::Fields;
use crate::request::name::ObjectName;
use crate::service::Haul;
use crate::service::request::Request;
use crate::stored::versions;
use crate::times::header_time;
use crate::xml::writer::Xml;
use haul_store_pool::Pool;

/// The header with the attribute names.
const ATTRIBUTES: &str = "x-amz-object-attributes";

const MAX_PARTS: &str = "x-amz-max-parts";
const PART_MARKER: &str = "x-amz-part-number-marker";

pub(crate) async fn get_object_attributes(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let fields = &request.head.fields;
    let customer = key_of_read(fields)?;
    let page = PartPage {
        limit: page_limit(fields.text(MAX_PARTS), MAX_PARTS)?,
        marker: part_number_marker(fields.text(PART_MARKER), PART_MARKER)?,
    };
    let wanted = RequestedAttributes::in_fields(fields)?;
    let memory = haul.reserve(request.memory.as_ref(), parts_bytes(page.limit)).await?;
    check_key(&request.name().key)?;
    let version = versions::parse(request.head.query.get("versionId"))?;
    let (name, caller) = (request.name().clone(), request.caller().clone());
    let read = move |store: &Pool| {
        let ObjectName { bucket, key } = &name;
        let object = versions::head(store, bucket, key, version)?;
        for operation in ["GetObjectAttributes", "GetObject"] {
            caller.confirm_read(store, operation, (bucket, key), &object.attributes)?;
        }
        Ok(object)
    };
    let object = haul.blocking(read).await?;
    let ObjectName { bucket, key } = request.name();
    let content = haul.content((bucket, key), object, customer.as_ref())?;
    let info = &content.object.info;
    let document = Xml::document("GetObjectAttributesResponse", |xml| {
        wanted.write(xml, &content, page);
    });
    Ok(Answer::xml_reserved(document, memory)
        .with("last-modified", header_time(info.modified))
        .with_some(
            "x-amz-version-id",
            versions::response_id(&haul.store(), bucket, info.version_id),
        ))
}

/// The requested attributes.
#[derive(Debug, Default, PartialEq, Eq)]
struct RequestedAttributes {
    etag: bool,
    checksum: bool,
    object_parts: bool,
    storage_class: bool,
    object_size: bool,
}

impl RequestedAttributes {
    /// Reads the attribute names. Clients send them in one header or in several.
    ///
    /// # Errors
    /// If there is none, or an unknown one.
    fn in_fields(fields: &Fields) -> S3Result<Self> {
        let names = fields.joined(ATTRIBUTES).unwrap_or_default();
        let names: Vec<_> = names.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
        if names.is_empty() {
            let message = "The x-amz-object-attributes header specifying the attributes to be \
                           retrieved is either missing or empty";
            return Err(refuse(S3ErrorCode::InvalidRequest, message));
        }
        let mut wanted = Self::default();
        for name in names {
            match name {
                "ETag" => wanted.etag = true,
                "Checksum" => wanted.checksum = true,
                "ObjectParts" => wanted.object_parts = true,
                "StorageClass" => wanted.storage_class = true,
                "ObjectSize" => wanted.object_size = true,
                other => {
                    let message = "Invalid attribute name specified.";
                    return Err(invalid_argument(ATTRIBUTES, other, message));
                }
            }
        }
        Ok(wanted)
    }

    /// Writes the attributes of an object.
    fn write(&self, xml: &mut Xml, content: &Content, page: PartPage) {
        let object = &content.object;
        if self.etag {
            // Only in this response, S3 returns the ETag without quotes.
            xml.element("ETag", object.info.etag);
        }
        let checksum = Checksum::from_attributes(&object.attributes);
        if let Some(mut checksum) = checksum.filter(|_| self.checksum) {
            // Only in this response, a composite checksum lacks the number of parts.
            checksum.value = checksum.bare_value().to_owned();
            xml.group("Checksum", |xml| {
                checksum.write_xml(xml);
                xml.element("ChecksumType", kind_of(&object.attributes));
            });
        }
        if self.object_parts && object.info.etag.part_count() > 0 {
            xml.group("ObjectParts", |xml| page.write(xml, content));
        }
        if self.storage_class {
            xml.element("StorageClass", "STANDARD");
        }
        if self.object_size {
            xml.element("ObjectSize", content.bytes());
        }
    }
}

/// A page of an object's parts.
#[derive(Debug, Clone, Copy)]
struct PartPage {
    limit: usize,
    /// The page has the parts after this number.
    marker: u32,
}

impl PartPage {
    /// Writes the parts, with their checksums if these are stored.
    fn write(self, xml: &mut Xml, content: &Content) {
        let part_bytes = content.part_bytes();
        let checksums = PartChecksums::from_attributes(&content.object.attributes);
        let first = usize::try_from(self.marker).unwrap_or(usize::MAX).min(part_bytes.len());
        let shown = first..part_bytes.len().min(first + self.limit);
        let is_truncated = !shown.is_empty() && shown.end < part_bytes.len();
        xml.element("IsTruncated", is_truncated);
        xml.element("MaxParts", self.limit);
        // S3 names the last part of a page even if no other page follows.
        xml.element("NextPartNumberMarker", shown.end);
        xml.element("PartNumberMarker", self.marker);
        for index in shown {
            xml.group("Part", |xml| {
                let checksum = checksums.as_ref().and_then(|checksums| checksums.get(index));
                if let Some(checksum) = checksum {
                    checksum.write_xml(xml);
                }
                xml.element("PartNumber", index + 1);
                xml.element("Size", part_bytes[index]);
            });
        }
        xml.element("PartsCount", part_bytes.len());
    }
}

/// Parses the part number after which a page begins, from the parameter `name`; 0 if it is missing.
///
/// # Errors
/// `InvalidArgument` if it is not a number that S3 accepts.
pub(crate) fn part_number_marker(text: Option<&str>, name: &str) -> S3Result<u32> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(0) };
    match text.trim().parse::<i32>().map(u32::try_from) {
        Ok(Ok(marker)) => Ok(marker),
        Ok(Err(_negative)) => {
            let message = format!("Argument {name} must be an integer between 0 and 2147483647");
            Err(invalid_argument(name, text, message))
        }
        Err(_) => {
            let message = format!("Provided {name} not an integer or within integer range");
            Err(invalid_argument(name, text, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(values: &[&str]) -> S3Result<RequestedAttributes> {
        RequestedAttributes::in_fields(&values.iter().map(|value| (ATTRIBUTES, *value)).collect())
    }

    #[test]
    fn names_of_attributes_are_in_one_header_or_in_several() {
        let expected =
            RequestedAttributes { etag: true, object_size: true, ..RequestedAttributes::default() };
        for values in [&["ETag,ObjectSize"][..], &["ETag , ObjectSize,"], &["ObjectSize", "ETag"]] {
            assert_eq!(wanted(values).unwrap(), expected, "{values:?}");
        }
        for values in [&[][..], &[""], &[" , "]] {
            let error = wanted(values).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::InvalidRequest, "{values:?}");
        }
        for values in [&["etag"][..], &["ETag,x"], &["ETag", "Parts"]] {
            let error = wanted(values).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::InvalidArgument, "{values:?}");
        }
    }

    #[test]
    fn marker_is_not_negative() {
        for (text, marker) in [(None, 0), (Some(""), 0), (Some("0"), 0), (Some("7"), 7)] {
            assert_eq!(part_number_marker(text, PART_MARKER).unwrap(), marker);
        }
        for text in ["-2", "x", "1.5", "2736457823532448723"] {
            let error = part_number_marker(Some(text), PART_MARKER).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::InvalidArgument, "{text}");
            assert_eq!(error.field("ArgumentValue"), Some(text));
        }
    }
}
