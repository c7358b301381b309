//! Deletes objects and versions.

use std::collections::HashSet;
use std::str::FromStr;
use std::time::SystemTime;

use haul_file_store::{Deleted, Deletion, Event, ObjectInfo, VersionId};
use haul_store_pool::Pool;

use crate::access::action::Action;
use crate::access::caller::Caller;
use crate::access::rights::Right;
use crate::answer::Answer;
use crate::body::Body;
use crate::body::digests::Claims;
use crate::body::receive::Receiver;
use crate::errors::{S3Error, S3ErrorCode, S3Result, check_key, from_store, refuse};
use crate::objects::conditions::DeleteConditions;
use crate::objects::conditions::parsed;
use crate::objects::listing::page::DOCUMENT_BYTES_MAX;
use crate::objects::lock::{may_bypass, wants_bypass};
use crate::objects::write::check_bucket;
use crate::request::fields::Fields;
use crate::request::name::ObjectName;
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::notification::name::EventName;
use crate::stored::versions;
use crate::times::parse_any;
use crate::xml::reader::{Element, malformed};
use crate::xml::writer::Xml;

/// The maximum number of objects that one request can delete, as in S3.
const DELETE_MAX: usize = 1000;

/// The memory for a deletion's outcome in a response, in addition to key and version ID, in bytes.
const OUTCOME_BYTES: usize = 512;

pub(crate) async fn delete_object(haul: &Haul, request: &Request, _body: Body) -> S3Result<Answer> {
    let name = request.name().clone();
    let fields = &request.head.fields;
    check_key(&name.key)?;
    let given = request.head.query.get(versions::PARAMETER);
    let version = versions::parse(given)?;
    let conditions = conditions(fields)?;
    let (caller, bypasses) = (request.caller().clone(), wants_bypass(fields));
    let event = RemovalEvents::new(haul, request).event(&name.key, version.is_some());
    let delete = move |store: &Pool| {
        let ObjectName { bucket, key } = &name;
        let bypasses_governance = bypasses && may_bypass(&caller, store, &name)?;
        let conditions = conditions.resolve(store, bucket, key);
        let asked = Asked { version, conditions, bypasses_governance, event };
        delete_all(store, bucket, &[(key.as_str(), asked)]).remove(0)
    };
    let deleted = haul.blocking(delete).await?;
    let shown = |version: VersionId| given.map_or_else(|| version.to_string(), str::to_owned);
    let version_id = deleted.version_id.map(shown);
    let is_marker = deleted.is_delete_marker.then_some("true");
    Ok(Answer::no_content()
        .with_some(versions::DELETE_MARKER.as_str(), is_marker)
        .with_some(versions::VERSION_ID.as_str(), version_id))
}

/// Reads a deletion's conditions. Unlike a read's conditions, they protect the object: an invalid
/// one is not ignored.
fn conditions(fields: &Fields) -> S3Result<DeleteConditions> {
    let modified = parsed(fields, "x-amz-if-match-last-modified-time", parse_any)?;
    Ok(DeleteConditions {
        etag: parsed(fields, "if-match", |etag| Some(etag.to_owned()))?,
        bytes: parsed(fields, "x-amz-if-match-size", |bytes| i64::from_str(bytes.trim()).ok())?,
        modified: modified.map(Into::into),
        stored_bytes: None,
    })
}

pub(crate) async fn delete_objects(haul: &Haul, request: &Request, body: Body) -> S3Result<Answer> {
    let claims = Claims::for_document(request)?;
    let document = Receiver::document(haul, request, body, claims).await?;
    let ListedDeletions { mut objects, is_quiet } = ListedDeletions::parse(&document)?;
    drop(document);
    // As in S3, an object that is listed twice is deleted once: a second delete marker would be
    // another change.
    let mut listed = HashSet::new();
    objects.retain(|object| listed.insert(object.clone()));
    drop(listed);
    let bucket = request.name().bucket.clone();
    check_bucket(&haul.store(), &bucket)?;
    // Reserved before the deletion, which must not be rejected afterwards.
    let bytes = outcome_bytes(&objects).min(DOCUMENT_BYTES_MAX);
    let memory = haul.reserve(request.memory.as_ref(), bytes as u64).await?;
    let (caller, bypasses) = (request.caller().clone(), wants_bypass(&request.head.fields));
    let events = RemovalEvents::new(haul, request);
    let event = |object: &ListedDeletion| events.event(&object.key, object.version().is_some());
    let objects: Vec<_> = objects.into_iter().map(|object| (event(&object), object)).collect();
    let delete = move |store: &Pool| Ok(delete_listed(store, &caller, &bucket, objects, bypasses));
    let outcomes = haul.blocking(delete).await?;
    if let Some(changes) = &request.changes {
        for (object, outcome) in &outcomes {
            changes.deleted(&object.key, object.version(), outcome.as_ref().err());
        }
    }
    let document = Xml::document("DeleteResult", |xml| write_outcomes(xml, &outcomes, is_quiet));
    Ok(Answer::xml_reserved(document, memory))
}

/// Returns the approximate length of the response. An error's message repeats the key.
fn outcome_bytes(objects: &[ListedDeletion]) -> usize {
    let bytes = |object: &ListedDeletion| {
        let version_bytes = object.version().map_or(0, str::len);
        2 * object.key.len() + version_bytes + OUTCOME_BYTES
    };
    objects.iter().map(bytes).sum()
}

/// Writes the deleted objects, followed by the errors.
fn write_outcomes(xml: &mut Xml, outcomes: &[(ListedDeletion, S3Result<Deleted>)], is_quiet: bool) {
    for (object, outcome) in outcomes.iter().filter(|_| !is_quiet) {
        let Ok(deleted) = outcome else { continue };
        xml.group("Deleted", |xml| {
            xml.element("Key", &object.key);
            xml.optional("VersionId", object.version());
            if deleted.is_delete_marker {
                xml.element("DeleteMarker", true);
                xml.optional("DeleteMarkerVersionId", deleted.version_id);
            }
        });
    }
    for (object, outcome) in outcomes {
        let Err(error) = outcome else { continue };
        xml.group("Error", |xml| {
            xml.element("Key", &object.key);
            xml.optional("VersionId", object.version());
            xml.element("Code", error.code().as_str());
            xml.message(error.message());
        });
    }
}

/// The document with the objects that a request deletes.
#[derive(Debug)]
struct ListedDeletions {
    objects: Vec<ListedDeletion>,
    /// `true` if the response contains only errors.
    is_quiet: bool,
}

/// An object or version that a request deletes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ListedDeletion {
    key: String,
    version_id: Option<String>,
    etag: Option<String>,
    bytes: Option<i64>,
    modified: Option<SystemTime>,
}

impl ListedDeletions {
    fn parse(document: &[u8]) -> S3Result<Self> {
        let root = Element::document(document, "Delete")?;
        root.only(&["Object", "Quiet"])?;
        let objects = root.all("Object").map(ListedDeletion::read).collect::<S3Result<Vec<_>>>()?;
        if objects.is_empty() || objects.len() > DELETE_MAX {
            return Err(malformed(&format!("one request can delete 1 to {DELETE_MAX} objects")));
        }
        Ok(Self { objects, is_quiet: root.flag_of("Quiet")?.unwrap_or_default() })
    }
}

impl ListedDeletion {
    fn read(object: &Element) -> S3Result<Self> {
        object.only(&["Key", "VersionId", "ETag", "LastModifiedTime", "Size"])?;
        let word = |name| Ok(object.word_of(name)?.map(str::to_owned));
        let time = |text: &str| {
            let malformed = || malformed(&format!("the LastModifiedTime {text:?} is no date"));
            parse_any(text).map(Into::into).ok_or_else(malformed)
        };
        let key = object.required("Key")?.text()?.to_owned();
        if key.is_empty() {
            return Err(malformed("a Key is empty"));
        }
        Ok(Self {
            key,
            version_id: word("VersionId")?,
            etag: word("ETag")?,
            bytes: object.number_of("Size")?,
            modified: object.word_of("LastModifiedTime")?.map(time).transpose()?,
        })
    }

    /// Returns the version ID; `None` for the current object.
    fn version(&self) -> Option<&str> {
        self.version_id.as_deref().filter(|version| !version.is_empty())
    }

    fn conditions(&self) -> DeleteConditions {
        DeleteConditions {
            etag: self.etag.clone(),
            bytes: self.bytes,
            modified: self.modified,
            stored_bytes: None,
        }
    }

    /// Returns the deletion, if the client may delete the object or version.
    fn check(
        &self,
        store: &Pool,
        caller: &Caller,
        bucket: &str,
        bypasses: bool,
        event: Option<Event>,
    ) -> S3Result<Asked> {
        let version = self.version();
        let operation = if version.is_some() { "DeleteObjectVersion" } else { "DeleteObjects" };
        let caller = caller.with_version(version);
        let caller = caller.with_tags(store, bucket, (&self.key, version))?;
        caller.check(store, operation, Action::Use(Right::Delete), (bucket, &self.key))?;
        check_key(&self.key)?;
        let name = ObjectName::new(bucket, &*self.key);
        Ok(Asked {
            version: versions::parse(version)?,
            conditions: self.conditions().resolve(store, bucket, &self.key),
            bypasses_governance: bypasses && may_bypass(&caller, store, &name)?,
            event,
        })
    }
}

/// Deletes the listed objects that the client may delete; returns each object's outcome.
fn delete_listed(
    store: &Pool,
    caller: &Caller,
    bucket: &str,
    objects: Vec<(Option<Event>, ListedDeletion)>,
    bypasses: bool,
) -> Vec<(ListedDeletion, S3Result<Deleted>)> {
    let mut allowed = Vec::new();
    let mut refused = Vec::new();
    let (events, objects): (Vec<_>, Vec<_>) = objects.into_iter().unzip();
    for (object, event) in objects.iter().zip(events) {
        let checked = object.check(store, caller, bucket, bypasses, event);
        refused.push(checked.map(|asked| allowed.push((&*object.key, asked))).err());
    }
    let mut outcomes = delete_all(store, bucket, &allowed).into_iter();
    drop(allowed);
    let outcome = |refused: Option<S3Error>| match refused {
        Some(error) => Err(error),
        None => {
            let missing = || refuse(S3ErrorCode::InternalError, "The store has no outcome");
            outcomes.next().ok_or_else(missing)?
        }
    };
    let outcomes: Vec<_> = refused.into_iter().map(outcome).collect();
    objects.into_iter().zip(outcomes).collect()
}

/// A requested deletion.
struct Asked {
    /// `None` for the current object.
    version: Option<VersionId>,
    conditions: DeleteConditions,
    /// `true` if the request may delete a version that is retained in governance mode.
    bypasses_governance: bool,
    event: Option<Event>,
}

/// Makes the events of deletions.
struct RemovalEvents<'a> {
    haul: &'a Haul,
    request: &'a Request,
    has_versions: bool,
}

impl<'a> RemovalEvents<'a> {
    fn new(haul: &'a Haul, request: &'a Request) -> Self {
        let has_versions = versions::has_versions(&haul.store(), &request.name().bucket);
        Self { haul, request, has_versions }
    }

    /// Returns the event of a deletion, which creates a delete marker if it names no version.
    fn event(&self, key: &str, has_version: bool) -> Option<Event> {
        let name = match self.has_versions && !has_version {
            true => EventName::MarkerCreated,
            false => EventName::Removed,
        };
        self.haul.event(self.request, name, key)
    }
}

/// Deletes objects with one store call; returns each object's outcome. The response includes the ID
/// of a missing version, but a bucket without versions has only the ID `null`, which responses
/// omit.
fn delete_all(store: &Pool, bucket: &str, deletions: &[(&str, Asked)]) -> Vec<S3Result<Deleted>> {
    let has_versions = versions::has_versions(store, bucket);
    let tests: Vec<_> = deletions
        .iter()
        .map(|(_, asked)| |object: &ObjectInfo| asked.conditions.hold(object))
        .collect();
    let store_deletions: Vec<_> = deletions
        .iter()
        .zip(&tests)
        .map(|(&(key, ref asked), test)| {
            let test: &(dyn Fn(&ObjectInfo) -> bool + Sync) = test;
            let condition = asked.conditions.any().then_some(test);
            let bypass_governance = asked.bypasses_governance;
            let event = asked.event.as_ref();
            Deletion { key, version: asked.version, condition, bypass_governance, event }
        })
        .collect();
    let outcomes = store.delete_objects(bucket, &store_deletions).into_iter();
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DATE: &str = "Thu, 01 Jan 1970 00:01:00 GMT";

    #[test]
    fn conditions_are_those_of_the_headers() {
        let of = |fields: &[(&str, &str)]| conditions(&fields.iter().copied().collect());
        let none = of(&[("if-match", ""), ("x-amz-if-match-size", "")]).unwrap();
        assert!(!none.any());
        let all = of(&[
            ("if-match", "\"a\""),
            ("x-amz-if-match-size", "5"),
            ("x-amz-if-match-last-modified-time", DATE),
        ])
        .unwrap();
        let minute = SystemTime::UNIX_EPOCH + Duration::from_secs(60);
        assert_eq!((all.etag.as_deref(), all.bytes), (Some("\"a\""), Some(5)));
        assert_eq!(all.modified, Some(minute));
        let iso = of(&[("x-amz-if-match-last-modified-time", "1970-01-01T00:01:00.000Z")]);
        assert_eq!(iso.unwrap().modified, Some(minute));
        for (name, value) in
            [("x-amz-if-match-size", "five"), ("x-amz-if-match-last-modified-time", "yesterday")]
        {
            let refused = of(&[(name, value)]).err().unwrap();
            assert_eq!(refused.code(), S3ErrorCode::InvalidArgument, "{name}");
            assert_eq!(refused.field("ArgumentName"), Some(name));
        }
    }

    #[test]
    fn document_has_keys_as_they_are_and_other_words_without_white_space() {
        let document = format!(
            "<Delete>\n <Quiet> true </Quiet>\n <Object>\n  <Key> a b\n</Key>\n  <VersionId> null\n\
             </VersionId><ETag> \"e\" </ETag><Size> 5 </Size>\n<LastModifiedTime>\n{DATE}\n\
             </LastModifiedTime></Object><Object><Key>c</Key><VersionId/></Object></Delete>"
        );
        let ListedDeletions { objects, is_quiet } =
            ListedDeletions::parse(document.as_bytes()).unwrap();
        assert!(is_quiet);
        let [first, second] = &objects[..] else { panic!("{objects:?}") };
        assert_eq!((&*first.key, first.version()), (" a b\n", Some("null")));
        let conditions = first.conditions();
        assert_eq!((conditions.etag.as_deref(), conditions.bytes), (Some("\"e\""), Some(5)));
        assert!(conditions.modified.is_some());
        assert_eq!((&*second.key, second.version()), ("c", None));
        assert!(!second.conditions().any());
    }

    #[test]
    fn malformed_documents_are_refused() {
        let many = "<Object><Key>k</Key></Object>".repeat(DELETE_MAX + 1);
        for content in [
            "",
            "<Quiet>true</Quiet>",
            "<Object/>",
            "<Object><VersionId>null</VersionId></Object>",
            "<Object><Key></Key></Object>",
            "<Object><Key/><VersionId>null</VersionId></Object>",
            "<Object><Key>a</Key><Key>b</Key></Object>",
            "<Object><Key>a</Key><Size>x</Size></Object>",
            "<Object><Key>a</Key><LastModifiedTime>x</LastModifiedTime></Object>",
            "<Object><Key>a</Key><Name>b</Name></Object>",
            "<Object><Key>a</Key></Object><Quiet>perhaps</Quiet>",
            "<Object><Key>a</Key></Object><Other/>",
            &many,
        ] {
            let document = format!("<Delete>{content}</Delete>");
            let refused = ListedDeletions::parse(document.as_bytes()).unwrap_err();
            assert_eq!(refused.code(), S3ErrorCode::MalformedXML, "{content}");
        }
        assert!(ListedDeletions::parse(b"").is_err());
        let most = "<Object><Key>k</Key></Object>".repeat(DELETE_MAX);
        assert!(ListedDeletions::parse(format!("<Delete>{most}</Delete>").as_bytes()).is_ok());
    }

    #[test]
    fn errors_follow_the_deleted_objects() {
        let object = |key: &str, version: Option<&str>| ListedDeletion {
            key: key.to_owned(),
            version_id: version.map(str::to_owned),
            etag: None,
            bytes: None,
            modified: None,
        };
        let id = VersionId::Id(7);
        let marker = Deleted { existed: true, version_id: Some(id), is_delete_marker: true };
        let outcomes = [
            (object("a", Some("null")), Err(refuse(S3ErrorCode::AccessDenied, "no"))),
            (object("b", None), Ok(marker)),
            (object("c", Some("null")), Ok(Deleted::default())),
        ];
        let text = |is_quiet| Xml::plain("A", |xml| write_outcomes(xml, &outcomes, is_quiet));
        let error = "<Error><Key>a</Key><VersionId>null</VersionId><Code>AccessDenied</Code>\
                     <Message>no</Message></Error>";
        let deleted = format!(
            "<Deleted><Key>b</Key><DeleteMarker>true</DeleteMarker>\
             <DeleteMarkerVersionId>{id}</DeleteMarkerVersionId></Deleted>\
             <Deleted><Key>c</Key><VersionId>null</VersionId></Deleted>"
        );
        assert!(text(true).ends_with(&format!("<A>{error}</A>")), "{}", text(true));
        assert!(text(false).ends_with(&format!("<A>{deleted}{error}</A>")), "{}", text(false));
    }
}
