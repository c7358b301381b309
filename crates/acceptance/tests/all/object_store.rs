//! Runs a session of the Rust crate `object_store` against the server.

use std::path::Path as File;
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::{AmazonS3, AmazonS3Builder, Checksum, S3CopyIfNotExists};
use object_store::path::Path;
use object_store::signer::{SignedUrlOptions, Signer};
use object_store::{
    Attribute, Attributes, Certificate, ClientOptions, Error, GetOptions, GetRange, ListResult,
    MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutPayload, WriteMultipart,
};
use reqwest::Method;

use crate::program;
use crate::server::{KEYS, Server};
use crate::tls::Certificates;

const MIB: usize = 1 << 20;

/// Returns a builder with only the address and the keys of the server, and modes that the crate
/// does not enable by default.
fn builder(server: &Server) -> AmazonS3Builder {
    // The crate leaves the choice of a provider for TLS to the program. Another test may have
    // installed the same one.
    drop(rustls::crypto::ring::default_provider().install_default());
    AmazonS3Builder::new()
        .with_endpoint(server.url())
        .with_bucket_name("acceptance")
        .with_access_key_id(KEYS.0)
        .with_secret_access_key(KEYS.1)
        .with_allow_http(true)
        .with_copy_if_not_exists(S3CopyIfNotExists::Multipart)
}

/// Sends a request with a presigned URL for the bucket.
async fn send_to_bucket(server: &Server, store: &AmazonS3, query: &str, body: &str) {
    let queries = (!query.is_empty()).then_some((query, ""));
    let options = SignedUrlOptions::default().with_query(queries);
    let (bucket, valid) = (Path::default(), Duration::from_secs(60));
    let url = store.signed_url_opts(Method::PUT, &bucket, valid, &options).await.unwrap();
    let target = format!("{}?{}", url.path(), url.query().unwrap());
    let response = server.client().request("PUT", &target, body.as_bytes()).unwrap();
    assert_eq!(response.status, 200, "{}", response.text());
}

async fn create_bucket(server: &Server, store: &AmazonS3) {
    send_to_bucket(server, store, "", "").await;
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future);
}

#[test]
fn object_store_session_passes() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with_keys(data.path(), &[]);
    block_on(async {
        let store = builder(&server).build().unwrap();
        create_bucket(&server, &store).await;
        session(&store).await;
        long_listings(&store).await;
        for checksum in [Checksum::SHA256, Checksum::CRC64NVME] {
            session(&builder(&server).with_checksum_algorithm(checksum).build().unwrap()).await;
        }
        versions(&server, &store).await;
    });
    server.stop();
    program::assert_success(&program::store("verify", data.path(), &[]));
}

#[test]
fn object_store_session_passes_over_tls() {
    let (data, certificates) = (tempfile::tempdir().unwrap(), Certificates::new());
    let server = Server::start_with_keys(data.path(), &[]);
    block_on(async { create_bucket(&server, &builder(&server).build().unwrap()).await });
    server.stop();
    let server = Server::start_with_keys(data.path(), &certificates.options());
    block_on(async {
        for unsigned in [false, true] {
            let options = trusting(&certificates.authority());
            let store = builder(&server).with_client_options(options);
            session(&store.with_unsigned_payload(unsigned).build().unwrap()).await;
        }
    });
    server.stop();
}

fn trusting(authority: &File) -> ClientOptions {
    let certificate = Certificate::from_pem(&std::fs::read(authority).unwrap()).unwrap();
    ClientOptions::new().with_root_certificate(certificate)
}

/// Calls each operation on an empty bucket, and leaves the bucket empty.
async fn session(store: &AmazonS3) {
    reads(store).await;
    conditional_reads(store).await;
    conditional_writes(store).await;
    multipart(store).await;
    attributes(store).await;
    copies(store).await;
    listings(store).await;
}

async fn content(store: &AmazonS3, path: &Path) -> Vec<u8> {
    store.get(path).await.unwrap().bytes().await.unwrap().to_vec()
}

async fn assert_missing(store: &AmazonS3, path: &Path) {
    let error = store.head(path).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    let error = store.get(path).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
}

async fn reads(store: &AmazonS3) {
    let path = Path::from("reads/ä b+c%.bin");
    let bytes: Vec<u8> = (0..=255).cycle().take(3 * MIB).collect();
    let put = store.put(&path, bytes.clone().into()).await.unwrap();
    let meta = store.head(&path).await.unwrap();
    assert_eq!((meta.size, &meta.e_tag), (3 << 20, &put.e_tag));
    assert!(content(store, &path).await == bytes);

    let range = store.get_range(&path, 1000..1_500_000).await.unwrap();
    assert!(range == bytes[1000..1_500_000]);
    let ranges = store.get_ranges(&path, &[0..10, 5..20, 3_000_000..3_000_100]).await.unwrap();
    assert_eq!(ranges, [&bytes[..10], &bytes[5..20], &bytes[3_000_000..3_000_100]]);
    for (range, expected) in [
        (GetRange::Suffix(100), &bytes[bytes.len() - 100..]),
        (GetRange::Offset(3_000_000), &bytes[3_000_000..]),
        (GetRange::Bounded(3_000_000..4_000_000), &bytes[3_000_000..]),
    ] {
        let options = GetOptions::new().with_range(Some(range));
        let got = store.get_opts(&path, options).await.unwrap().bytes().await.unwrap();
        assert!(got == expected, "{} bytes, expected {}", got.len(), expected.len());
    }
    store.get_range(&path, 4_000_000..4_000_001).await.unwrap_err();
    store.delete(&path).await.unwrap();

    let empty = Path::from("reads/empty");
    store.put(&empty, PutPayload::new()).await.unwrap();
    assert_eq!(store.head(&empty).await.unwrap().size, 0);
    assert!(content(store, &empty).await.is_empty());
    store.delete(&empty).await.unwrap();
    assert_missing(store, &empty).await;
}

async fn conditional_reads(store: &AmazonS3) {
    let path = Path::from("conditional read");
    let tag = store.put(&path, "content".into()).await.unwrap().e_tag.unwrap();
    let modified = SystemTime::from(store.head(&path).await.unwrap().last_modified);
    let earlier = modified - Duration::from_secs(3600);
    let other = "\"00000000000000000000000000000000\"";
    let options = GetOptions::new;
    for succeeds in [
        options().with_if_match(Some(&tag)),
        options().with_if_none_match(Some(other)),
        options().with_if_unmodified_since(Some(modified)),
        options().with_if_modified_since(Some(earlier)),
    ] {
        let got = store.get_opts(&path, succeeds).await.unwrap();
        assert_eq!(got.bytes().await.unwrap(), "content");
    }
    for unchanged in
        [options().with_if_none_match(Some(&tag)), options().with_if_modified_since(Some(modified))]
    {
        let error = store.get_opts(&path, unchanged).await.unwrap_err();
        assert!(matches!(error, Error::NotModified { .. }), "{error}");
    }
    for changed in
        [options().with_if_match(Some(other)), options().with_if_unmodified_since(Some(earlier))]
    {
        let error = store.get_opts(&path, changed).await.unwrap_err();
        assert!(matches!(error, Error::Precondition { .. }), "{error}");
    }
    store.delete(&path).await.unwrap();
}

async fn conditional_writes(store: &AmazonS3) {
    let path = Path::from("conditional write");
    let put = async |content: &'static str, mode: PutMode| {
        store.put_opts(&path, content.into(), mode.into()).await
    };
    let first = put("first", PutMode::Create).await.unwrap();
    let error = put("never stored", PutMode::Create).await.unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");

    let second = put("second", PutMode::Update(first.clone().into())).await.unwrap();
    let error = put("never stored", PutMode::Update(first.into())).await.unwrap_err();
    assert!(matches!(error, Error::Precondition { .. }), "{error}");
    assert_eq!(content(store, &path).await, b"second");

    store.delete(&path).await.unwrap();
    let error = put("never stored", PutMode::Update(second.into())).await.unwrap_err();
    assert!(matches!(error, Error::Precondition { .. }), "{error}");
    assert_missing(store, &path).await;

    // Of concurrent updates of the same state, only one succeeds.
    let state = put("state", PutMode::Create).await.unwrap();
    let updates = (0..8).map(|_| put("next", PutMode::Update(state.clone().into())));
    let results = futures_util::future::join_all(updates).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    store.delete(&path).await.unwrap();
}

async fn multipart(store: &AmazonS3) {
    let path = Path::from("multipart/object");
    let parts: Vec<Vec<u8>> =
        (1..=3).map(|number| vec![number; 5 * MIB + usize::from(number)]).collect();
    let mut upload = store.put_multipart(&path).await.unwrap();
    let sent = parts.iter().map(|part| upload.put_part(part.clone().into()));
    futures_util::future::try_join_all(sent.collect::<Vec<_>>()).await.unwrap();
    assert_missing(store, &path).await;
    upload.complete().await.unwrap();
    let whole = parts.concat();
    assert!(content(store, &path).await == whole);
    let boundary = 5 << 20;
    let range = store.get_range(&path, boundary - 2..boundary + 4).await.unwrap();
    assert_eq!(range.as_ref(), [1, 1, 1, 2, 2, 2]);

    let mut writer = WriteMultipart::new(store.put_multipart(&path).await.unwrap());
    for chunk in whole.chunks(1_000_003) {
        writer.wait_for_capacity(2).await.unwrap();
        writer.write(chunk);
    }
    writer.finish().await.unwrap();
    assert!(content(store, &path).await == whole);
    store.delete(&path).await.unwrap();

    let mut upload = store.put_multipart(&path).await.unwrap();
    upload.put_part("never stored".into()).await.unwrap();
    upload.abort().await.unwrap();
    assert_missing(store, &path).await;
}

async fn attributes(store: &AmazonS3) {
    let attributes = Attributes::from_iter([
        (Attribute::CacheControl, "max-age=60"),
        (Attribute::ContentDisposition, "attachment; filename=\"a b.txt\""),
        (Attribute::ContentEncoding, "gzip"),
        (Attribute::ContentLanguage, "de"),
        (Attribute::ContentType, "text/plain; charset=utf-8"),
        (Attribute::Metadata("several_words".into()), "one  two   three"),
    ]);
    let path = Path::from("attributes");
    store.put_opts(&path, "text".into(), attributes.clone().into()).await.unwrap();
    assert_eq!(store.get(&path).await.unwrap().attributes, attributes);
    store.delete(&path).await.unwrap();

    let mut upload = store.put_multipart_opts(&path, attributes.clone().into()).await.unwrap();
    upload.put_part("text".into()).await.unwrap();
    upload.complete().await.unwrap();
    assert_eq!(store.get(&path).await.unwrap().attributes, attributes);
    store.delete(&path).await.unwrap();
}

async fn copies(store: &AmazonS3) {
    let [from, to, moved] = ["from ä&+%", "copies/to", "copies/moved ?#"].map(Path::from);
    store.put(&from, "content".into()).await.unwrap();
    store.put(&to, "replaced by the copy".into()).await.unwrap();
    store.copy(&from, &to).await.unwrap();
    assert_eq!(content(store, &to).await, b"content");

    store.put(&to, "retained".into()).await.unwrap();
    let error = store.copy_if_not_exists(&from, &to).await.unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    assert_eq!(content(store, &to).await, b"retained");
    store.delete(&to).await.unwrap();
    store.copy_if_not_exists(&from, &to).await.unwrap();
    assert_eq!(content(store, &to).await, b"content");

    store.rename(&to, &moved).await.unwrap();
    assert_missing(store, &to).await;
    assert_eq!(content(store, &moved).await, b"content");

    let missing = Path::from("missing");
    for result in [
        store.copy(&missing, &to).await,
        store.copy_if_not_exists(&missing, &to).await,
        store.rename(&missing, &to).await,
    ] {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
    }
    store.delete(&from).await.unwrap();
    store.delete(&moved).await.unwrap();
}

/// Names whose order differs from that of their escaped forms.
const NAMES: &[&str] = &[
    "a b/file",
    "a%2Fb/file",
    "a/a/file",
    "a/a file",
    "a/a.file",
    "a/b&<>.file",
    "a/😀.file",
    "aa/file",
    "b",
    "日本/file",
];

async fn listings(store: &AmazonS3) {
    let mut paths: Vec<_> = NAMES.iter().map(|name| Path::parse(name).unwrap()).collect();
    paths.sort_unstable();
    for path in &paths {
        store.put(path, "content".into()).await.unwrap();
    }
    let mut listed: Vec<_> = store.list(None).try_collect().await.unwrap();
    listed.sort_unstable_by(|a, b| a.location.cmp(&b.location));
    assert!(listed.iter().map(|meta| &meta.location).eq(&paths), "{listed:?}");
    let tag = &store.head(&paths[0]).await.unwrap().e_tag;
    assert!(listed.iter().all(|meta| meta.size == 7 && meta.e_tag == *tag), "{listed:?}");

    let a = Path::from("a");
    let prefixes = [None, Some(&a)];
    let starts = ["", "a", "a/a", "a/a file", "a/😀", "b", "日本"].map(Path::from);
    for (prefix, start) in
        prefixes.iter().flat_map(|&prefix| starts.iter().map(move |s| (prefix, s)))
    {
        let listed = store.list_with_offset(prefix, start).map_ok(|meta| meta.location);
        let mut listed: Vec<_> = listed.try_collect().await.unwrap();
        listed.sort_unstable();
        let is_below = |path: &&Path| prefix.is_none_or(|prefix| path.prefix_matches(prefix));
        let expected = paths.iter().filter(is_below).filter(|path| *path > start);
        assert!(listed.iter().eq(expected), "{prefix:?} after {start}: {listed:?}");
    }

    let ListResult { objects, common_prefixes, .. } =
        store.list_with_delimiter(None).await.unwrap();
    assert_eq!(objects.iter().map(|meta| meta.location.as_ref()).collect::<Vec<_>>(), ["b"]);
    let folders = ["a", "a b", "a%2Fb", "aa", "日本"].map(|name| Path::parse(name).unwrap());
    assert_eq!(sorted(common_prefixes), folders);
    let ListResult { objects, common_prefixes, .. } =
        store.list_with_delimiter(Some(&a)).await.unwrap();
    assert_eq!((objects.len(), common_prefixes), (4, vec![Path::from("a/a")]));
    delete_all(store, &paths).await;
}

fn sorted(mut paths: Vec<Path>) -> Vec<Path> {
    paths.sort_unstable();
    paths
}

/// Deletes objects in requests for up to 1000 objects each.
async fn delete_all(store: &AmazonS3, paths: &[Path]) {
    let stream = stream::iter(paths.to_vec()).map(Ok).boxed();
    let deleted: Vec<Path> = store.delete_stream(stream).try_collect().await.unwrap();
    assert_eq!(sorted(deleted), sorted(paths.to_vec()));
}

/// Lists and deletes more objects than one response may contain.
async fn long_listings(store: &AmazonS3) {
    let paths: Vec<_> = (0..1500).map(|number| Path::from(format!("many/{number:04}"))).collect();
    let puts = stream::iter(&paths).map(|path| store.put(path, "x".into()));
    puts.buffer_unordered(16).try_for_each(async |_| Ok(())).await.unwrap();
    let listed = store.list(Some(&Path::from("many"))).map_ok(|meta| meta.location);
    assert!(listed.try_collect::<Vec<_>>().await.unwrap() == paths);
    delete_all(store, &paths).await;
    // Deleting missing objects succeeds.
    delete_all(store, &[Path::from("many/0000"), Path::from("I'm a <strange> & missing path")])
        .await;
    assert!(store.list(None).try_collect::<Vec<_>>().await.unwrap().is_empty());
}

async fn versions(server: &Server, store: &AmazonS3) {
    let enabled = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    send_to_bucket(server, store, "versioning", enabled).await;
    let path = Path::from("versions");
    let first = store.put(&path, "first".into()).await.unwrap().version;
    let second = store.put(&path, "second".into()).await.unwrap().version;
    assert!(first.is_some() && second.is_some() && first != second, "{first:?} {second:?}");
    assert_eq!(store.head(&path).await.unwrap().version, second);
    store.delete(&path).await.unwrap();
    for (version, content) in [(first, "first"), (second, "second")] {
        let got = store.get_opts(&path, GetOptions::new().with_version(version)).await.unwrap();
        assert_eq!(got.bytes().await.unwrap(), content);
    }
}
