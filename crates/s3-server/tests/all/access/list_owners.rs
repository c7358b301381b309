//! Owners of objects, the lists that are accepted, and the changes of the list of an object.

use haul_s3_server::Logs;

use super::Keyed;
use super::users::{Users, administrator, public_write, refused, statement};
use crate::client::assert_refused;
use crate::signing::hash;

#[test]
fn object_belongs_to_the_user_that_a_policy_or_a_list_allows_to_store_it() {
    let mut users = Users::new();
    let writer = users.keyed.key("writer", &[("write", "mine")]);
    let (ann, ben) = (&users.ann, &users.ben);
    users.put(&writer, "/mine/by-right", "", b"x");
    assert_eq!(users.list(ann, "/mine/by-right").0, "ann");
    users.policy(&statement("Allow", "PutObject"));
    for (mode, owner_of_given) in [("ObjectWriter", "ben"), ("BucketOwnerPreferred", "ann")] {
        assert_refused(&users.ownership(mode), 200, "");
        users.put(ben, "/mine/bens", "", b"of ben");
        let own = ("ben".to_owned(), vec!["FULL_CONTROL ben".to_owned()]);
        assert_eq!(users.list(ben, "/mine/bens"), own);
        assert_eq!(users.send(ben, "GET", "/mine/bens", b"").text(), "of ben");
        // The owner of the bucket may read the object, but not its list.
        assert_eq!(users.send(ann, "GET", "/mine/bens", b"").text(), "of ben");
        refused(&users.send(ann, "GET", "/mine/bens?acl=", b""));
        refused(&users.with(ann, "/mine/bens?acl=", &[("x-amz-acl", "public-read")], b""));
        assert_eq!(users.list(&administrator(&users), "/mine/bens"), own);
        users.set(ben, "/mine/bens", &[("x-amz-acl", "bucket-owner-read")]);
        refused(&users.send(ann, "GET", "/mine/bens?acl=", b""));
        users.set(ben, "/mine/bens", &[("x-amz-acl", "bucket-owner-full-control")]);
        assert_eq!(users.list(ann, "/mine/bens").1, ["FULL_CONTROL ben", "FULL_CONTROL ann"]);

        users.put(ben, "/mine/given", "bucket-owner-full-control", b"x");
        assert_eq!(users.list(ann, "/mine/given").0, owner_of_given, "{mode}");
        let may_read = users.send(ben, "GET", "/mine/given", b"").status == 200;
        assert_eq!(may_read, owner_of_given == "ben", "{mode}");
        let upload = users.send(ben, "POST", "/mine/parts?uploads=", b"").xml("UploadId").unwrap();
        let parts = users.keyed.root("GET", &format!("/mine/parts?uploadId={upload}"), b"");
        let owner = parts.xml("Owner").unwrap();
        assert!(owner.contains("<ID>ben</ID>"), "{owner}");
        let uploads = users.keyed.root("GET", "/mine?uploads=", b"").xml("Owner").unwrap();
        assert!(uploads.contains("<ID>ben</ID>"), "{uploads}");
    }
    users.policy(&statement("Deny", "PutObjectAcl"));
    users.setting("acl", &public_write());
    refused(&users.with(ben, "/mine/bens", &[("x-amz-acl", "public-read")], b""));
    users.put(ben, "/mine/bens", "private", b"by the list of the bucket");
    assert_eq!(users.send(ben, "GET", "/mine/bens", b"").text(), "by the list of the bucket");
}

#[test]
fn ownership_controls_can_disable_lists() {
    let users = Users::new();
    let (ann, ben) = (&users.ann, &users.ben);
    users.put(ann, "/mine/key", "public-read", b"hello");
    users.set(ann, "/mine", &[("x-amz-acl", "public-read-write")]);
    let enforced = "BucketOwnerEnforced";
    assert_refused(&users.ownership(enforced), 400, "InvalidBucketAclWithObjectOwnership");
    users.send(ben, "PUT", "/mine/bens", b"x");
    users.set(ann, "/mine", &[("x-amz-acl", "private")]);
    assert_eq!(users.anonymous("GET", "/mine/key").status, 200);
    assert_refused(&users.ownership(enforced), 200, "");
    refused(&users.anonymous("GET", "/mine/key"));
    refused(&users.send(ben, "GET", "/mine/bens", b""));
    let private = ("ann".to_owned(), vec!["FULL_CONTROL ann".to_owned()]);
    for target in ["/mine", "/mine/key", "/mine/bens"] {
        assert_eq!(users.list(ann, target), private, "{target}");
    }
    for list in ["private", "public-read"] {
        for target in ["/mine?acl=", "/mine/key?acl=", "/mine/key"] {
            let reply = users.with(ann, target, &[("x-amz-acl", list)], b"");
            assert_refused(&reply, 400, "AccessControlListNotSupported");
        }
    }
    users.put(ann, "/mine/key", "bucket-owner-full-control", b"hello");
    users.policy(&statement("Allow", "*"));
    users.put(ben, "/mine/bens", "", b"y");
    assert_eq!(users.list(ben, "/mine/bens"), private);

    let created = |list: &str, ownership: &str| {
        let headers = [("x-amz-acl", list), ("x-amz-object-ownership", ownership)];
        users.with(ann, "/new", &headers, b"")
    };
    let code = "InvalidBucketAclWithObjectOwnership";
    assert_refused(&created("public-read", enforced), 400, code);
    assert_refused(&created("private", "Anyone"), 400, "InvalidArgument");
    assert_refused(&created("private", enforced), 200, "");
    assert_refused(&created("private", "ObjectWriter"), 409, "BucketAlreadyExists");
    let found = users.send(ann, "GET", "/new?ownershipControls=", b"");
    assert_eq!(found.xml("ObjectOwnership").as_deref(), Some(enforced));
}

#[test]
fn public_access_block_refuses_and_ignores_public_lists() {
    let users = Users::new();
    let ann = &users.ann;
    users.put(ann, "/mine/key", "public-read", b"hello");
    users.set(ann, "/mine", &[("x-amz-acl", "public-read")]);
    let block = |setting: &str| {
        let name = "PublicAccessBlockConfiguration";
        users
            .setting("publicAccessBlock", &format!("<{name}><{setting}>true</{setting}></{name}>"));
    };
    block("BlockPublicAcls");
    for list in ["public-read", "public-read-write", "authenticated-read"] {
        for target in ["/mine?acl=", "/mine/key?acl=", "/mine/key"] {
            refused(&users.with(ann, target, &[("x-amz-acl", list)], b""));
        }
        let copy = [("x-amz-acl", list), ("x-amz-copy-source", "/mine/key")];
        refused(&users.with(ann, "/mine/copy", &copy, b""));
    }
    users.put(ann, "/mine/other", "private", b"x");
    assert_eq!(users.anonymous("GET", "/mine/key").status, 200, "present lists remain");
    block("IgnorePublicAcls");
    refused(&users.anonymous("GET", "/mine/key"));
    refused(&users.send(&users.ben, "GET", "/mine", b""));
    users.set(ann, "/mine/key", &[("x-amz-grant-read", "id=ben")]);
    assert_eq!(users.send(&users.ben, "GET", "/mine/key", b"").text(), "hello");
}

#[test]
fn client_that_may_only_write_cannot_give_access_to_others() {
    let mut users = Users::new();
    let writer = users.keyed.key("writer", &[("read,write,list,delete", "mine")]);
    let admin = users.keyed.key("admin", &[("admin", "mine")]);
    for list in ["private", "bucket-owner-full-control", "bucket-owner-read"] {
        users.put(&writer, "/mine/key", list, b"x");
    }
    for header in [("x-amz-acl", "public-read"), ("x-amz-grant-read", "id=ben")] {
        refused(&users.with(&writer, "/mine/key", &[header], b"y"));
        refused(&users.with(&writer, "/mine/key?acl=", &[header], b""));
        let copy = [("x-amz-copy-source", "/mine/key"), header];
        refused(&users.with(&writer, "/mine/copy", &copy, b""));
        let signer = users.keyed.signer(&writer);
        let target = "/mine/key?uploads=";
        refused(&signer.send_with("POST", target, &hash(b""), &[header], |_| Vec::new()));
    }
    assert_eq!(users.send(&writer, "GET", "/mine/key", b"").text(), "x");
    users.put(&admin, "/mine/key", "public-read", b"z");
    assert_eq!(users.anonymous("GET", "/mine/key").text(), "z");
    // The holder of a presigned URL cannot add a list.
    let url = users.keyed.signer(&users.ann).presign("PUT", "/mine/upload", 0, 60);
    let s3 = users.keyed.server.s3;
    refused(&s3.send("PUT", &url, &[("x-amz-acl", "public-read")], b"x"));
    refused(&s3.send("PUT", &url, &[("x-amz-copy-source", "/mine/key")], b""));
    assert_eq!(s3.send("PUT", &url, &[], b"x").status, 200);
}

#[test]
fn list_of_an_object_stays_when_its_tags_change_and_is_not_copied() {
    let users = Users::new();
    let ann = &users.ann;
    let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    users.put(ann, "/mine/key", "public-read", b"hello");
    let before = users.send(ann, "GET", "/mine/key", b"");
    assert_refused(&users.document(ann, "/mine/key?tagging=", tags), 200, "");
    assert_eq!(users.anonymous("GET", "/mine/key").text(), "hello");
    users.set(ann, "/mine/key", &[("x-amz-acl", "authenticated-read")]);
    let after = users.send(ann, "GET", "/mine/key", b"");
    for name in ["etag", "last-modified", "content-type"] {
        assert_eq!(before.header(name), after.header(name));
    }
    assert_eq!(after.header("x-amz-tagging-count"), Some("1"));
    assert_eq!(users.send(&users.ben, "GET", "/mine/key", b"").text(), "hello");
    assert_refused(&users.keyed.copy(ann, "/mine/key", "/mine/copy"), 200, "");
    refused(&users.send(&users.ben, "GET", "/mine/copy", b""));
    let copy = [("x-amz-copy-source", "/mine/key"), ("x-amz-acl", "public-read")];
    assert_refused(&users.with(ann, "/mine/copy", &copy, b""), 200, "");
    assert_eq!(users.anonymous("GET", "/mine/copy").text(), "hello");

    let big = vec![7; 5 << 20];
    let signer = users.keyed.signer(ann);
    let list = [("x-amz-acl", "public-read")];
    let start = signer.send_with("POST", "/mine/big?uploads=", &hash(b""), &list, |_| Vec::new());
    let upload = start.xml("UploadId").unwrap();
    let part = users.send(ann, "PUT", &format!("/mine/big?partNumber=1&uploadId={upload}"), &big);
    let parts = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part>\
         </CompleteMultipartUpload>",
        part.header("etag").unwrap()
    );
    let target = format!("/mine/big?uploadId={upload}");
    assert_eq!(users.send(ann, "POST", &target, parts.as_bytes()).status, 200);
    assert_eq!(users.anonymous("GET", "/mine/big").body(), big);
    users.set(ann, "/mine/big", &[("x-amz-acl", "private")]);
    refused(&users.anonymous("GET", "/mine/big"));
    assert_eq!(users.send(ann, "GET", "/mine/big", b"").body(), big);
}

#[test]
fn each_version_has_its_own_list_which_survives_a_restart() {
    let users = Users::new();
    let ann = &users.ann;
    let enabled = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    users.setting("versioning", enabled);
    let put = |body: &[u8]| {
        let reply = users.send(ann, "PUT", "/mine/key", body);
        reply.header("x-amz-version-id").unwrap().to_owned()
    };
    let (first, second) = (put(b"first"), put(b"second"));
    let of = |version: &str| format!("/mine/key?versionId={version}");
    users.set(ann, &of(&first), &[("x-amz-acl", "public-read")]);
    assert_eq!(users.anonymous("GET", &of(&first)).text(), "first");
    refused(&users.anonymous("GET", "/mine/key"));
    users.set(ann, "/mine/key", &[("x-amz-grant-read", "id=ben")]);
    let lists =
        |users: &Users| [&first, &second].map(|version| users.list(&users.ann, &of(version)).1);
    let before = lists(&users);
    assert_eq!(before[1], ["READ ben"]);
    assert_eq!(users.send(ann, "GET", "/mine?versions=", b"").all_xml("VersionId").len(), 3);
    users.set(ann, "/mine", &[("x-amz-grant-read", "id=carl")]);
    let bucket = users.list(ann, "/mine");

    let Users { keyed: Keyed { server, list, .. }, ann, ben, carl } = users;
    let keyed = Keyed::on(server.into_dir(), list, Logs::default());
    let users = Users { keyed, ann, ben, carl };
    assert_eq!((lists(&users), users.list(&users.ann, "/mine")), (before, bucket));
    assert_eq!(users.send(&users.ben, "GET", "/mine/key", b"").text(), "second");
    refused(&users.send(&users.carl, "GET", "/mine/key", b""));
}
