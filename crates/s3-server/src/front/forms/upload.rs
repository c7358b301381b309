//! Turns a form into the PUT of an object, and the PUT's response into the form's response.

use form_urlencoded::Serializer;
use haul_http_engine::RequestBody;
use http::header::{ETAG, HeaderName, HeaderValue, LOCATION};
use http::{Method, StatusCode};
use time::OffsetDateTime;

use crate::access::authorize::Principal;
use crate::answer::{Answer, Content};
use crate::audit::Changes;
use crate::auth::canonical::push_encoded;
use crate::body::Body;
use crate::errors::{S3ErrorCode, S3Result, internal, invalid_argument, refuse};
use crate::front::forms::fields::FormFields;
use crate::front::forms::policy::FormPolicy;
use crate::front::forms::receive::Form;
use crate::front::forms::signature::{missing, signer};
use crate::request::fields::{Fields, SDK_ALGORITHM};
use crate::request::head::Head;
use crate::request::name::ObjectName;
use crate::request::operation::COPY_SOURCE;
use crate::request::query::Query;
use crate::service::Haul;
use crate::xml::Document;
use crate::xml::tagging::Tagging;
use crate::xml::writer::Xml;

/// The form fields that become headers with the same name. All fields with the prefix do, too.
const HEADERS: [&str; 7] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-md5",
    "content-type",
    "expires",
];
const HEADER_PREFIX: &str = "x-amz-";

/// The fields with the prefix that belong to the signature.
const SIGNATURE: [&str; 5] = [
    "x-amz-algorithm",
    "x-amz-credential",
    "x-amz-date",
    "x-amz-security-token",
    "x-amz-signature",
];

/// The request headers that describe the client or the request body, which is the form.
const FORM_HEADERS: [&str; 4] = ["authorization", "content-length", "expect", "transfer-encoding"];

/// The form field that names the checksum algorithm; the header is [`SDK_ALGORITHM`].
const ALGORITHM: &str = "x-amz-checksum-algorithm";

/// A form, as the PUT of an object. Its policy and signature were verified.
pub(crate) struct Upload {
    pub(crate) head: Head,
    pub(crate) principal: Principal,
    /// The file in the form.
    pub(crate) body: Body,
    pub(crate) answer: FormAnswer,
}

impl Upload {
    /// Receives a form's fields up to its file, and verifies its policy and its signature.
    ///
    /// # Errors
    /// If the form is malformed, or is rejected before its file is received.
    pub(crate) async fn receive(
        haul: &Haul,
        head: &Head,
        body: RequestBody,
        changes: Option<&Changes>,
        is_encrypted: bool,
    ) -> S3Result<Self> {
        let bucket = &head.name.bucket;
        if bucket.is_empty() || !head.name.key.is_empty() {
            let message = "Forms are sent to the URL of a bucket";
            return Err(refuse(S3ErrorCode::MethodNotAllowed, message));
        }
        let Form { fields, mut file } =
            Form::receive(head, body, haul.limits().stall_time_max).await?;
        let name = ObjectName::new(bucket, key(&fields)?);
        let principal = match haul.keys.is_empty() {
            true => Principal::Open,
            false => match signer(&haul.keys, &fields)? {
                Some(key) => Principal::Key(key),
                None => Principal::Anonymous(haul.keys.file_keys()),
            },
        };
        if let Some(changes) = changes {
            changes.set_form(&name.key, principal.access_key());
        }
        if let Some(policy) = fields.get("policy") {
            let policy = FormPolicy::parse(policy)?;
            policy.check(&fields, bucket, OffsetDateTime::now_utc())?;
            file = file.with_lengths(policy.lengths());
        }
        let scheme = if is_encrypted { "https" } else { "http" };
        let answer = FormAnswer::new(&fields, &name, head, scheme);
        let head = put_request_head(head, name, &fields)?;
        Ok(Self { head, principal, body: Body::Form(Box::pin(file)), answer })
    }
}

/// Returns the key in a form.
fn key(fields: &FormFields) -> S3Result<&str> {
    let key = fields.get("key").ok_or_else(|| missing("key"))?;
    if key.is_empty() {
        let message = "User key must have a length greater than 0.";
        return Err(invalid_argument("key", "", message));
    }
    Ok(key)
}

fn put_request_head(head: &Head, name: ObjectName, form: &FormFields) -> S3Result<Head> {
    let path = format!("/{name}");
    let mut target = String::with_capacity(path.len());
    push_encoded(&mut target, &path);
    Ok(Head {
        method: Method::PUT,
        target,
        path: Some(path),
        query: Query::default(),
        fields: put_fields(&head.fields, form)?,
        host: head.host.clone(),
        name,
        is_old: head.is_old,
        is_website: false,
    })
}

/// Returns the headers of the PUT for a form: the request headers that do not concern the object,
/// and the form fields that do.
fn put_fields(request: &Fields, form: &FormFields) -> S3Result<Fields> {
    check_checksum(form)?;
    let mut fields = request.clone();
    // Only the form's fields have passed the policy's conditions.
    fields.retain(|name| !FORM_HEADERS.contains(&name) && !is_header(name));
    for (field, value) in form.iter() {
        let (name, value) = match field {
            "acl" => ("x-amz-acl", value.to_owned()),
            "tagging" => ("x-amz-tagging", tagging(value)?),
            ALGORITHM => (SDK_ALGORITHM, value.to_owned()),
            _ if SIGNATURE.contains(&field) || !is_header(field) => continue,
            _ if field.starts_with(COPY_SOURCE) => {
                let message = "You can only specify a copy source header for copy requests.";
                return Err(invalid_argument(field, value, message));
            }
            _ => (field, value.to_owned()),
        };
        let is_text = value.bytes().all(|byte| byte >= b' ' && byte != 0x7f || byte == b'\t');
        if !is_text || HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Err(invalid_argument(field, &value, "The field cannot be a header"));
        }
        fields.set(name, &value);
    }
    Ok(fields)
}

/// Rejects a form that names a checksum algorithm, but has no checksum.
fn check_checksum(form: &FormFields) -> S3Result<()> {
    let Some(algorithm) = form.get(ALGORITHM) else { return Ok(()) };
    let name = format!("x-amz-checksum-{}", algorithm.to_ascii_lowercase());
    if name != ALGORITHM && form.get(&name).is_some() {
        return Ok(());
    }
    let message = format!("{ALGORITHM} is {algorithm}, but there is no field {name}");
    Err(refuse(S3ErrorCode::InvalidRequest, message))
}

/// Returns `true` for the form fields that are headers of a PUT.
fn is_header(name: &str) -> bool {
    HEADERS.contains(&name) || name.starts_with(HEADER_PREFIX)
}

/// Returns the `x-amz-tagging` header for the form field `tagging`.
fn tagging(xml: &str) -> S3Result<String> {
    let Tagging(tags) = Tagging::parse(xml.as_bytes())?;
    Ok(Serializer::new(String::new()).extend_pairs(tags).finish())
}

/// The response that a form requests.
#[derive(Debug)]
pub(crate) struct FormAnswer {
    status: StatusCode,
    redirect: Option<String>,
    name: ObjectName,
    /// The object's URL.
    location: String,
}

impl FormAnswer {
    fn new(fields: &FormFields, name: &ObjectName, head: &Head, scheme: &'static str) -> Self {
        let status = match fields.get("success_action_status") {
            Some("200") => StatusCode::OK,
            Some("201") => StatusCode::CREATED,
            _ => StatusCode::NO_CONTENT,
        };
        let redirect = fields.get("success_action_redirect").or_else(|| fields.get("redirect"));
        // Other redirects are ignored, as in S3.
        let is_web = |url: &&str| {
            (url.starts_with("http://") || url.starts_with("https://"))
                && HeaderValue::from_str(url).is_ok()
        };
        let mut location = format!("{scheme}://{}/", head.host.as_deref().unwrap_or_default());
        // If the host names the bucket, the path is `/`.
        match head.path.as_deref() {
            Some("/") => push_encoded(&mut location, &name.key),
            _ => push_encoded(&mut location, &name.to_string()),
        }
        let redirect = redirect.filter(is_web).map(str::to_owned);
        Self { status, redirect, name: name.clone(), location }
    }

    /// Returns the response to the form, from the response to the PUT.
    ///
    /// # Errors
    /// `InternalError` if no URL can have the request's host.
    pub(crate) fn apply(self, mut answer: Answer) -> S3Result<Answer> {
        let etag = answer.headers.get(ETAG).and_then(|etag| etag.to_str().ok());
        let etag = etag.unwrap_or_default().to_owned();
        let (status, location) = match &self.redirect {
            None => (self.status, self.location.clone()),
            Some(url) => {
                let ObjectName { bucket, key } = &self.name;
                let mut query = Serializer::new(String::new());
                query.append_pair("bucket", bucket).append_pair("key", key);
                let query = query.append_pair("etag", &etag).finish();
                let separator = if url.contains('?') { '&' } else { '?' };
                (StatusCode::SEE_OTHER, format!("{url}{separator}{query}"))
            }
        };
        answer.status = status;
        answer.headers.insert(LOCATION, HeaderValue::from_str(&location).map_err(internal)?);
        if status == StatusCode::CREATED {
            answer.add("content-type", "application/xml");
            answer.content = Content::Bytes(self.document(&etag).into());
        }
        Ok(answer)
    }

    /// Returns the document in a response with status 201, which has no namespace in S3.
    fn document(&self, etag: &str) -> String {
        Xml::plain("PostResponse", |xml| {
            xml.element("Location", &self.location);
            xml.element("Bucket", &self.name.bucket);
            xml.element("Key", &self.name.key);
            xml.element("ETag", etag);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::domains::Domains;
    use crate::request::head::tests::head;

    fn put(request: &[(&str, &str)], form: FormFields) -> S3Result<Head> {
        let request = head("POST /b?ignored", request);
        put_request_head(&request, ObjectName::new("b", "a b/\u{e4}"), &form)
    }

    #[test]
    fn fields_of_the_put_are_those_of_the_form() {
        let request = [
            ("Host", "localhost:1"),
            ("Content-Type", "multipart/form-data; boundary=x"),
            ("Content-Length", "100"),
            ("Authorization", "AWS4-HMAC-SHA256 x"),
            ("x-amz-meta-a", "of the request"),
            ("x-amz-copy-source", "/b/private"),
            ("x-amz-tagging", "a=b"),
            ("User-Agent", "browser"),
        ];
        let xml = "<Tagging><TagSet><Tag><Key>a b</Key><Value>1</Value></Tag></TagSet></Tagging>";
        let form = FormFields::from([
            ("key", "k"),
            ("acl", "private"),
            ("Content-Type", "text/plain"),
            ("Content-MD5", "rL0Y20zC+Fzt72VPzMSk2A=="),
            ("x-amz-meta-b", "c\u{e4}"),
            ("x-amz-checksum-algorithm", "CRC32"),
            ("x-amz-checksum-crc32", "y/Q5Jg=="),
            ("x-amz-website-redirect-location", "/a"),
            ("x-amz-date", "20151229T000000Z"),
            ("tagging", xml),
            ("policy", "p"),
            ("filename", "f"),
        ]);
        let put = put(&request, form).unwrap();
        let fields: Vec<_> = put
            .fields
            .iter()
            .map(|(name, value)| (name, String::from_utf8_lossy(value).into_owned()))
            .collect();
        let expected = [
            ("host", "localhost:1"),
            ("user-agent", "browser"),
            ("x-amz-acl", "private"),
            ("content-type", "text/plain"),
            ("content-md5", "rL0Y20zC+Fzt72VPzMSk2A=="),
            ("x-amz-meta-b", "c\u{e4}"),
            ("x-amz-sdk-checksum-algorithm", "CRC32"),
            ("x-amz-checksum-crc32", "y/Q5Jg=="),
            ("x-amz-website-redirect-location", "/a"),
            ("x-amz-tagging", "a+b=1"),
        ];
        assert_eq!(fields, expected.map(|(name, value)| (name, value.to_owned())));
        assert_eq!((put.method, &*put.target), (Method::PUT, "/b/a%20b/%C3%A4"));
        assert_eq!((put.query.iter().count(), put.host.as_deref()), (0, Some("localhost:1")));
    }

    #[test]
    fn fields_that_a_put_cannot_have_are_refused() {
        for (name, value, code) in [
            ("x-amz-meta-b", "a\nb", "InvalidArgument"),
            ("x-amz-meta-b", "a\u{7f}b", "InvalidArgument"),
            ("x-amz-meta-\u{e4}", "", "InvalidArgument"),
            ("x-amz-copy-source", "b/private", "InvalidArgument"),
            ("x-amz-copy-source-if-match", "a", "InvalidArgument"),
            ("tagging", "<Tagging>", "MalformedXML"),
            ("tagging", "invalid", "MalformedXML"),
            ("x-amz-checksum-algorithm", "SHA1", "InvalidRequest"),
            ("x-amz-checksum-algorithm", "algorithm", "InvalidRequest"),
        ] {
            let error = put(&[], [(name, value)].into()).unwrap_err();
            assert_eq!(error.code().as_str(), code, "{name} {value}");
        }
        for (fields, message) in [
            (FormFields::default(), "a field named 'key'"),
            ([("key", "")].into(), "greater than 0"),
        ] {
            let error = key(&fields).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::InvalidArgument);
            assert!(error.message().contains(message), "{}", error.message());
        }
    }

    #[test]
    fn answer_is_the_requested_one() {
        let apply = |fields: FormFields| {
            let request = head("POST /b", &[("host", "localhost:1")]);
            let answer = FormAnswer::new(&fields, &ObjectName::new("b", "a b&<"), &request, "http");
            let Answer { status, headers, content } =
                answer.apply(Answer::ok().with("etag", "\"e\"")).unwrap();
            let Content::Bytes(body) = content else { panic!("the content is a document") };
            let location = headers[LOCATION].to_str().unwrap().to_owned();
            (status.as_u16(), location, String::from_utf8(body.to_vec()).unwrap())
        };
        let own = "http://localhost:1/b/a%20b%26%3C";
        assert_eq!(apply(FormFields::default()), (204, own.to_owned(), String::new()));
        assert_eq!(apply([("success_action_status", "404")].into()).0, 204);
        assert_eq!(apply([("success_action_status", "204")].into()).0, 204);
        assert_eq!(apply([("success_action_status", "200")].into()).0, 200);
        let (status, location, xml) = apply([("success_action_status", "201")].into());
        assert_eq!((status, &*location), (201, own));
        let content = format!(
            "<PostResponse><Location>{own}</Location><Bucket>b</Bucket><Key>a b&amp;&lt;</Key>\
             <ETag>&quot;e&quot;</ETag></PostResponse>"
        );
        assert!(xml.ends_with(&content), "{xml}");
        for (name, url, expected) in [
            (
                "success_action_redirect",
                "http://a/",
                "http://a/?bucket=b&key=a+b%26%3C&etag=%22e%22",
            ),
            ("redirect", "https://a/?c=d", "https://a/?c=d&bucket=b&key=a+b%26%3C&etag=%22e%22"),
        ] {
            let redirected = apply([(name, url), ("success_action_status", "201")].into());
            assert_eq!(redirected, (303, expected.to_owned(), String::new()));
        }
        for url in ["javascript:a", "/relative", "http://\n", ""] {
            assert_eq!(apply([("success_action_redirect", url)].into()).0, 204, "{url}");
        }
    }

    #[test]
    fn location_is_an_absolute_url() {
        let domains = Domains::new(&["example.com".to_owned()]);
        for (target, host, scheme, expected) in [
            ("/bucket", "localhost:9000", "http", "http://localhost:9000/bucket/a/b"),
            ("/bucket/", "localhost", "https", "https://localhost/bucket/a/b"),
            ("/", "bucket.example.com", "https", "https://bucket.example.com/a/b"),
        ] {
            let request = http::Request::builder().uri(target).header("host", host);
            let head = Head::from_http(&request.body(()).unwrap(), &domains);
            let name = ObjectName::new(&head.name.bucket, "a/b");
            let answer = FormAnswer::new(&FormFields::default(), &name, &head, scheme);
            assert_eq!(answer.location, expected);
        }
    }
}
