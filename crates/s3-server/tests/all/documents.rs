//! Settings of buckets that are documents of S3.

use crate::client::{Running, assert_refused};

#[test]
fn tags_of_a_bucket_are_stored_returned_and_deleted() {
    let server = Running::new();
    let tags = |tags: &[(&str, &str)]| {
        let tags = tags.iter().map(|(k, v)| format!("<Tag><Key>{k}</Key><Value>{v}</Value></Tag>"));
        let set = tags.collect::<String>();
        server
            .s3
            .put("/bucket?tagging", format!("<Tagging><TagSet>{set}</TagSet></Tagging>").as_bytes())
    };
    assert_refused(&server.s3.get("/bucket?tagging"), 404, "NoSuchTagSet");
    assert_refused(&tags(&[("team", "a + b")]), 204, "");
    let found = server.s3.get("/bucket?tagging");
    assert_eq!((found.all_xml("Key").len(), found.all_xml("Value")[0].as_str()), (1, "a + b"));
    assert_refused(&tags(&[("a", "1"), ("a", "2")]), 400, "InvalidTag");
    let many: Vec<_> = (0..51).map(|number| number.to_string()).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), "x")).collect();
    assert_refused(&tags(&many), 400, "BadRequest");
    assert_refused(&tags(&many[1..]), 204, "");
    assert_eq!(server.s3.get("/bucket?tagging").all_xml("Key").len(), 50);
    assert_refused(&server.s3.delete("/bucket?tagging"), 204, "");
    assert_refused(&server.s3.get("/bucket?tagging"), 404, "NoSuchTagSet");
    assert_refused(&server.s3.get("/absent?tagging"), 404, "NoSuchBucket");
}

#[test]
fn public_access_block_is_stored_returned_and_deleted() {
    let server = Running::new();
    let (target, code) = ("/bucket?publicAccessBlock", "NoSuchPublicAccessBlockConfiguration");
    assert_refused(&server.s3.get(target), 404, code);
    let block = "<PublicAccessBlockConfiguration><BlockPublicPolicy>true</BlockPublicPolicy>\
        <BlockPublicAcls>false</BlockPublicAcls></PublicAccessBlockConfiguration>";
    assert_refused(&server.s3.put(target, block.as_bytes()), 200, "");
    let found = server.s3.get(target);
    assert_eq!(found.xml("BlockPublicPolicy").as_deref(), Some("true"));
    for member in ["BlockPublicAcls", "IgnorePublicAcls", "RestrictPublicBuckets"] {
        assert_eq!(found.xml(member).as_deref(), Some("false"), "{member}");
    }
    assert_refused(&server.s3.delete(target), 204, "");
    assert_refused(&server.s3.get(target), 404, code);
}

#[test]
fn ownership_controls_are_stored_returned_and_deleted() {
    let server = Running::new();
    let target = "/bucket?ownershipControls";
    let set = |ownership: &str| {
        let rule = format!("<Rule><ObjectOwnership>{ownership}</ObjectOwnership></Rule>");
        let document = format!("<OwnershipControls>{rule}</OwnershipControls>");
        server.s3.put(target, document.as_bytes())
    };
    assert_refused(&server.s3.get(target), 404, "OwnershipControlsNotFoundError");
    assert_refused(&set("Anyone"), 400, "MalformedXML");
    assert_refused(&server.s3.get(target), 404, "OwnershipControlsNotFoundError");
    for mode in ["BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"] {
        assert_refused(&set(mode), 200, "");
        assert_eq!(server.s3.get(target).xml("ObjectOwnership").as_deref(), Some(mode));
    }
    assert_refused(&server.s3.delete(target), 204, "");
    assert_refused(&server.s3.get(target), 404, "OwnershipControlsNotFoundError");
}

#[test]
fn settings_survive_a_change_of_lifecycle_rules() {
    let server = Running::new();
    let tagging = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    assert_refused(&server.s3.put("/bucket?tagging", tagging), 204, "");
    let rules = "<LifecycleConfiguration><Rule><ID>x</ID><Filter></Filter><Status>Enabled</Status>\
        <Expiration><Days>2</Days></Expiration></Rule></LifecycleConfiguration>";
    assert_refused(&server.s3.put("/bucket?lifecycle", rules.as_bytes()), 200, "");
    assert_refused(&server.s3.delete("/bucket?lifecycle"), 204, "");
    assert_eq!(server.s3.get("/bucket?tagging").all_xml("Key"), ["a"]);
}
