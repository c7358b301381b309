//! Conditions of policies on the encryption of new objects.

use haul_s3_server::{EncryptionKey, Key};

use super::Keyed;
use super::policy::{set, statement};
use crate::client::assert_refused;
use crate::forms::Form;

const ENCRYPTION: &str = "x-amz-server-side-encryption";
const KEY_ID: &str = "x-amz-server-side-encryption-aws-kms-key-id";

/// The names by which requests can choose the key `tax`.
const TAX: [&str; 3] = ["tax", "alias/tax", "arn:aws:kms:us-east-1:1:key/tax"];

fn server() -> Keyed {
    let key = || EncryptionKey::generate().unwrap();
    let named = |name: &str| key().with_name(name).unwrap().to_text();
    Keyed::with_encryption(&(key().to_text() + &named("tax") + &named("photos")))
}

/// Makes a policy that denies to store objects with this condition, and allows it otherwise.
fn deny(keyed: &Keyed, operator: &str, key: &str, value: &str) {
    let condition = format!(r#""{operator}":{{"s3:{key}":"{value}"}}"#);
    let denied = statement("Deny", r#""*""#, "PutObject", "/*", &condition);
    set(keyed, &[denied, statement("Allow", r#""*""#, "PutObject", "/*", "")].join(","));
}

fn set_default(keyed: &Keyed, id: &str) {
    let default = format!(
        "<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault>\
         <SSEAlgorithm>aws:kms</SSEAlgorithm><KMSMasterKeyID>{id}</KMSMasterKeyID>\
         </ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>"
    );
    assert_eq!(keyed.root("PUT", "/bucket?encryption=", default.as_bytes()).status, 200);
}

/// Returns `true` if an object can be stored with these headers: by a PUT, as a copy, in parts, and
/// by a form. All of them must agree.
#[track_caller]
fn can_store(keyed: &Keyed, ann: &Key, headers: &[(&str, &str)]) -> bool {
    let copy = [&[("x-amz-copy-source", "/other/key")], headers].concat();
    let form = [&[("key", "form")], headers].concat();
    let replies = [
        keyed.send_with(ann, "PUT", "/bucket/put", headers),
        keyed.send_with(ann, "PUT", "/bucket/copy", &copy),
        keyed.send_with(ann, "POST", "/bucket/parts?uploads=", headers),
        Form::new(&form, b"hello").send(keyed.server.s3),
    ];
    for reply in &replies {
        if reply.status >= 300 {
            assert_refused(reply, 403, "AccessDenied");
        }
    }
    let stored = replies.map(|reply| reply.status < 300);
    assert!(stored.iter().all(|one| *one == stored[0]), "{stored:?}");
    stored[0]
}

#[test]
fn policy_denies_a_key_by_all_its_names_and_as_the_default() {
    let mut keyed = server();
    let ann = keyed.key("ann", &[("read", "other")]);
    let with = |id| [(ENCRYPTION, "aws:kms"), (KEY_ID, id)];
    for (operator, value) in
        TAX.map(|id| ("StringEquals", id)).into_iter().chain([("StringLike", "*/t?x")])
    {
        deny(&keyed, operator, KEY_ID, value);
        for id in TAX {
            assert!(!can_store(&keyed, &ann, &with(id)), "{id}, {value}");
        }
        assert!(can_store(&keyed, &ann, &with("photos")), "{value}");
        assert!(can_store(&keyed, &ann, &[(ENCRYPTION, "AES256")]), "{value}");
        assert!(can_store(&keyed, &ann, &[]), "{value}");
    }
    set_default(&keyed, TAX[2]);
    assert!(!can_store(&keyed, &ann, &[]));
    assert!(can_store(&keyed, &ann, &with("photos")));
    assert!(can_store(&keyed, &ann, &[(ENCRYPTION, "AES256")]));
    set_default(&keyed, "photos");
    assert!(can_store(&keyed, &ann, &[]));
}

#[test]
fn policy_can_require_a_key_that_is_the_default() {
    let mut keyed = server();
    let ann = keyed.key("ann", &[("read", "other")]);
    deny(&keyed, "StringNotEquals", KEY_ID, TAX[2]);
    assert!(!can_store(&keyed, &ann, &[]));
    assert!(can_store(&keyed, &ann, &[(ENCRYPTION, "aws:kms"), (KEY_ID, TAX[1])]));
    set_default(&keyed, TAX[0]);
    assert!(can_store(&keyed, &ann, &[]));
    assert!(!can_store(&keyed, &ann, &[(ENCRYPTION, "AES256")]));
    // Clients send parts without the headers.
    let started = keyed.send(&ann, "POST", "/bucket/big?uploads=", b"");
    let upload = started.xml("UploadId").unwrap();
    let target = format!("/bucket/big?partNumber=1&uploadId={upload}");
    assert_eq!(keyed.send(&ann, "PUT", &target, b"part").status, 200);
}

#[test]
fn policy_can_require_an_encryption_that_is_the_default() {
    let mut keyed = server();
    let ann = keyed.key("ann", &[("read", "other")]);
    deny(&keyed, "Null", ENCRYPTION, "true");
    assert!(!can_store(&keyed, &ann, &[]));
    assert!(can_store(&keyed, &ann, &[(ENCRYPTION, "AES256")]));
    set_default(&keyed, "tax");
    assert!(can_store(&keyed, &ann, &[]));
    deny(&keyed, "StringNotEquals", ENCRYPTION, "AES256");
    assert!(!can_store(&keyed, &ann, &[]));
    assert!(can_store(&keyed, &ann, &[(ENCRYPTION, "AES256")]));
}

#[test]
fn access_logs_have_the_default_encryption_of_their_bucket() {
    let keyed = server();
    let service = r#"{"Service":"logging.s3.amazonaws.com"}"#;
    let condition = format!(r#""StringEquals":{{"s3:{KEY_ID}":"{}"}}"#, TAX[1]);
    set(&keyed, &statement("Allow", service, "PutObject", "/log/*", &condition));
    let logging = "<BucketLoggingStatus><LoggingEnabled><TargetBucket>bucket</TargetBucket>\
                   <TargetPrefix>log/</TargetPrefix></LoggingEnabled></BucketLoggingStatus>";
    let configure = || keyed.root("PUT", "/other?logging=", logging.as_bytes()).status;
    assert_ne!(configure(), 200);
    set_default(&keyed, "photos");
    assert_ne!(configure(), 200);
    set_default(&keyed, TAX[2]);
    assert_eq!(configure(), 200);
}
