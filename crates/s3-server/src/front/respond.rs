//! Builds the HTTP response from an operation's response or error.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response};

use crate::answer::{Answer, Content};
use crate::errors::{S3Error, S3ErrorCode, S3Result};
use crate::front::response::Source;
use crate::request::head::Head;
use crate::sts::document::error_document;
use crate::xml::writer::Xml;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");
const ERROR_CODE: HeaderName = HeaderName::from_static("x-amz-error-code");
const ERROR_MESSAGE: HeaderName = HeaderName::from_static("x-amz-error-message");
const HOST_ID: HeaderName = HeaderName::from_static("x-amz-id-2");

/// The value of `HostId`: in S3, the AWS machine that responded; in this server, the program.
const HOST: &str = "haul";

/// Returns the HTTP response to a request with this identifier.
pub(super) fn response(answer: Answer, head: &Head, id: &str) -> Response<Source> {
    let Answer { status, headers, content } = answer;
    let mut response = Response::new(Source::Bytes(Bytes::new()));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    if let Ok(value) = HeaderValue::from_str(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response.headers_mut().insert(HOST_ID, HeaderValue::from_static(HOST));
    match content {
        Content::Bytes(bytes) if head.method == Method::HEAD => {
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
        }
        Content::Bytes(bytes) => *response.body_mut() = Source::Bytes(bytes),
        Content::Object(body) => *response.body_mut() = Source::Object(body),
        Content::Events(stream) => *response.body_mut() = Source::Events(stream),
        Content::Head(bytes) => {
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(bytes));
        }
    }
    response
}

/// A request's outcome: its response, and the error that the response reports.
pub(super) struct Outcome {
    pub(super) answer: Answer,
    pub(super) error: Option<S3Error>,
}

impl Outcome {
    /// Returns an operation's outcome. An error becomes an XML document, or a website's error page.
    pub(super) fn new(result: S3Result<Answer>, head: &Head, id: &str) -> Self {
        match result {
            Ok(answer) => Self::success(answer),
            Err(error) => Self { answer: error_answer(&error, head, id), error: Some(error) },
        }
    }

    pub(super) fn success(answer: Answer) -> Self {
        Self { answer, error: None }
    }
}

/// Adds the headers in which a website's response has its error.
pub(super) fn add_error_headers(headers: &mut HeaderMap, error: &S3Error) {
    headers.insert(ERROR_CODE, HeaderValue::from_static(error.code().as_str()));
    // A message may repeat a part of the request that no header can have.
    if let Ok(message) = HeaderValue::from_bytes(error.message().as_bytes()) {
        headers.insert(ERROR_MESSAGE, message);
    }
}

fn error_answer(error: &S3Error, head: &Head, id: &str) -> Answer {
    let code = error.code();
    let mut answer = Answer::empty(code.status());
    if code != S3ErrorCode::NotModified {
        let (kind, document) = match head.is_website {
            true => ("text/html; charset=utf-8", page(error, head, id)),
            false if head.is_for_sts() => ("application/xml", error_document(error, id)),
            false => ("application/xml", document(error, head, id)),
        };
        answer.headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        answer.content = Content::Bytes(document.into());
        if head.is_website {
            add_error_headers(&mut answer.headers, error);
        }
    }
    if code == S3ErrorCode::MethodNotAllowed && !error.headers().contains_key(ALLOW) {
        answer.headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, PUT, POST, DELETE"));
    }
    for (name, value) in error.headers() {
        answer.headers.insert(name, value.clone());
    }
    answer
}

/// Returns a website's error page.
fn page(error: &S3Error, head: &Head, id: &str) -> String {
    let code = error.code();
    let mut items = vec![("Code", code.as_str()), ("Message", error.message())];
    match code {
        S3ErrorCode::NoSuchKey => items.push(("Key", &head.name.key)),
        S3ErrorCode::NoSuchBucket if !head.name.bucket.is_empty() => {
            items.push(("BucketName", &head.name.bucket));
        }
        _ => {}
    }
    items.extend(error.fields());
    items.extend([("RequestId", id), ("HostId", HOST)]);
    let status = code.status().to_string();
    Xml::html(|xml| {
        xml.group("head", |xml| xml.element("title", &status));
        xml.group("body", |xml| {
            xml.element("h1", &status);
            xml.group("ul", |xml| {
                for (name, value) in items {
                    xml.element("li", format_args!("{name}: {value}"));
                }
            });
        });
    })
}

/// Returns an error document, which names the request's resource.
fn document(error: &S3Error, head: &Head, id: &str) -> String {
    let name = &head.name;
    // An error about a copy's source names the source itself.
    let names = |field| error.field(field).is_some();
    Xml::plain("Error", |xml| {
        xml.element("Code", error.code().as_str());
        xml.message(error.message());
        if !name.bucket.is_empty() && !names("BucketName") {
            xml.element("BucketName", &name.bucket);
        }
        if !name.key.is_empty() && !names("Key") {
            xml.element("Key", &name.key);
        }
        for (name, value) in error.fields() {
            xml.element(name, value);
        }
        xml.element("Resource", head.raw_path());
        xml.element("RequestId", id);
        xml.element("HostId", HOST);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::refuse;
    use crate::request::domains::Domains;
    use crate::request::head::tests::head;

    #[test]
    fn document_names_the_resource() {
        let error = refuse(S3ErrorCode::NoSuchKey, "It's <gone>").with_field("A", "b");
        let text = document(&error, &head("GET /bucket/a%20b?c", &[]), "7");
        let expected = "<Error><Code>NoSuchKey</Code><Message>It's &lt;gone&gt;</Message>\
            <BucketName>bucket</BucketName><Key>a b</Key><A>b</A>\
            <Resource>/bucket/a%20b</Resource><RequestId>7</RequestId><HostId>haul</HostId></Error>";
        assert!(text.ends_with(expected), "{text}");
        let text = document(&error, &head("GET /", &[]), "7");
        assert!(!text.contains("BucketName") && !text.contains("<Key>"), "{text}");
    }

    #[test]
    fn page_of_a_website_is_escaped() {
        let line = "GET /%3Cscript%3E%22&'%0d%0a";
        let head = head(line, &[("host", "b.a")]).into_visit(&Domains::default());
        let error = refuse(S3ErrorCode::NoSuchKey, "No <script>\r\nX: y");
        let answer = error_answer(&error, &head, "7");
        assert_eq!(answer.headers[CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(answer.headers["x-amz-error-code"], "NoSuchKey");
        assert!(!answer.headers.contains_key("x-amz-error-message"), "a line break");
        let Content::Bytes(page) = answer.content else { panic!("no page") };
        let expected = "<!DOCTYPE html><html><head><title>404 Not Found</title></head><body>\
            <h1>404 Not Found</h1><ul><li>Code: NoSuchKey</li>\
            <li>Message: No &lt;script&gt;&#13;\nX: y</li>\
            <li>Key: &lt;script&gt;&quot;&amp;&apos;&#13;\n</li>\
            <li>RequestId: 7</li><li>HostId: haul</li></ul></body></html>";
        assert_eq!(page, expected);
    }

    #[test]
    fn error_has_its_status_and_headers() {
        let head = head("GET /bucket/key", &[]);
        let answer = error_answer(&refuse(S3ErrorCode::MethodNotAllowed, "no"), &head, "7");
        assert_eq!(answer.status.as_u16(), 405);
        assert!(answer.headers.contains_key(ALLOW) && answer.headers.contains_key(CONTENT_TYPE));
        let answer = error_answer(&refuse(S3ErrorCode::NotModified, ""), &head, "7");
        assert!(matches!(answer.content, Content::Bytes(bytes) if bytes.is_empty()));
    }
}
