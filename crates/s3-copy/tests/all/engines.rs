//! Tests copies from other S3 servers than Haul.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use haul_s3_copy::{Credentials, Endpoint, Options};
use haul_testing::{Finished, skip};

use crate::server::{Running, copy};

/// Creates buckets with versions, metadata, tags, parts and many keys, once the server accepts
/// connections.
const FILL: &str = "
import sys, time, boto3
from concurrent.futures import ThreadPoolExecutor
s3 = boto3.client('s3', endpoint_url=sys.argv[1], region_name='us-east-1',
                  aws_access_key_id=sys.argv[2], aws_secret_access_key=sys.argv[3])
for attempt in range(300):
    try:
        s3.create_bucket(Bucket='plain')
        break
    except Exception as error:
        last = error
        time.sleep(0.1)
else:
    raise last
def put(number):
    s3.put_object(Bucket='plain', Key='many/%05d' % number, Body=b'x' * (number % 50))
with ThreadPoolExecutor(32) as threads:
    list(threads.map(put, range(1100)))
for key in ['a b', 'a+b', 'a%b%41', 'folder/', '\\u00e4\\u4e2d', 'x=1&y=2', 'q?#']:
    s3.put_object(Bucket='plain', Key=key, Body=b'' if key[-1] == '/' else key.encode())
s3.put_object(Bucket='plain', Key='headers', Body=b'content', ContentType='text/x-test',
              CacheControl='max-age=7', ContentDisposition='inline', ContentLanguage='de',
              Metadata={'name': 'value'}, Tagging='a=b%20c&d=e')
upload = s3.create_multipart_upload(Bucket='plain', Key='parts')['UploadId']
parts = []
for number, body in enumerate([b'a' * (6 << 20), b'b' * (6 << 20), b'c'], 1):
    part = s3.upload_part(Bucket='plain', Key='parts', UploadId=upload, PartNumber=number, Body=body)
    parts.append({'PartNumber': number, 'ETag': part['ETag']})
s3.complete_multipart_upload(Bucket='plain', Key='parts', UploadId=upload,
                             MultipartUpload={'Parts': parts})
try:
    s3.create_bucket(Bucket='versions')
    s3.put_bucket_versioning(Bucket='versions', VersioningConfiguration={'Status': 'Enabled'})
except Exception:
    sys.exit()
for number in range(3):
    for key in ['a', 'b', 'c']:
        s3.put_object(Bucket='versions', Key=key, Body=b'%d' % number * (number + 1))
    time.sleep(0.01)
s3.delete_object(Bucket='versions', Key='a')
s3.delete_object(Bucket='versions', Key='b')
s3.put_object(Bucket='versions', Key='a', Body=b'again')
";

const KEYS: (&str, &str) = ("import", "import-secret");

/// The process of another S3 server, killed on drop.
struct Engine(Child);

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts a server, and returns its URL.
fn start(program: &Path, data: &Path) -> (Engine, String) {
    // Another process could use the port before the server does, but none asks for a given one.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let port = address.port().to_string();
    let mut command = Command::new(program);
    match program.file_name().unwrap().to_str().unwrap() {
        "moto_server" => command.args(["-H", "127.0.0.1", "-p", &port]),
        "versitygw" => {
            let versions = data.join("versions");
            let buckets = data.join("buckets");
            std::fs::create_dir(&versions).unwrap();
            std::fs::create_dir(&buckets).unwrap();
            command.env("ROOT_ACCESS_KEY", KEYS.0).env("ROOT_SECRET_KEY", KEYS.1);
            command.args(["--port", &address.to_string(), "posix", "--versioning-dir"]);
            command.arg(versions).arg(buckets)
        }
        "minio" => {
            command.env("MINIO_ROOT_USER", KEYS.0).env("MINIO_ROOT_PASSWORD", KEYS.1);
            command.args(["server", "--address", &address.to_string()]).arg(data)
        }
        other => panic!("{other} is not a server that this test can start"),
    };
    let null = || Stdio::null();
    let engine = Engine(command.stdin(null()).stdout(null()).stderr(null()).spawn().unwrap());
    (engine, format!("http://{address}"))
}

#[test]
fn buckets_of_other_servers_are_copied() {
    let Some(programs) = std::env::var_os("HAUL_S3_SERVERS").filter(|list| !list.is_empty()) else {
        return skip("set HAUL_S3_SERVERS to paths of moto_server, versitygw or minio");
    };
    for program in std::env::split_paths(&programs) {
        println!("with {}", program.display());
        let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (_engine, url) = start(&program, data.path());
        let python = std::env::var_os("HAUL_PYTHON").unwrap_or_else(|| "python3".into());
        let filled = Command::new(python).args(["-c", FILL, &url, KEYS.0, KEYS.1]).output();
        Finished(filled.unwrap()).code(0);
        let to = Running::new();
        let (access_key, secret_key) = (KEYS.0.to_owned(), KEYS.1.to_owned());
        let credentials = Some(Credentials { access_key, secret_key });
        let from = Endpoint { credentials, ..Endpoint::new(&url) };
        let options = Options::new(from, to.endpoint());
        let first = copy(&options);
        println!("{first:?}");
        assert_eq!(first.verified_by_length, 0);
        assert_eq!(first.objects, 1109 + 3 * (first.buckets - 1));
        let found = to.s3.ok("GET", "/plain/headers", &[], b"");
        assert_eq!(found.field("x-amz-meta-name"), Some("value"));
        assert_eq!(found.field("x-amz-tagging-count"), Some("2"));
        assert_eq!(found.field("content-language"), Some("de"));
        let parts = to.s3.ok("GET", "/plain/parts", &[], b"");
        assert_eq!((parts.body.len(), parts.body.last()), ((12 << 20) + 1, Some(&b'c')));
        if first.buckets == 2 {
            assert_eq!(first.versions, 1109 + 12);
            assert_eq!(to.s3.send("GET", "/versions/b", &[], b"").status, 404);
            assert_eq!(to.s3.ok("GET", "/versions/c", &[], b"").body, b"222");
        }
        assert_eq!(copy(&options).versions, 0);
    }
}
