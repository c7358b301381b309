//! Builds the HTTP response from an operation's response or error.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Response};

use crate::answer::{Answer, Content};
use crate::errors::{S3Error, S3ErrorCode};
use crate::front::response::Source;
use crate::request::head::Head;
use crate::xml::writer::Xml;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");
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
        Content::Head(bytes) => {
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(bytes));
        }
    }
    response
}

pub(super) fn error_answer(error: &S3Error, head: &Head, id: &str) -> Answer {
    let code = error.code();
    let mut answer = Answer::empty(code.status());
    if code != S3ErrorCode::NotModified {
        answer.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
        answer.content = Content::Bytes(document(error, head, id).into());
    }
    if code == S3ErrorCode::MethodNotAllowed && !error.headers().contains_key(ALLOW) {
        answer.headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, PUT, POST, DELETE"));
    }
    for (name, value) in error.headers() {
        answer.headers.insert(name, value.clone());
    }
    answer
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
    fn error_has_its_status_and_headers() {
        let head = head("GET /bucket/key", &[]);
        let answer = error_answer(&refuse(S3ErrorCode::MethodNotAllowed, "no"), &head, "7");
        assert_eq!(answer.status.as_u16(), 405);
        assert!(answer.headers.contains_key(ALLOW) && answer.headers.contains_key(CONTENT_TYPE));
        let answer = error_answer(&refuse(S3ErrorCode::NotModified, ""), &head, "7");
        assert!(matches!(answer.content, Content::Bytes(bytes) if bytes.is_empty()));
    }
}
