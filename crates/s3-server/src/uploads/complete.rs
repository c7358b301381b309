//! Completes a multipart upload: its parts become one object.

use haul_file_store::{
    Attributes, Error, Etag, Event, ObjectInfo, PART_NUMBER_MAX, PartInfo, Precondition,
    TargetBucket, UploadInfo,
};
use haul_store_pool::Pool;
use md5::{Digest as _, Md5};

use crate::answer::Answer;
use crate::answer::encryption::described;
use crate::body::Body;
use crate::body::checksum::{Checksum, kind_of};
use crate::body::digests::Claims;
use crate::body::receive::Receiver;
use crate::encryption::content::listed_bytes;
use crate::encryption::customer::CustomerKey;
use crate::encryption::envelope::{Envelope, Structure};
use crate::encryption::master::Master;
use crate::encryption::new_content::NewContent;
use crate::encryption::operator::EncryptionKeys;
use crate::encryption::request::customer_key;
use crate::errors::{S3Error, S3ErrorCode, S3Result, from_store, invalid_argument, refuse};
use crate::events::new::set_size;
use crate::objects::conditions::precondition;
use crate::objects::write::unmet_condition_error;
use crate::request::fields::Fields;
use crate::request::name::ObjectName;
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::lifecycle::operations::expiration;
use crate::settings::notification::name::EventName;
use crate::stored::versions;
use crate::uploads::checksums::{UploadChecksum, object_attributes, part_bytes};
use crate::uploads::multipart::kind_in;
use crate::uploads::name::UploadName;
use crate::xml::reader::Element;
use crate::xml::writer::Xml;

/// The minimum length of each part but the last one, in bytes: 5 MiB, as in S3.
const PART_BYTES_MIN: u64 = 5 << 20;

/// The object attribute with the ID of the upload from which it was completed.
const UPLOAD: &str = "upload-id";

/// The header with the object's length.
const OBJECT_SIZE: &str = "x-amz-mp-object-size";

pub(crate) async fn complete_multipart_upload(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    let fields = &request.head.fields;
    let completion = Completion {
        name: UploadName::new(request),
        customer: customer_key(fields)?,
        precondition: precondition(fields)?,
        checksum: Checksum::in_part_fields(fields)?,
        kind: kind_in(fields)?,
        bytes: object_size(fields)?,
        event: haul.event(request, EventName::CreatedByUpload, &request.name().key),
    };
    let claims = Claims::md5_only(request)?;
    let document = Receiver::document(haul, request, body, claims).await?;
    let entries = entries(&document)?;
    let keys = haul.encryption();
    let bucket = request.name().bucket.clone();
    let (completed, expiration) = haul
        .blocking(move |store| {
            let completed = completion.execute(store, &entries, keys.as_deref())?;
            let Completed { stored, attributes, .. } = &completed;
            let expiration = expiration(store, &bucket, stored, attributes);
            Ok((completed, expiration))
        })
        .await?;
    let Completed { stored, bytes, attributes, master } = completed;
    if let Some(changes) = &request.changes {
        changes.stored(bytes, stored.etag);
    }
    let document = Xml::document("CompleteMultipartUploadResult", |xml| {
        xml.element("Location", request.location());
        xml.element("Bucket", &request.name().bucket);
        xml.element("Key", &request.name().key);
        xml.element("ETag", format_args!("\"{}\"", stored.etag));
        if let Some(checksum) = Checksum::from_attributes(&attributes) {
            checksum.write_xml(xml);
            xml.element("ChecksumType", kind_of(&attributes));
        }
    });
    let answer = Answer::xml(document)
        .with_some("x-amz-expiration", expiration)
        .with_some("x-amz-version-id", versions::response_id_of_new(stored.version_id));
    Ok(described(answer, master.as_ref()))
}

/// The parameters of a completion request.
struct Completion {
    name: UploadName,
    customer: Option<CustomerKey>,
    precondition: Precondition,
    /// The object's checksum.
    checksum: Option<Checksum>,
    /// The checksum's type.
    kind: Option<&'static str>,
    /// The object's length, in bytes.
    bytes: Option<u64>,
    event: Option<Event>,
}

struct Completed {
    stored: ObjectInfo,
    /// The object's length as clients see it.
    bytes: u64,
    attributes: Attributes,
    /// The key that seals the encrypted object's data key.
    master: Option<Master>,
}

impl Completion {
    /// Completes the upload, unless another request has done so already, possibly at the same time.
    fn execute(
        &self,
        store: &Pool,
        entries: &[Entry],
        keys: Option<&EncryptionKeys>,
    ) -> S3Result<Completed> {
        match self.complete(store, entries, keys) {
            Err(error) if error.code() == S3ErrorCode::NoSuchUpload => {
                self.repeated(store, entries, keys, error)
            }
            outcome => outcome,
        }
    }

    /// Completes the upload. If it is encrypted, seals the part numbers and the total length of the
    /// stored parts.
    fn complete(
        &self,
        store: &Pool,
        entries: &[Entry],
        keys: Option<&EncryptionKeys>,
    ) -> S3Result<Completed> {
        let ObjectName { bucket, key } = &self.name.object;
        let UploadInfo { attributes, .. } = self.name.find(store)?;
        let listed = parse_parts(entries)?;
        let customer = self.customer.as_ref();
        let new = NewContent::for_upload(keys, (bucket, key), &attributes, customer)?;
        let checksum = UploadChecksum::new(&attributes);
        checksum.check_kind(self.kind)?;
        let stored = self.name.parts(store)?;
        let chosen = select_parts(&stored, &listed, &checksum)?;
        let bytes = chosen.iter().map(|part| part_bytes(part)).sum();
        self.check_bytes(bytes)?;
        let mut attributes =
            object_attributes(attributes, &checksum, &chosen, self.checksum.as_ref())?;
        if let Some(new) = &new {
            let structure = Structure::Parts(chosen.iter().map(|part| part.number).collect());
            let stored_bytes = chosen.iter().map(|part| part.bytes).sum();
            new.envelope((bucket, key), structure, stored_bytes)?.set(&mut attributes);
        }
        attributes.set(UPLOAD, &*self.name.id);
        let parts: Vec<_> = listed.iter().map(|part| (part.number, part.etag)).collect();
        let precondition = &self.precondition;
        let mut event = self.event.clone();
        set_size(&mut event, bytes);
        let target = TargetBucket::from(bucket).with_event(event.as_ref());
        let stored = store
            .complete_upload(target, key, &self.name.id, &parts, &attributes, precondition)
            .map_err(|error| match error {
                error @ Error::NoSuchUpload { .. } => self.name.map_error(error),
                error => unmet_condition_error(store, bucket, key, precondition, error),
            })?;
        Ok(Completed { stored, bytes, attributes, master: new.map(|new| new.master) })
    }

    /// Returns the object that another request has already completed.
    ///
    /// A client that did not receive the first response repeats the request. The request succeeds
    /// if the object was completed from this upload and has the ETag of the listed parts, and if the
    /// replica confirms the object.
    fn repeated(
        &self,
        store: &Pool,
        entries: &[Entry],
        keys: Option<&EncryptionKeys>,
        missing: S3Error,
    ) -> S3Result<Completed> {
        let ObjectName { bucket, key } = &self.name.object;
        let etag = parse_parts(entries).ok().and_then(|parts| multipart_etag(&parts));
        match store.head(bucket, key) {
            Ok(done)
                if done.attributes.get(UPLOAD) == Some(&*self.name.id)
                    && etag.is_some_and(|etag| etag.has_text_of(&done.info.etag)) =>
            {
                store.confirm().map_err(from_store)?;
                let bytes = listed_bytes(store, bucket, &done.info, None)?;
                let (stored, attributes) = (done.info, done.attributes);
                let customer = self.customer.as_ref();
                let master = Envelope::of(&attributes)?
                    .map(|envelope| Master::for_recipient(&envelope.recipient, keys, customer))
                    .transpose()?;
                Ok(Completed { stored, bytes, attributes, master })
            }
            _ => Err(missing),
        }
    }

    /// Fails if the object's length differs from the length in the request.
    fn check_bytes(&self, bytes: u64) -> S3Result<()> {
        match self.bytes.filter(|stated| *stated != bytes) {
            None => Ok(()),
            Some(stated) => {
                let message = format!(
                    "The provided '{OBJECT_SIZE}' header value {stated} does not match what was \
                     computed: {bytes}"
                );
                Err(refuse(S3ErrorCode::InvalidRequest, message))
            }
        }
    }
}

/// Returns the object length in a request's headers.
fn object_size(fields: &Fields) -> S3Result<Option<u64>> {
    let Some(text) = fields.given(OBJECT_SIZE) else { return Ok(None) };
    text.parse().map(Some).map_err(|_not_a_length| {
        let why = match text.parse::<i64>() {
            Ok(_negative) => "is less than zero",
            Err(_) => "is invalid",
        };
        let message = format!("Value for {OBJECT_SIZE} header {why}: '{text}'");
        refuse(S3ErrorCode::InvalidRequest, message)
    })
}

/// A part in a request's document, as received.
#[derive(Debug)]
struct Entry {
    number: i64,
    etag: String,
    checksum: Option<Checksum>,
}

/// Reads a request's document.
fn entries(document: &[u8]) -> S3Result<Vec<Entry>> {
    const PART: &str = "Part";
    let root = Element::document(document, "CompleteMultipartUpload")?;
    let mut names = vec!["PartNumber", "ETag"];
    names.extend(Checksum::elements());
    let mut entries = Vec::new();
    for part in root.only(&[PART])?.all(PART) {
        part.only(&names)?;
        part.required("PartNumber")?;
        let number = part.number_of("PartNumber")?.unwrap_or_default();
        let etag = part.required("ETag")?.word()?.trim_matches('"').to_owned();
        entries.push(Entry { number, etag, checksum: Checksum::in_element(part)? });
    }
    if entries.is_empty() {
        return Err(crate::xml::reader::malformed("the list of parts is empty"));
    }
    Ok(entries)
}

/// A part in a request's list, parsed.
#[derive(Debug)]
struct ListedPart {
    number: u16,
    etag: Etag,
    checksum: Option<Checksum>,
}

/// Parses a request's list of parts, which must be in ascending order. If a part is repeated, its
/// last entry is used.
fn parse_parts(entries: &[Entry]) -> S3Result<Vec<ListedPart>> {
    let mut parts: Vec<ListedPart> = Vec::with_capacity(entries.len());
    for Entry { number, etag, checksum } in entries {
        let found = u16::try_from(*number).ok();
        let Some(number) = found.filter(|number| (1..=PART_NUMBER_MAX).contains(number)) else {
            let message = match number {
                ..1 => "PartNumber must be >= 1".to_owned(),
                _ => format!("PartNumber must be <= {PART_NUMBER_MAX}"),
            };
            return Err(invalid_argument("PartNumber", &number.to_string(), message));
        };
        let Ok(etag) = etag.parse() else {
            let message = format!("The ETag of part {number} is malformed");
            return Err(refuse(S3ErrorCode::InvalidPart, message)
                .with_field("PartNumber", number.to_string())
                .with_field("ETag", &**etag));
        };
        if parts.last().is_some_and(|before| before.number > number) {
            let message = "The list of parts is not in ascending order";
            return Err(refuse(S3ErrorCode::InvalidPartOrder, message));
        }
        parts.pop_if(|before| before.number == number);
        parts.push(ListedPart { number, etag, checksum: checksum.clone() });
    }
    Ok(parts)
}

/// Returns the stored parts that the list names. Fails if one is too small or differs from its
/// entry in the list.
fn select_parts<'a>(
    stored: &'a [PartInfo],
    listed: &[ListedPart],
    for_upload: &UploadChecksum,
) -> S3Result<Vec<&'a PartInfo>> {
    let mut chosen = Vec::with_capacity(listed.len());
    for ListedPart { number, etag, checksum } in listed {
        let part = stored.iter().find(|part| part.number == *number && part.etag.has_text_of(etag));
        let Some(part) = part else {
            let message = format!("Part {number} was not uploaded, or has a different ETag");
            return Err(refuse(S3ErrorCode::InvalidPart, message)
                .with_field("PartNumber", number.to_string())
                .with_field("ETag", etag.to_string()));
        };
        if let Some(checksum) = checksum {
            for_upload.check_part(part, checksum)?;
        }
        chosen.push(part);
    }
    let all_but_last = chosen.split_last().map_or(&[][..], |(_, others)| others);
    if let Some(small) = all_but_last.iter().find(|part| part_bytes(part) < PART_BYTES_MIN) {
        let (number, bytes) = (small.number, part_bytes(small));
        let message = format!(
            "Part {number} has {bytes} bytes; each part except the last needs {PART_BYTES_MIN}"
        );
        return Err(refuse(S3ErrorCode::EntityTooSmall, message)
            .with_field("ProposedSize", bytes.to_string())
            .with_field("MinSizeAllowed", PART_BYTES_MIN.to_string())
            .with_field("PartNumber", number.to_string())
            .with_field("ETag", small.etag.to_string()));
    }
    Ok(chosen)
}

/// Returns the ETag of the object with these parts.
fn multipart_etag(parts: &[ListedPart]) -> Option<Etag> {
    let mut md5 = Md5::new();
    for part in parts {
        md5.update(part.etag.md5);
    }
    Some(Etag { md5: md5.finalize().into(), parts: u16::try_from(parts.len()).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the entries in a document with these `Part` elements.
    fn read(parts: &[String]) -> S3Result<Vec<Entry>> {
        let parts = parts.concat();
        entries(format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>").as_bytes())
    }

    fn element(number: &str, etag: &str) -> String {
        format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
    }

    fn listed(parts: &[(i32, &str)]) -> S3Result<Vec<ListedPart>> {
        let parts: Vec<_> =
            parts.iter().map(|(number, etag)| element(&number.to_string(), etag)).collect();
        parse_parts(&read(&parts)?)
    }

    const ETAG: &str = "\"d41d8cd98f00b204e9800998ecf8427e\"";

    #[test]
    fn listed_parts_need_ascending_numbers_and_etags() {
        assert_eq!(listed(&[(1, ETAG), (10_000, ETAG)]).unwrap().len(), 2);
        for (parts, code) in [
            (&[][..], "MalformedXML"),
            (&[(0, ETAG)], "InvalidArgument"),
            (&[(-4, ETAG)], "InvalidArgument"),
            (&[(10_001, ETAG)], "InvalidArgument"),
            (&[(2, ETAG), (1, ETAG)], "InvalidPartOrder"),
            (&[(1, ETAG), (2, ETAG), (1, ETAG)], "InvalidPartOrder"),
            (&[(1, "\"x\"")], "InvalidPart"),
        ] {
            assert_eq!(listed(parts).unwrap_err().code().as_str(), code, "{parts:?}");
        }
    }

    #[test]
    fn entries_have_a_number_and_an_etag() {
        let bare = ETAG.trim_matches('"');
        let quoted = format!("\n&quot;{bare}&quot; ");
        let checksum = "<Part><ETag>a</ETag><PartNumber>\n2 </PartNumber>\
                        <ChecksumCRC32>y/Q5Jg==</ChecksumCRC32></Part>";
        let found = read(&[element("1", &quoted), checksum.to_owned()]).unwrap();
        assert_eq!((found[0].number, &*found[0].etag), (1, bare));
        assert_eq!((found[1].number, &*found[1].etag), (2, "a"));
        assert!(found[0].checksum.is_none() && found[1].checksum.is_some());
        for (part, code) in [
            ("<Part><PartNumber>1</PartNumber></Part>".to_owned(), "MalformedXML"),
            (format!("<Part><ETag>{bare}</ETag></Part>"), "MalformedXML"),
            (element("x", bare), "MalformedXML"),
            (element("1", &format!("{bare}</ETag><ETag>")), "MalformedXML"),
            (element("1", &format!("{bare}</ETag><Size>1</Size><ETag>")), "MalformedXML"),
            ("<Parts/>".to_owned(), "MalformedXML"),
            (
                element("1", &format!("{bare}</ETag><ChecksumMD5>!</ChecksumMD5><ETag>")),
                "MalformedXML",
            ),
        ] {
            let error = read(std::slice::from_ref(&part)).unwrap_err();
            assert_eq!(error.code().as_str(), code, "{part}");
        }
        assert_eq!(entries(b"").unwrap_err().code(), S3ErrorCode::MalformedXML);
    }

    #[test]
    fn last_entry_of_a_repeated_part_counts() {
        let other = "\"00000000000000000000000000000001\"";
        let parts = listed(&[(1, ETAG), (2, ETAG), (2, other), (3, ETAG)]).unwrap();
        assert_eq!(parts.iter().map(|part| part.number).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(parts[1].etag.to_string(), other.trim_matches('"'));
    }

    #[test]
    fn small_and_unknown_parts_are_refused() {
        let part = |number, bytes| PartInfo {
            number,
            bytes,
            modified: std::time::SystemTime::UNIX_EPOCH,
            etag: ETAG.trim_matches('"').parse().unwrap(),
            attributes: Attributes::new(),
        };
        let stored = [part(1, PART_BYTES_MIN), part(2, 7), part(3, 0)];
        let checksum = UploadChecksum::new(&Attributes::new());
        for (numbers, code) in [
            (&[1][..], None),
            (&[2], None),
            (&[1, 2], None),
            (&[1, 3], None),
            (&[1, 2, 3], Some("EntityTooSmall")),
            (&[1, 4], Some("InvalidPart")),
        ] {
            let listed = listed(&numbers.iter().map(|&n| (n, ETAG)).collect::<Vec<_>>()).unwrap();
            let refused = select_parts(&stored, &listed, &checksum).err();
            assert_eq!(refused.map(|error| error.code().as_str()), code, "{numbers:?}");
        }
    }

    #[test]
    fn stated_length_is_a_number() {
        let size = |text: &str| object_size(&[(OBJECT_SIZE, text)].into_iter().collect());
        assert_eq!((size("").unwrap(), size("0").unwrap()), (None, Some(0)));
        for (text, why) in [("-1", "less than zero"), ("x", "invalid"), ("1.5", "invalid")] {
            let error = size(text).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::InvalidRequest);
            assert!(error.message().contains(why), "{error}");
        }
    }
}
