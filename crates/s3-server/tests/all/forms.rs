//! Uploads by forms.

use std::time::{Duration, SystemTime};

use base64_simd::STANDARD as BASE64;
use haul_s3_server::{AuditLog, Credentials, Limits, Logs};
use ring::hmac;
use time::UtcDateTime;
use time::macros::format_description;

use crate::client::{Client, Reply, Running, assert_refused, noise};
use crate::logs::RecordedLines;

const ACCESS_KEY: &str = "root";
const SECRET_KEY: &str = "root-secret";

/// A form with fields and a file.
pub(crate) struct Form {
    fields: Vec<(String, String)>,
    file: Vec<u8>,
}

impl Form {
    pub(crate) fn new(fields: &[(&str, &str)], file: &[u8]) -> Self {
        let fields = fields.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        Self { fields: fields.collect(), file: file.to_vec() }
    }

    /// Adds a policy that is valid for a minute, with these conditions and one for each field, and
    /// its signature of version 2 or 4.
    fn signed(mut self, conditions: &str, version: u8) -> Self {
        let expires = SystemTime::now() + Duration::from_secs(60);
        let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
        let expires = UtcDateTime::from(expires).format(format).unwrap();
        let day = expires[..10].replace('-', "");
        let scope = format!("{day}/us-east-1/s3/aws4_request");
        match version {
            2 => self.fields.push(("AWSAccessKeyId".into(), ACCESS_KEY.into())),
            _ => {
                self.add("x-amz-algorithm", "AWS4-HMAC-SHA256");
                self.add("x-amz-credential", &format!("{ACCESS_KEY}/{scope}"));
                self.add("x-amz-date", &format!("{day}T000000Z"));
            }
        }
        let equal =
            |(name, value): &(String, String)| format!("[\"eq\", \"${name}\", \"{value}\"]");
        let bucket = (!conditions.contains("bucket")).then(|| r#"{"bucket": "bucket"}"#.to_owned());
        let conditions = self.fields.iter().map(equal).chain([conditions.to_owned()]).chain(bucket);
        let conditions: Vec<_> = conditions.filter(|condition| !condition.is_empty()).collect();
        let conditions = conditions.join(",");
        let policy = format!("{{\"expiration\": \"{expires}\", \"conditions\": [{conditions}]}}");
        let policy = BASE64.encode_to_string(policy);
        let sign = |algorithm, key: &[u8], text: &str| {
            hmac::sign(&hmac::Key::new(algorithm, key), text.as_bytes()).as_ref().to_vec()
        };
        if version == 2 {
            let algorithm = hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY;
            let signature = sign(algorithm, SECRET_KEY.as_bytes(), &policy);
            self.add("signature", &BASE64.encode_to_string(signature));
        } else {
            let first = format!("AWS4{SECRET_KEY}").into_bytes();
            let key = scope.split('/').fold(first, |key, part| sign(hmac::HMAC_SHA256, &key, part));
            let signature = sign(hmac::HMAC_SHA256, &key, &policy);
            let digits = signature.iter().map(|byte| format!("{byte:02x}"));
            self.add("x-amz-signature", &digits.collect::<String>());
        }
        self.add("policy", &policy);
        self
    }

    fn add(&mut self, name: &str, value: &str) {
        self.fields.push((name.to_owned(), value.to_owned()));
    }

    /// Replaces the value of a field.
    fn with(mut self, name: &str, value: &str) -> Self {
        self.fields.retain(|(found, _)| found != name);
        self.add(name, value);
        self
    }

    fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for (name, value) in &self.fields {
            let head = format!("--b0\r\nContent-Disposition: form-data; name=\"{name}\"");
            body.extend(format!("{head}\r\n\r\n{value}\r\n").bytes());
        }
        body.extend(b"--b0\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.txt\"");
        body.extend(b"\r\nContent-Type: text/plain\r\n\r\n");
        body.extend(&self.file);
        body.extend(
            b"\r\n--b0\r\nContent-Disposition: form-data; name=\"submit\"\r\n\r\n\r\n--b0--\r\n",
        );
        body
    }

    pub(crate) fn send(&self, client: Client) -> Reply {
        self.send_with(client, "/bucket", &[])
    }

    fn send_with(&self, client: Client, target: &str, headers: &[(&str, &str)]) -> Reply {
        let kind = ("content-type", "multipart/form-data; boundary=b0");
        client.send("POST", target, &[&[kind], headers].concat(), &self.body())
    }
}

/// Starts a server with credentials and a bucket.
fn with_credentials() -> Running {
    let dir = Running::new().into_dir();
    let credentials = Credentials { access_key: ACCESS_KEY.into(), secret_key: SECRET_KEY.into() };
    Running::on(dir, Some(credentials), Limits::default())
}

/// Returns an object that a server with credentials has stored.
fn stored(server: Running, key: &str) -> Reply {
    Running::on(server.into_dir(), None, Limits::default()).s3.get(key)
}

#[test]
fn files_of_any_length_are_stored_with_the_headers_of_the_form() {
    let server = Running::new();
    for bytes in [0, 1, 5000, 3_000_000] {
        let file = noise(bytes);
        let fields =
            [("key", "dir/${filename}"), ("content-type", "text/x"), ("x-amz-meta-a", "b")];
        let reply = Form::new(&fields, &file).send(server.s3);
        assert_eq!((reply.status, reply.body.len()), (204, 0), "{}", reply.text());
        assert!(reply.header("location").unwrap().ends_with("/bucket/dir/f.txt"));
        let object = server.s3.get("/bucket/dir/f.txt");
        assert!(object.status == 200 && object.body == file, "{bytes} bytes");
        assert_eq!(object.header("content-type"), Some("text/x"));
        assert_eq!(object.header("x-amz-meta-a"), Some("b"));
        assert_eq!(object.header("etag"), reply.header("etag"));
    }
    let created = [("key", "k"), ("success_action_status", "201")];
    let reply = Form::new(&created, b"file").send(server.s3);
    assert_eq!(reply.status, 201);
    assert!(reply.text().contains("<Key>k</Key>"), "{}", reply.text());
    let redirected = [("key", "k"), ("success_action_redirect", "http://localhost/done")];
    let reply = Form::new(&redirected, b"file").send(server.s3);
    assert_eq!(reply.status, 303);
    assert!(reply.header("location").unwrap().starts_with("http://localhost/done?bucket=bucket&"));
}

#[test]
fn file_with_the_wrong_checksum_is_not_stored() {
    let server = Running::new();
    for (sha256, status) in [
        ("LCa0a2j/xo/5m0U8HTBBNBNCLXBkg7+g+YpeiGJm564=", 204),
        ("LCa0a2j/xo/5m0U8HTBBNBNCLXBkg7+g+YpeiGJm565=", 400),
    ] {
        let fields = [("key", sha256.get(..8).unwrap()), ("x-amz-checksum-sha256", sha256)];
        assert_eq!(Form::new(&fields, b"foo").send(server.s3).status, status, "{sha256}");
    }
}

#[test]
fn signed_forms_may_do_what_their_policy_permits() {
    for version in [2, 4] {
        let server = with_credentials();
        let form = || Form::new(&[("key", "k")], b"file");
        let lengths = "[\"content-length-range\", 1, 4], {\"bucket\": \"bucket\"}";
        let signed = || form().signed(lengths, version);
        let send = |form: Form| form.send(server.s3);
        assert_refused(&send(form()), 403, "AccessDenied");
        assert_refused(&send(signed().with("key", "other")), 403, "AccessDenied");
        assert_refused(&send(signed().with("x-amz-meta-a", "b")), 403, "AccessDenied");
        assert_refused(&send(signed().with("policy", "e30=")), 403, "SignatureDoesNotMatch");
        let unknown = if version == 2 { "AWSAccessKeyId" } else { "x-amz-credential" };
        let reply = send(signed().with(unknown, "x/20261127/us-east-1/s3/aws4_request"));
        assert_refused(&reply, 403, "InvalidAccessKeyId");
        let other = form().signed("{\"bucket\": \"another\"}", version);
        assert_refused(&send(other), 403, "AccessDenied");
        let long = Form { file: b"12345".to_vec(), ..signed() };
        assert_refused(&send(long), 400, "EntityTooLarge");
        let short = Form { file: Vec::new(), ..signed() };
        assert_refused(&send(short), 400, "EntityTooSmall");
        assert_eq!(send(signed()).status, 204);
        assert_eq!(stored(server, "/bucket/k").body, b"file");
    }
}

#[test]
fn form_has_many_fields_and_one_signature() {
    let server = with_credentials();
    let names: Vec<_> = (0..300).map(|number| format!("x-amz-meta-{number}")).collect();
    let mut fields: Vec<_> = names.iter().map(|name| (name.as_str(), "v")).collect();
    fields.push(("key", "many"));
    let form = Form::new(&fields, b"content").signed("", 4);
    assert_refused(&form.send(server.s3), 204, "");
    let form = Form::new(&[("key", "other")], b"content").signed("", 4);
    let header = "AWS4-HMAC-SHA256 Credential=x";
    let reply = form.send_with(server.s3, "/bucket", &[("authorization", header)]);
    assert_refused(&reply, 400, "InvalidArgument");
    let reply = form.send_with(server.s3, "/bucket?X-Amz-Signature=a", &[]);
    assert_refused(&reply, 400, "InvalidArgument");
    assert_eq!(stored(server, "/bucket/many").header("x-amz-meta-299"), Some("v"));
}

#[test]
fn refused_and_incomplete_forms_store_nothing() {
    let server = with_credentials();
    let signed = || Form::new(&[("key", "k")], &noise(2_000_000)).signed("", 4);
    assert_refused(
        &Form { file: noise(9), ..Form::new(&[], b"") }.send(server.s3),
        400,
        "InvalidArgument",
    );
    let body = signed().body();
    let cut = &body[..body.len() - 100];
    let kind = ("content-type", "multipart/form-data; boundary=b0");
    let reply = server.s3.send("POST", "/bucket", &[kind], cut);
    assert_refused(&reply, 400, "IncompleteBody");
    let long = [&*body, &noise(100_000)].concat();
    let reply = server.s3.send("POST", "/bucket", &[kind], &long);
    assert_refused(&reply, 400, "MalformedPOSTRequest");
    let reply = server.s3.send("POST", "/bucket/k", &[kind], &body);
    assert_refused(&reply, 405, "MethodNotAllowed");
    for (field, status, code) in [
        (("x-amz-server-side-encryption", "AES256"), 501, "NotImplemented"),
        // The date is missing, and the bucket has no object lock.
        (("x-amz-object-lock-mode", "GOVERNANCE"), 400, "InvalidArgument"),
        (("x-amz-object-lock-legal-hold", "ON"), 400, "InvalidRequest"),
    ] {
        let form = Form::new(&[("key", "k"), field], b"");
        assert_refused(&form.signed("", 4).send(server.s3), status, code);
    }
    let fields = noise(70_000).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let long = Form::new(&[("key", "k"), ("x-ignore-a", &fields)], b"");
    assert_refused(&long.send(server.s3), 400, "MaxPostPreDataLengthExceededError");
    assert_eq!(stored(server, "/bucket/k").status, 404);
}

#[test]
fn forms_are_audited_with_their_key_and_signer() {
    let lines = std::sync::Arc::new(RecordedLines::default());
    let logs = Logs { audit: Some(AuditLog::new(lines.lines())), ..Logs::default() };
    let credentials = Credentials { access_key: ACCESS_KEY.into(), secret_key: SECRET_KEY.into() };
    let server = Running::with_logs(Some(credentials), logs);
    let reply = Form::new(&[("key", "k")], b"file").signed("", 4).send(server.s3);
    assert_refused(&reply, 404, "NoSuchBucket");
    let line = lines.take(1).remove(0).to_string();
    for part in ["\"PostObject\"", "\"key\":\"k\"", "\"access_key\":\"root\"", "NoSuchBucket"] {
        assert!(line.contains(part), "{part}: {line}");
    }
}
