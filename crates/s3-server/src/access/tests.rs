//! Reads of an object that replaced another one after the read was authorized: the operations run
//! with the decision about the replaced object.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use haul_file_store::{Attributes, Options, Precondition, Store, Tags};
use hyper::header::HeaderMap;
use hyper::http::Extensions;
use s3s::dto::{
    CopyObjectInput, CopySource, GetObjectAttributesInput, GetObjectInput, HeadObjectInput,
    UploadPartCopyInput,
};
use s3s::{S3Error, S3Request};
use tempfile::TempDir;
use tokio::runtime::Builder;

use crate::access::authorize::Principal;
use crate::access::caller::{Basis, Caller};
use crate::access::facts::{RequestFacts, RequestedLock};
use crate::access::keys::key_ring::AllKeys;
use crate::access::service::SourceReader;
use crate::body::memory::BodyMemory;
use crate::buckets::settings::POLICY;
use crate::config::Limits;
use crate::metrics::Metrics;
use crate::objects::copy::copy_object;
use crate::objects::get_attributes::get_object_attributes;
use crate::objects::read::{get_object, head_object};
use crate::served::ServedStore;
use crate::service::Haul;
use crate::uploads::parts::upload_part_copy;

const DENIED: &str = "the policy of the bucket denies it";
const NOT_ALLOWED: &str = "it needs the right read";

/// A bucket with an object, whose policy compares the tag `level` of the object.
struct Bucket {
    haul: Haul,
    upload_id: String,
    _dir: TempDir,
}

impl Bucket {
    /// Creates the bucket. Its policy has a statement about all clients for each of these effects,
    /// actions and conditions.
    fn new(statements: &[(&str, &str, &str)]) -> Self {
        let statements: Vec<_> = statements.iter().copied().map(statement).collect();
        let policy = format!(r#"{{"Statement":[{}]}}"#, statements.join(","));
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(dir.path(), Options::default()).unwrap();
        store.create_bucket("bucket").unwrap();
        store.set_bucket_setting("bucket", POLICY, Some(&policy)).unwrap();
        let upload_id = store.start_upload("bucket", "parts", &Attributes::new()).unwrap();
        let (limits, metrics) = (Limits::default(), Arc::new(Metrics::new(None)));
        let memory = BodyMemory::new(limits.body_memory_bytes_max, Duration::from_secs(1));
        let keys = AllKeys { administrator: None, ring: None };
        let store = Arc::new(ServedStore::new(Arc::new(store)));
        let haul = Haul::new(store, limits, metrics, Arc::new(memory), keys, None);
        Self { haul, upload_id, _dir: dir }
    }

    /// Replaces the object by one with this value of the tag.
    fn put(&self, level: &str) {
        let mut attributes = Attributes::new();
        attributes.set_tags(&Tags::from([("level".to_owned(), level.to_owned())]));
        let store = self.haul.store();
        store.put("bucket", "key", b"hello", &attributes, &Precondition::None).unwrap();
    }
}

fn statement((effect, action, condition): (&str, &str, &str)) -> String {
    format!(
        r#"{{"Effect":"{effect}","Principal":"*","Action":"s3:{action}",
        "Resource":"arn:aws:s3:::bucket/*","Condition":{{{condition}}}}}"#
    )
}

/// Returns a request of the client, whose read was authorized by the policy.
fn request<T>(input: T) -> S3Request<T> {
    let facts = RequestFacts {
        connection: None,
        headers: HeaderMap::new(),
        query: String::new(),
        user: None,
        version: None,
        request_tags: Vec::new(),
        lock: RequestedLock::default(),
        existing_tags: BTreeMap::from([("level".to_owned(), "public".to_owned())]),
    };
    let reader = Caller::new(Principal::Anonymous(None)).with_facts(facts);
    let reader = reader.with_basis(Basis::Policy);
    let mut extensions = Extensions::new();
    extensions.insert(reader.clone());
    extensions.insert(SourceReader(reader));
    S3Request {
        input,
        method: hyper::Method::default(),
        uri: hyper::Uri::default(),
        headers: HeaderMap::new(),
        extensions,
        credentials: None,
        region: None,
        service: None,
        trailing_headers: None,
    }
}

/// Executes each operation that reads the object, and returns the reasons of its refusals.
fn refusals(bucket: &Bucket) -> [Option<String>; 5] {
    macro_rules! outcome {
        ($operation:ident($input:ty), $key:literal $(, $field:ident = $value:expr)*) => {{
            let input = <$input>::builder().bucket("bucket".to_owned()).key($key.to_owned());
            let input = input$(.$field($value))*.build().unwrap();
            let runtime = Builder::new_current_thread().build().unwrap();
            let outcome = runtime.block_on($operation(&bucket.haul, request(input)));
            outcome.err().map(reason)
        }};
    }
    let (name, key) = ("bucket".into(), "key".into());
    let source = CopySource::Bucket { bucket: name, key, version_id: None };
    let upload = bucket.upload_id.clone();
    [
        outcome!(get_object(GetObjectInput), "key"),
        outcome!(head_object(HeadObjectInput), "key"),
        outcome!(get_object_attributes(GetObjectAttributesInput), "key"),
        outcome!(copy_object(CopyObjectInput), "copy", copy_source = source.clone()),
        outcome!(
            upload_part_copy(UploadPartCopyInput),
            "parts",
            copy_source = source,
            part_number = 1,
            upload_id = upload
        ),
    ]
}

/// Returns the end of the message of a refusal.
fn reason(error: S3Error) -> String {
    assert_eq!(error.code().as_str(), "AccessDenied", "{error}");
    let message = error.message().unwrap_or_default();
    message.rsplit_once(": ").map_or_else(String::new, |(_, reason)| reason.to_owned())
}

#[test]
fn object_without_the_tag_that_the_policy_needs_is_not_read() {
    let is_public = r#""StringEquals":{"s3:ExistingObjectTag/level":"public"}"#;
    let bucket = Bucket::new(&[("Allow", "GetObject*", is_public)]);
    bucket.put("public");
    assert_eq!(refusals(&bucket), [const { None }; 5]);
    bucket.put("secret");
    assert_eq!(refusals(&bucket), [NOT_ALLOWED; 5].map(|reason| Some(reason.to_owned())));
}

#[test]
fn object_with_a_tag_that_the_policy_denies_is_not_read() {
    let is_secret = r#""StringEquals":{"s3:ExistingObjectTag/level":"secret"}"#;
    let bucket = Bucket::new(&[("Allow", "GetObject*", ""), ("Deny", "GetObject", is_secret)]);
    bucket.put("public");
    assert_eq!(refusals(&bucket), [const { None }; 5]);
    bucket.put("secret");
    assert_eq!(refusals(&bucket), [DENIED; 5].map(|reason| Some(reason.to_owned())));
}

#[test]
fn attributes_and_tags_that_the_policy_denies_for_a_tag_are_not_read() {
    let is_secret = r#""StringEquals":{"s3:ExistingObjectTag/level":"secret"}"#;
    for (action, refused) in [("GetObjectAttributes", 2), ("GetObjectTagging", 3)] {
        let bucket = Bucket::new(&[("Allow", "GetObject*", ""), ("Deny", action, is_secret)]);
        bucket.put("secret");
        let mut expected = [const { None }; 5];
        expected[refused] = Some(DENIED.to_owned());
        assert_eq!(refusals(&bucket), expected, "{action}");
    }
}
