//! Reads of an object that replaced another one after the read was authorized: the operations run
//! with the decision about the replaced object.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use haul_file_store::{Attributes, Options, Precondition, Tags};
use haul_store_pool::Pool;
use tempfile::TempDir;
use tokio::runtime::Builder;

use crate::access::authorize::Principal;
use crate::access::caller::Caller;
use crate::access::check::Allowed;
use crate::access::decision::Basis;
use crate::access::facts::{RequestFacts, RequestedLock};
use crate::access::keys::key_ring::AllKeys;
use crate::body::Body;
use crate::config::Limits;
use crate::errors::S3Error;
use crate::events::requester::Requester;
use crate::hot::HotObjects;
use crate::memory::BodyMemory;
use crate::metrics::Metrics;
use crate::objects::copy::copy_object;
use crate::objects::get_attributes::get_object_attributes;
use crate::objects::read::{get_object, head_object};
use crate::request::head::tests::head;
use crate::request::operation::Operation;
use crate::served::ServedStore;
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::POLICY;
use crate::uploads::parts::upload_part_copy;

const DENIED: &str = "the policy of the bucket denies it";
const NOT_ALLOWED: &str = "it needs the right read";

/// A bucket with an object, whose policy compares the object's tag `level`.
struct Bucket {
    haul: Haul,
    upload_id: String,
    _dir: TempDir,
}

impl Bucket {
    /// Creates the bucket. Its policy has a statement about all clients for each effect, action and
    /// condition in `statements`, and permits all writes.
    fn new(statements: &[(&str, &str, &str)]) -> Self {
        let writes = ("Allow", "PutObject*", "");
        let statements: Vec<_> =
            statements.iter().copied().chain([writes]).map(statement).collect();
        let policy = format!(r#"{{"Statement":[{}]}}"#, statements.join(","));
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Pool::open(&[dir.path().into()], &Options::default()).unwrap();
        store.create_bucket("bucket").unwrap();
        store.set_bucket_setting("bucket", POLICY, Some(&policy)).unwrap();
        let upload_id = store.start_upload("bucket", "parts", &Attributes::new()).unwrap();
        let (limits, metrics) = (Limits::default(), Arc::new(Metrics::new(None)));
        let memory = BodyMemory::new(limits.body_memory_bytes_max, Duration::from_secs(1));
        let haul = Haul {
            store: Arc::new(ServedStore::new(Arc::new(store))),
            limits,
            metrics,
            memory: Arc::new(memory),
            hot: Arc::new(HotObjects::new(0, false)),
            keys: AllKeys { administrator: None, ring: None },
            providers: None,
            encryption: None,
            events: None,
        };
        Self { haul, upload_id, _dir: dir }
    }

    /// Replaces the object with one that has this value in the tag.
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

/// Returns a client's request; the policy has authorized its read.
fn request(operation: Operation, line: &str, fields: &[(&str, &str)]) -> Request {
    let head = Arc::new(head(line, fields));
    let facts = RequestFacts {
        connection: None,
        head: Arc::clone(&head),
        prefix: None,
        user: None,
        version: None,
        request_tags: Vec::new(),
        lock: RequestedLock::default(),
        existing_tags: BTreeMap::from([("level".to_owned(), "public".to_owned())]),
    };
    let reader = Caller::new(Principal::Anonymous(None)).with_facts(facts);
    let reader = reader.with_basis(Basis::Policy);
    Request {
        head,
        operation,
        allowed: Allowed::decided(reader.clone(), Some(reader)),
        memory: None,
        changes: None,
        sha256: None,
        trailer: None,
        is_encrypted: false,
        missed: None,
        requester: Requester::default(),
        is_form: false,
    }
}

/// Executes each operation that reads the object, and returns the reasons for rejections.
fn refusals(bucket: &Bucket) -> [Option<String>; 5] {
    macro_rules! outcome {
        ($operation:ident = $variant:ident, $line:expr, $fields:expr) => {{
            let request = request(Operation::$variant, $line, $fields);
            let runtime = Builder::new_current_thread().enable_time().build().unwrap();
            let answered = $operation(&bucket.haul, &request, Body::empty());
            runtime.block_on(answered).err().map(reason)
        }};
    }
    let source = [("x-amz-copy-source", "bucket/key")];
    let attributes = [("x-amz-object-attributes", "ETag")];
    let part = format!("PUT /bucket/parts?partNumber=1&uploadId={}", bucket.upload_id);
    [
        outcome!(get_object = GetObject, "GET /bucket/key", &[]),
        outcome!(head_object = HeadObject, "HEAD /bucket/key", &[]),
        outcome!(
            get_object_attributes = GetObjectAttributes,
            "GET /bucket/key?attributes",
            &attributes
        ),
        outcome!(copy_object = CopyObject, "PUT /bucket/copy", &source),
        outcome!(upload_part_copy = UploadPartCopy, &part, &source),
    ]
}

/// Returns the end of a rejection's message.
fn reason(error: S3Error) -> String {
    assert_eq!(error.code().as_str(), "AccessDenied", "{error}");
    let reason = error.message().rsplit_once(": ");
    reason.map_or_else(String::new, |(_, reason)| reason.to_owned())
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
