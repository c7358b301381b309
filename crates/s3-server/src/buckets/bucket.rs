//! Operations on buckets.

use haul_file_store::{
    Attributes, BucketInfo, Error, ListUploadsRequest, ListVersionsRequest, NewBucket,
    UploadListEntry,
};
use haul_store_pool::Pool;

use crate::acl::list::Acl;
use crate::acl::owner::ADMINISTRATOR;
use crate::acl::owner::Owner;
use crate::acl::requested::RequestedAcl;
use crate::acl::rules::{Ownership, check_bucket_acl};
use crate::acl::stored::encode;
use crate::answer::Answer;
use crate::body::Body;
use crate::buckets::create_configuration::CreateBucketConfiguration;
use crate::buckets::documents::receive_optional;
use crate::buckets::tags;
use crate::errors::{S3ErrorCode, S3Result, from_store, invalid_argument, refuse};
use crate::objects::listing::page::DOCUMENT_BYTES_MAX;
use crate::request::fields::Fields;
use crate::request::query::Query;
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::lifecycle::operations::{self as lifecycle, TransitionSize};
use crate::settings::ownership_controls::OwnershipControls;
use crate::settings::{ACL, OWNER, OWNERSHIP, TAGGING};
use crate::times::document_time;
use crate::xml::Document;
use crate::xml::reader::malformed;
use crate::xml::writer::Xml;

/// The region of every bucket, which is also the clients' default region.
const REGION: &str = "us-east-1";

/// The maximum number of buckets in a response.
const BUCKETS_MAX: usize = 10_000;

/// The header with a new bucket's ownership controls.
const OWNERSHIP_HEADER: &str = "x-amz-object-ownership";

/// The header that enables object lock for a new bucket.
const LOCK_HEADER: &str = "x-amz-bucket-object-lock-enabled";

/// The query parameters of ListBuckets.
const PREFIX: &str = "prefix";
const CONTINUATION_TOKEN: &str = "continuation-token";
const MAX_BUCKETS: &str = "max-buckets";
const BUCKET_REGION: &str = "bucket-region";

pub(crate) async fn create_bucket(haul: &Haul, request: &Request, body: Body) -> S3Result<Answer> {
    let (bucket, fields) = (request.name().bucket.clone(), &request.head.fields);
    if bucket.contains(".-") || bucket.contains("-.") {
        // S3 rejects such names, which the store accepts.
        let message = "In the name of a bucket, a hyphen cannot stand beside a dot";
        return Err(refuse(S3ErrorCode::InvalidBucketName, message));
    }
    let is_locked = wants_lock(fields)?;
    let requested = RequestedAcl::from_fields(fields, &|name| haul.is_user(name))?;
    let mut settings = settings_of_new(request.caller().user_name(), &requested, fields)?;
    let configuration = receive_optional::<CreateBucketConfiguration>(haul, request, body).await?;
    if let Some(tagging) = configuration.and_then(|configuration| configuration.tags) {
        tags::check(&tagging)?;
        settings.set(TAGGING, tagging.text());
    }
    let (location, arn) = (format!("/{bucket}"), format!("arn:aws:s3:::{bucket}"));
    let new = NewBucket { settings, has_object_lock: is_locked, id: None };
    let create = move |store: &Pool| create_or_confirm(store, &bucket, &new);
    haul.blocking(create).await?;
    Ok(Answer::ok().with("location", location).with("x-amz-bucket-arn", arn))
}

/// Returns `true` if the request enables object lock for a new bucket.
fn wants_lock(fields: &Fields) -> S3Result<bool> {
    match fields.given(LOCK_HEADER) {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(text) => {
            let message = format!("{LOCK_HEADER} must be true or false");
            Err(invalid_argument(LOCK_HEADER, text, message))
        }
    }
}

/// Returns a new bucket's settings: its owner, its ACL and its ownership controls.
fn settings_of_new(
    user: Option<&str>,
    requested: &RequestedAcl,
    fields: &Fields,
) -> S3Result<Attributes> {
    let mut settings: Attributes = user.map(|user| (OWNER, user)).into_iter().collect();
    let owner = user.unwrap_or(ADMINISTRATOR);
    let list = requested.resolve(owner, owner)?;
    let is_private = list == Acl::private(owner);
    if !is_private {
        settings.set(ACL, encode(&list));
    }
    if let Some(name) = fields.given(OWNERSHIP_HEADER) {
        let ownership = Ownership::parse(name).map_err(|_unknown| {
            let message = format!("Invalid {OWNERSHIP_HEADER} header: {name}");
            // As in S3, the error document lacks the value.
            let error = refuse(S3ErrorCode::InvalidArgument, message);
            error.with_field("ArgumentName", OWNERSHIP_HEADER)
        })?;
        check_bucket_acl(ownership, is_private)?;
        let controls = OwnershipControls { object_ownership: name.to_owned() };
        settings.set(OWNERSHIP, controls.text());
    }
    Ok(settings)
}

/// Creates a bucket if it does not exist. As in S3 in the region `us-east-1`, the owner can repeat
/// the creation, which changes nothing. It fails with another ACL or other tags, or with object
/// lock if the bucket has none.
fn create_or_confirm(store: &Pool, bucket: &str, new: &NewBucket) -> S3Result<()> {
    let NewBucket { settings, has_object_lock, .. } = new;
    let error = match store.create_bucket_with(bucket, new) {
        Err(error @ Error::BucketExists { .. }) => error,
        created => return created.map_err(from_store),
    };
    let present = store.bucket_settings(bucket).map_err(from_store)?;
    let differs = |name: &str| present.get(name) != settings.get(name);
    let has_other = |name: &str| settings.get(name).is_some() && differs(name);
    let message = if differs(OWNER) {
        format!("The bucket {bucket} exists and belongs to another user")
    } else if differs(ACL) || has_other(OWNERSHIP) {
        format!("The bucket {bucket} exists and has another access list or ownership")
    } else if has_other(TAGGING) {
        format!("The bucket {bucket} exists and has other tags")
    } else if *has_object_lock && !store.has_object_lock(bucket).map_err(from_store)? {
        return Err(from_store(error));
    } else {
        return store.confirm().map_err(from_store);
    };
    Err(refuse(S3ErrorCode::BucketAlreadyExists, message))
}

pub(crate) async fn delete_bucket(haul: &Haul, request: &Request, _body: Body) -> S3Result<Answer> {
    let bucket = request.name().bucket.clone();
    haul.blocking(move |store| delete_if_empty(store, &bucket).map_err(from_store)).await?;
    Ok(Answer::no_content())
}

/// Deletes a bucket that has no objects and no versions. Unfinished uploads do not prevent the
/// deletion, because a listing shows an empty bucket.
fn delete_if_empty(store: &Pool, bucket: &str) -> haul_file_store::Result<()> {
    let request = ListVersionsRequest { limit: 1, ..ListVersionsRequest::default() };
    if store.list_versions(bucket, &request)?.entries.is_empty() {
        abort_uploads(store, bucket)?;
    }
    store.delete_bucket(bucket)
}

fn abort_uploads(store: &Pool, bucket: &str) -> haul_file_store::Result<()> {
    let request = ListUploadsRequest { limit: 1000, ..ListUploadsRequest::default() };
    loop {
        let page = store.list_uploads(bucket, &request)?;
        for entry in page.entries {
            let UploadListEntry::Upload { key, id } = entry else { continue };
            match store.abort_upload(bucket, &key, &id) {
                // Another client has completed or aborted the upload meanwhile.
                Ok(()) | Err(Error::NoSuchUpload { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if !page.more {
            return Ok(());
        }
    }
}

pub(crate) async fn head_bucket(haul: &Haul, request: &Request, _body: Body) -> S3Result<Answer> {
    haul.store().bucket(&request.name().bucket).map_err(from_store)?;
    Ok(Answer::ok().with("x-amz-bucket-region", REGION))
}

pub(crate) async fn get_bucket_location(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    haul.store().bucket(&request.name().bucket).map_err(from_store)?;
    // The location constraint of S3's default region is empty.
    Ok(Answer::xml(Xml::document("LocationConstraint", |_xml| {})))
}

pub(crate) async fn put_bucket_lifecycle_configuration(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    // Missing rules are malformed; other missing documents have an error code of their own.
    let configuration = receive_optional(haul, request, body).await?;
    let configuration = configuration.ok_or_else(|| malformed("there is none"))?;
    let bucket = request.name().bucket.clone();
    let size = TransitionSize::from_fields(&request.head.fields)?;
    haul.blocking(move |store| lifecycle::put(store, &bucket, configuration, size)).await?;
    Ok(Answer::ok().with(TransitionSize::HEADER, size.name()))
}

pub(crate) async fn get_bucket_lifecycle_configuration(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let memory = haul.reserve(request.memory.as_ref(), DOCUMENT_BYTES_MAX as u64).await?;
    let bucket = request.name().bucket.clone();
    let (configuration, size) = haul.blocking(move |store| lifecycle::get(store, &bucket)).await?;
    let answer = Answer::xml_reserved(configuration.text(), memory);
    Ok(answer.with(TransitionSize::HEADER, size.name()))
}

pub(crate) async fn delete_bucket_lifecycle(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let bucket = request.name().bucket.clone();
    haul.blocking(move |store| lifecycle::delete(store, &bucket)).await?;
    Ok(Answer::no_content())
}

pub(crate) async fn list_buckets(haul: &Haul, request: &Request, _body: Body) -> S3Result<Answer> {
    let wanted = BucketQuery::parse(&request.head.query)?;
    let memory = haul.reserve(request.memory.as_ref(), DOCUMENT_BYTES_MAX as u64).await?;
    let owner = request.caller().owner();
    let (wanted, buckets) = match wanted.is_elsewhere {
        true => (wanted, Vec::new()),
        false => {
            let caller = request.caller().clone();
            let visible = move |store: &Pool| {
                let mut buckets = store.buckets().map_err(from_store)?;
                buckets.retain(|bucket| wanted.matches(&bucket.name));
                let mut visible = Vec::new();
                for bucket in buckets {
                    // May read the bucket owner from the disk.
                    if caller.sees_bucket(store, &bucket.name)? {
                        visible.push(bucket);
                    }
                }
                Ok((wanted, visible))
            };
            haul.blocking(visible).await?
        }
    };
    Ok(Answer::xml_reserved(wanted.document(buckets, &owner), memory))
}

/// The query in a ListBuckets request.
#[derive(Debug)]
struct BucketQuery {
    prefix: Option<String>,
    after: String,
    limit: usize,
    /// `true` if the client requests the buckets in another region: there are none.
    is_elsewhere: bool,
    /// `true` if the response names each bucket's region.
    with_region: bool,
}

impl BucketQuery {
    fn parse(query: &Query) -> S3Result<Self> {
        let limit = match query.given(MAX_BUCKETS).map(|text| (text, text.parse())) {
            None => BUCKETS_MAX,
            Some((_, Ok(limit))) if (1..=BUCKETS_MAX).contains(&limit) => limit,
            Some((text, _)) => {
                let message = format!(
                    "Argument {MAX_BUCKETS} must be an integer between 1 and {BUCKETS_MAX}"
                );
                return Err(invalid_argument(MAX_BUCKETS, text, message));
            }
        };
        let parameters = [PREFIX, CONTINUATION_TOKEN, MAX_BUCKETS, BUCKET_REGION];
        Ok(Self {
            prefix: query.get(PREFIX).map(str::to_owned),
            after: query.get(CONTINUATION_TOKEN).unwrap_or_default().to_owned(),
            limit,
            is_elsewhere: query.given(BUCKET_REGION).is_some_and(|region| region != REGION),
            with_region: parameters.into_iter().any(|name| query.has(name)),
        })
    }

    fn matches(&self, name: &str) -> bool {
        name.starts_with(self.prefix.as_deref().unwrap_or_default()) && *name > *self.after
    }

    /// Returns the response with the first `limit` of these buckets, which match the query.
    fn document(&self, mut buckets: Vec<BucketInfo>, owner: &Owner) -> String {
        buckets.sort_by(|a, b| a.name.cmp(&b.name));
        let more = buckets.len() > self.limit;
        buckets.truncate(self.limit);
        // A bucket name is the token: it is neither secret nor encoded.
        let token = buckets.last().filter(|_| more).map(|bucket| &bucket.name);
        Xml::document("ListAllMyBucketsResult", |xml| {
            xml.group("Buckets", |xml| {
                for bucket in &buckets {
                    xml.group("Bucket", |xml| {
                        xml.optional("BucketRegion", self.with_region.then_some(REGION));
                        xml.element("CreationDate", document_time(bucket.created));
                        xml.element("Name", &bucket.name);
                    });
                }
            });
            xml.optional("ContinuationToken", token);
            owner.write(xml, "Owner");
            xml.optional("Prefix", self.prefix.as_ref());
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn query(text: &str) -> S3Result<BucketQuery> {
        BucketQuery::parse(&Query::parse(text))
    }

    /// Returns the response for these buckets.
    fn listed(text: &str, names: &[&str]) -> String {
        let wanted = query(text).unwrap();
        let names = names.iter().filter(|name| wanted.matches(name));
        let bucket = |name: &&str| BucketInfo {
            name: (*name).to_owned(),
            created: SystemTime::UNIX_EPOCH,
            objects: 0,
            bytes: 0,
        };
        let owner = Owner { name: "ann".to_owned() };
        wanted.document(names.map(bucket).collect(), &owner)
    }

    #[test]
    fn pages_of_buckets_follow_each_other() {
        let names = ["b1", "a", "b3", "b2"];
        let page = listed("prefix=b&max-buckets=2", &names);
        let created = "<CreationDate>1970-01-01T00:00:00.000Z</CreationDate>";
        let region = "<BucketRegion>us-east-1</BucketRegion>";
        let expected = format!(
            "<Buckets><Bucket>{region}{created}<Name>b1</Name></Bucket><Bucket>{region}{created}\
             <Name>b2</Name></Bucket></Buckets><ContinuationToken>b2</ContinuationToken><Owner>\
             <ID>ann</ID><DisplayName>ann</DisplayName></Owner><Prefix>b</Prefix>\
             </ListAllMyBucketsResult>"
        );
        assert!(page.ends_with(&expected), "{page}");
        let page = listed("prefix=b&max-buckets=2&continuation-token=b2", &names);
        assert!(
            page.contains("<Name>b3</Name>") && !page.contains("<ContinuationToken>"),
            "{page}"
        );
        assert_eq!(page.matches("<Bucket>").count(), 1, "{page}");
    }

    #[test]
    fn region_is_shown_if_the_request_has_a_parameter() {
        for (text, is_shown) in [
            ("", false),
            ("x-id=ListBuckets", false),
            ("prefix=", true),
            ("max-buckets=1", true),
            ("bucket-region=us-east-1", true),
            ("continuation-token=0", true),
        ] {
            let page = listed(text, &["a"]);
            assert!(page.contains("<Name>a</Name>"), "{page}");
            assert_eq!(page.contains("<BucketRegion>"), is_shown, "{text}");
        }
        assert!(query("bucket-region=eu-west-1").unwrap().is_elsewhere);
        assert!(!query("bucket-region=us-east-1").unwrap().is_elsewhere);
    }

    #[test]
    fn invalid_numbers_of_buckets_are_refused() {
        for number in ["0", "-3", "10001", "2000000", "a"] {
            let error = query(&format!("max-buckets={number}")).unwrap_err();
            assert_eq!(error.code().as_str(), "InvalidArgument");
            let fields = (error.field("ArgumentName"), error.field("ArgumentValue"));
            assert_eq!(fields, (Some("max-buckets"), Some(number)));
        }
        assert_eq!(query("max-buckets=10000").unwrap().limit, 10_000);
        assert_eq!(query("max-buckets=").unwrap().limit, BUCKETS_MAX);
    }

    #[test]
    fn new_bucket_has_the_settings_of_its_headers() {
        let settings = |fields: &[(&str, &str)]| {
            let fields: Fields = fields.iter().copied().collect();
            settings_of_new(Some("ann"), &RequestedAcl::Absent, &fields)
        };
        let with = settings(&[("X-Amz-Object-Ownership", "BucketOwnerEnforced")]).unwrap();
        assert_eq!(with.get(OWNER), Some("ann"));
        assert!(with.get(OWNERSHIP).unwrap().contains("BucketOwnerEnforced"));
        assert_eq!(settings(&[]).unwrap().get(OWNERSHIP), None);
        let error = settings(&[("x-amz-object-ownership", "Anyone")]).unwrap_err();
        assert_eq!(error.code().as_str(), "InvalidArgument");
        assert_eq!(error.field("ArgumentName"), Some("x-amz-object-ownership"));
        let fields = |value| [("x-amz-bucket-object-lock-enabled", value)].into_iter().collect();
        for (value, expected) in [("True", Some(true)), ("false", Some(false)), ("1", None)] {
            assert_eq!(wants_lock(&fields(value)).ok(), expected, "{value}");
        }
        assert!(!wants_lock(&Fields::default()).unwrap());
    }

    #[test]
    fn creation_is_repeated_with_the_same_settings_only() {
        let dir = tempfile::tempdir().unwrap();
        let options = haul_file_store::Options::default();
        let (store, _) = Pool::open(&[dir.path().into()], &options).unwrap();
        let create = |pairs: &[(&str, &str)], is_locked| {
            let settings: Attributes = pairs.iter().copied().collect();
            let new = NewBucket { settings, has_object_lock: is_locked, id: None };
            create_or_confirm(&store, "bucket", &new).map_err(|error| error.code().as_str())
        };
        let (owner, tags) = ((OWNER, "ann"), (TAGGING, "<Tagging/>"));
        assert_eq!(create(&[owner, tags], false), Ok(()));
        assert_eq!(store.bucket_settings("bucket").unwrap().get(TAGGING), Some("<Tagging/>"));
        assert_eq!(create(&[owner, tags], false), Ok(()));
        assert_eq!(create(&[owner], false), Ok(()));
        for other in [
            [(OWNER, "ben"), tags],
            [owner, (TAGGING, "other")],
            [owner, (OWNERSHIP, "other")],
            [owner, (ACL, "other")],
        ] {
            assert_eq!(create(&other, false), Err("BucketAlreadyExists"), "{other:?}");
        }
        assert_eq!(create(&[owner], true), Err("BucketAlreadyOwnedByYou"));
    }
}
