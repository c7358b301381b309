//! Tests that passes copy everything, and again only what changed.

use haul_s3_copy::{Credentials, Endpoint, Options, run};
use haul_testing::noise;

use crate::server::{Running, copy, copy_some, options};

const CORS: &str = "<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod>\
    <AllowedOrigin>*</AllowedOrigin></CORSRule></CORSConfiguration>";
const LIFECYCLE: &str = "<LifecycleConfiguration><Rule><ID>r</ID><Status>Enabled</Status>\
    <Filter><Prefix>old/</Prefix></Filter><Expiration><Days>3650</Days></Expiration></Rule>\
    </LifecycleConfiguration>";
const TAGS: &str =
    "<Tagging><TagSet><Tag><Key>a</Key><Value>b + c</Value></Tag></TagSet></Tagging>";

/// Keys that some encoding changes.
const ODD_KEYS: [&str; 12] = [
    "with%20space",
    "plus%2Bplus",
    "percent%25percent%2541",
    "folder/",
    "folder/in",
    "//slashes//",
    "%C3%A4%E4%B8%AD%F0%9F%98%80",
    "quote%22%27%3C%26%3E",
    "a%3D1%26b%3D2",
    "question%3Fhash%23",
    "dots/../%2E",
    "tab%09end",
];

/// Fills a bucket without versions.
fn fill(server: &Running) {
    let s3 = server.s3;
    s3.put("/plain", b"");
    for (setting, document) in [("cors", CORS), ("lifecycle", LIFECYCLE), ("tagging", TAGS)] {
        s3.put(&format!("/plain?{setting}"), document.as_bytes());
    }
    for key in ODD_KEYS {
        s3.put(&format!("/plain/{key}"), key.as_bytes());
    }
    for number in 0..1100 {
        s3.put(&format!("/plain/many/{number:05}"), &noise(number, 10));
    }
    let headers = [
        ("Content-Type", "text/x-test; charset=utf-8"),
        ("Cache-Control", "max-age=7"),
        ("Content-Disposition", "attachment; filename=\"a b\""),
        ("Content-Encoding", "gzip"),
        ("Content-Language", "de"),
        ("Expires", "Wed, 21 Oct 2037 07:28:00 GMT"),
        ("x-amz-meta-name", "value with  two spaces"),
        ("x-amz-meta-other", "2"),
        ("x-amz-tagging", "t%201=a%2Bb&u=%C3%A4"),
        ("x-amz-website-redirect-location", "/elsewhere"),
    ];
    s3.ok("PUT", "/plain/headers", &headers, b"content");
    s3.put("/plain/empty", b"");
    s3.put("/plain/large", &noise(1, 9 << 20));
    let parts = [noise(2, 6 << 20), noise(3, 6 << 20), noise(4, 100)];
    s3.put_parts("/plain/parts", &headers[..9], &parts);
    s3.put_parts("/plain/uneven", &[], &[noise(5, 5 << 20), noise(6, 7 << 20), noise(7, 9)]);
    s3.put_parts("/plain/one-part", &[], &[noise(8, 1000)]);
    s3.put("/empty-bucket", b"");
}

#[test]
fn everything_is_copied_and_a_second_pass_copies_only_changes() {
    let (from, to) = (Running::new(), Running::new());
    fill(&from);
    let options = options(&from, &to);
    let objects = 1100 + 6 + ODD_KEYS.len() as u64;
    let first = copy(&options);
    assert_eq!((first.buckets, first.objects, first.versions), (2, objects, objects));
    assert_eq!((first.skipped, first.verified_by_length), (0, 0));
    assert_eq!(first.not_carried, []);
    assert_eq!(from.s3.everything("plain"), to.s3.everything("plain"));
    assert_eq!(from.s3.everything("empty-bucket"), to.s3.everything("empty-bucket"));

    let second = copy(&options);
    assert_eq!((second.objects, second.bytes, second.skipped), (0, 0, objects));

    from.s3.put("/plain/many/00007", b"changed");
    from.s3.put("/plain/many/00008x", b"new");
    from.s3.put("/plain/zzz", b"last");
    let third = copy(&options);
    assert_eq!((third.objects, third.bytes, third.skipped), (3, 14, objects - 1));
    assert_eq!(from.s3.everything("plain"), to.s3.everything("plain"));
}

#[test]
fn extra_objects_are_deleted_only_on_request() {
    let (from, to) = (Running::new(), Running::new());
    for bucket in ["/b-1", "/b-2"] {
        from.s3.put(bucket, b"");
        to.s3.put(bucket, b"");
        to.s3.put(&format!("{bucket}/0"), b"extra");
        from.s3.put(&format!("{bucket}/1"), b"1");
        to.s3.put(&format!("{bucket}/2"), b"extra");
    }
    from.s3.enable_versioning("b-2");
    let mut options = options(&from, &to);
    let kept = copy(&options);
    assert_eq!((kept.objects, kept.deleted), (2, 0));
    options.delete = true;
    let dry = copy(&Options { dry_run: true, ..options.clone() });
    assert_eq!(dry.deleted, 4);
    assert_eq!(to.s3.send("GET", "/b-1/0", &[], b"").status, 200);
    let deleted = copy(&options);
    assert_eq!((deleted.objects, deleted.deleted), (0, 4));
    for bucket in ["b-1", "b-2"] {
        for (key, status) in [("0", 404), ("1", 200), ("2", 404)] {
            assert_eq!(to.s3.send("GET", &format!("/{bucket}/{key}"), &[], b"").status, status);
        }
    }
    assert_eq!(copy(&options).deleted, 0);
}

#[test]
fn a_dry_run_changes_nothing() {
    let (from, to) = (Running::new(), Running::new());
    from.s3.put("/b-1", b"");
    from.s3.enable_versioning("b-1");
    from.s3.put("/b-1?cors", CORS.as_bytes());
    from.s3.put("/b-1/k", b"12345");
    from.s3.put("/b-1/k", b"123");
    let (summary, lines) = copy_some(&Options { dry_run: true, ..options(&from, &to) }, u64::MAX);
    assert_eq!((summary.objects, summary.versions, summary.bytes), (1, 2, 8));
    let expected = ["BucketCreated", "versioning", "Copied", "cors"];
    assert!(lines.len() == 4 && lines.iter().zip(expected).all(|(line, it)| line.contains(it)));
    assert_eq!(to.s3.send("HEAD", "/b-1", &[], b"").status, 404);
}

#[test]
fn requests_are_signed_with_the_keys_of_each_server() {
    let keys = |name: &str| {
        let (access_key, secret_key) = (name.to_owned(), format!("{name}-secret"));
        Some(Credentials { access_key, secret_key })
    };
    let (seed, middle, to) =
        (Running::new(), Running::with(keys("middle")), Running::with(keys("target")));
    fill(&seed);
    let objects = copy(&options(&seed, &middle)).objects;
    assert_eq!(copy(&options(&middle, &to)).objects, objects);
    let back = Running::new();
    assert_eq!(copy(&options(&to, &back)).objects, objects);
    assert_eq!(seed.s3.everything("plain"), back.s3.everything("plain"));

    let wrong = Endpoint { credentials: keys("wrong"), ..to.endpoint() };
    let events = crate::server::Recorded::default();
    for (from, to) in [(middle.endpoint(), wrong.clone()), (wrong, back.endpoint())] {
        let error = run(&Options::new(from, to), &events).unwrap_err();
        assert!(error.to_string().contains("InvalidAccessKeyId"), "{error}");
        assert!(error.advice().is_some_and(|advice| advice.contains("keys")));
    }
}

#[test]
fn a_copy_cannot_start_without_its_buckets_and_servers() {
    let (from, to) = (Running::new(), Running::new());
    from.s3.put("/b-1", b"");
    let events = crate::server::Recorded::default();
    let error = |options: Options| run(&options, &events).unwrap_err().to_string();
    let named = Options { buckets: vec!["b-2".to_owned()], ..options(&from, &to) };
    assert!(error(named).contains("the source has no bucket \"b-2\""));
    let nowhere = Endpoint::new("http://127.0.0.1:1");
    let text = error(Options::new(from.endpoint(), nowhere));
    assert!(text.contains("no response to GET http://127.0.0.1:1/"), "{text}");
    let text = error(Options::new(from.endpoint(), from.endpoint()));
    assert!(text.contains("both the source and the target"), "{text}");
    assert!(error(Options::new(from.endpoint(), Endpoint::new("s3://b"))).contains("http"));
}
