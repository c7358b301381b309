//! Makes the PUT of an object from a form, and the response of the form from that of the PUT.

use haul_http_engine::RequestBody;
use hyper::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, EXPECT, HOST, HeaderMap, HeaderName,
    HeaderValue, LOCATION, TRANSFER_ENCODING,
};
use hyper::http::uri::{PathAndQuery, Uri};
use hyper::{Method, Request, Response, StatusCode};
use s3s::dto::Tagging;
use s3s::service::S3Service;
use s3s::xml::{Deserialize, Deserializer, Serializer};
use s3s::{Body, S3Error, S3ErrorCode, S3Result, StdError};
use time::OffsetDateTime;

use crate::access::authorize::Principal;
use crate::access::caller::Caller;
use crate::access::keys::key_ring::AllKeys;
use crate::audit::Changes;
use crate::errors::refuse;
use crate::front::canonical::push_encoded;
use crate::front::forms::fields::{Fields, is_form};
use crate::front::forms::file::Failure;
use crate::front::forms::policy::FormPolicy;
use crate::front::forms::receive::Form;
use crate::front::forms::signature::signer;
use crate::front::text::decode;
use crate::hosts::rewrite::use_path;
use crate::service::Haul;

/// Fields whose values become the headers of the same name. So do all fields with the prefixes.
const HEADERS: [&str; 5] =
    ["cache-control", "content-disposition", "content-encoding", "content-type", "expires"];
const HEADER_PREFIXES: [&str; 7] = [
    "x-amz-acl",
    "x-amz-checksum-",
    "x-amz-grant-",
    "x-amz-meta-",
    "x-amz-object-lock-",
    "x-amz-server-side-encryption",
    "x-amz-storage-class",
];

/// Returns `true` if a request uploads a file by a form.
pub(crate) fn is_upload(request: &Request<RequestBody>) -> bool {
    *request.method() == Method::POST && is_form(request.headers())
}

/// Stores the file of a form, after its policy and its signature were verified.
///
/// # Errors
/// If the form is refused before the S3 service receives its file, or if the service fails.
pub(crate) async fn store(
    haul: &Haul,
    (keys, s3): (&AllKeys, &S3Service),
    request: Request<RequestBody>,
) -> Result<S3Result<Response<Body>>, StdError> {
    let (put, failure, answer) = match put_of(haul, keys, request).await {
        Ok(upload) => upload,
        Err(error) => return Ok(Err(error)),
    };
    let response = s3.call(put).await.map_err(StdError::from)?;
    let failure = failure.lock().take();
    Ok(match failure {
        Some(error) => Err(error),
        None if response.status().is_success() => answer.apply(response),
        None => Ok(response),
    })
}

/// Returns the PUT for a form, the place for the error of its body, and the requested response.
async fn put_of(
    haul: &Haul,
    keys: &AllKeys,
    request: Request<RequestBody>,
) -> S3Result<(Request<Body>, Failure, Answer)> {
    let (mut parts, body) = request.into_parts();
    use_path(&mut parts);
    let form = Form::receive(&parts.headers, body, haul.limits().stall_time_max).await?;
    let path = decode(parts.uri.path()).unwrap_or_default();
    let bucket = path.trim_matches('/').to_owned();
    if bucket.is_empty() || bucket.contains('/') {
        return Err(refuse(S3ErrorCode::MethodNotAllowed, "Forms are sent to the URL of a bucket"));
    }
    let principal = match keys.is_empty() {
        true => Principal::Open,
        false => match signer(keys, &form.fields)? {
            Some(key) => Principal::Key(key),
            None => Principal::Anonymous(keys.of_file()),
        },
    };
    let key = form.fields.get("key").filter(|key| !key.is_empty());
    let key = key.ok_or_else(|| {
        refuse(S3ErrorCode::InvalidArgument, "Bucket POST must contain a field named 'key'")
    })?;
    let mut file = form.file;
    if let Some(policy) = form.fields.get("policy") {
        let policy = FormPolicy::parse(policy).map_err(|reason| {
            refuse(S3ErrorCode::InvalidPolicyDocument, format!("Invalid policy: {reason}"))
        })?;
        policy.check(&form.fields, &bucket, OffsetDateTime::now_utc()).map_err(|reason| {
            let message = format!("Invalid according to policy: {reason}");
            refuse(S3ErrorCode::AccessDenied, message)
        })?;
        file = file.with_lengths(policy.lengths());
    }
    let caller = Caller::new(principal);
    if let Some(changes) = Changes::of(&parts.extensions) {
        changes.of_form(key, caller.access_key());
    }
    let failure = file.failure();
    let answer = Answer::of(&form.fields, &bucket, key, &parts.headers);

    let mut target = String::from("/");
    push_encoded(&mut target, &format!("{bucket}/{key}"));
    let target: PathAndQuery = target.parse().map_err(S3Error::internal_error)?;
    parts.uri = Uri::from(target);
    parts.method = Method::PUT;
    set_headers(&mut parts.headers, &form.fields)?;
    parts.extensions.insert(caller);
    Ok((Request::from_parts(parts, Body::http_body(file)), failure, answer))
}

/// Replaces the headers of a form by those of a PUT with its fields.
fn set_headers(headers: &mut HeaderMap, fields: &Fields) -> S3Result<()> {
    for name in [AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT] {
        headers.remove(name);
    }
    // Only fields meet the conditions of the policy: a header could make the PUT a copy.
    let is_of_form =
        |name: &&HeaderName| is_of_put(name.as_str()) || name.as_str().starts_with("x-amz-");
    let of_form: Vec<_> = headers.keys().filter(is_of_form).cloned().collect();
    of_form.iter().for_each(|name| drop(headers.remove(name)));
    // The length of the file is not known.
    headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    for (name, value) in fields.iter() {
        let (name, value) = match name {
            "acl" => ("x-amz-acl", value.to_owned()),
            "tagging" => ("x-amz-tagging", tagging(value)?),
            _ if is_of_put(name) => (name, value.to_owned()),
            _ => continue,
        };
        let header = name.parse::<HeaderName>().ok().zip(HeaderValue::from_str(&value).ok());
        let (name, value) = header.ok_or_else(|| {
            let message = format!("The field {name} cannot be a header: {value:?}");
            refuse(S3ErrorCode::InvalidArgument, message)
        })?;
        headers.insert(name, value);
    }
    Ok(())
}

/// Returns `true` for the fields of a form that are headers of a PUT.
fn is_of_put(name: &str) -> bool {
    HEADERS.contains(&name) || HEADER_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the tags of the field `tagging` for a header.
fn tagging(xml: &str) -> S3Result<String> {
    let tagging =
        Tagging::deserialize(&mut Deserializer::new(xml.as_bytes())).map_err(|error| {
            refuse(S3ErrorCode::MalformedXML, format!("The field tagging is malformed: {error}"))
        })?;
    let pairs = tagging.tag_set.into_iter().map(|tag| (tag.key, tag.value));
    let pairs = pairs.map(|(key, value)| (key.unwrap_or_default(), value.unwrap_or_default()));
    Ok(form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish())
}

/// The response that a form asks for.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    redirect: Option<String>,
    bucket: String,
    key: String,
    location: String,
}

impl Answer {
    fn of(fields: &Fields, bucket: &str, key: &str, headers: &HeaderMap) -> Self {
        let status = match fields.get("success_action_status") {
            Some("200") => StatusCode::OK,
            Some("201") => StatusCode::CREATED,
            _ => StatusCode::NO_CONTENT,
        };
        let redirect = fields.get("success_action_redirect").or_else(|| fields.get("redirect"));
        // Others are ignored, as in S3.
        let is_web = |url: &&str| {
            (url.starts_with("http://") || url.starts_with("https://"))
                && HeaderValue::from_str(url).is_ok()
        };
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let mut location = format!("//{host}/");
        push_encoded(&mut location, &format!("{bucket}/{key}"));
        Self {
            status,
            redirect: redirect.filter(is_web).map(str::to_owned),
            bucket: bucket.to_owned(),
            key: key.to_owned(),
            location,
        }
    }

    /// Returns the response of the form after a successful PUT.
    fn apply(self, mut response: Response<Body>) -> S3Result<Response<Body>> {
        let etag = response.headers().get(ETAG).and_then(|etag| etag.to_str().ok());
        let etag = etag.unwrap_or_default().to_owned();
        let location = match &self.redirect {
            None => self.location.clone(),
            Some(url) => {
                let mut query = form_urlencoded::Serializer::new(String::new());
                query.append_pair("bucket", &self.bucket).append_pair("key", &self.key);
                let query = query.append_pair("etag", &etag).finish();
                format!("{url}{}{query}", if url.contains('?') { '&' } else { '?' })
            }
        };
        let status = match &self.redirect {
            Some(_) => StatusCode::SEE_OTHER,
            None => self.status,
        };
        *response.status_mut() = status;
        let location = HeaderValue::from_str(&location).map_err(S3Error::internal_error)?;
        response.headers_mut().insert(LOCATION, location);
        response.headers_mut().remove(CONTENT_LENGTH);
        if status == StatusCode::CREATED {
            let xml = self.document(&etag)?;
            response
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
            *response.body_mut() = Body::from(xml);
        }
        Ok(response)
    }

    fn document(&self, etag: &str) -> S3Result<Vec<u8>> {
        let mut xml = Vec::new();
        let mut writer = Serializer::new(&mut xml);
        writer
            .decl()
            .and_then(|()| {
                writer.element("PostResponse", |writer| {
                    writer.content("Location", &self.location)?;
                    writer.content("Bucket", &self.bucket)?;
                    writer.content("Key", &self.key)?;
                    writer.content("ETag", etag)
                })
            })
            .map_err(S3Error::internal_error)?;
        Ok(xml)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let fields = fields.iter();
        fields.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn headers_of_the_put_are_the_fields_of_the_form() {
        let mut all = headers(&[
            ("content-type", "multipart/form-data; boundary=x"),
            ("content-length", "100"),
            ("authorization", "AWS4-HMAC-SHA256 x"),
            ("x-amz-meta-a", "of the form request"),
            ("x-amz-copy-source", "/b/private"),
            ("x-amz-tagging", "a=b"),
            ("user-agent", "browser"),
        ]);
        let xml = "<Tagging><TagSet><Tag><Key>a b</Key><Value>1</Value></Tag></TagSet></Tagging>";
        let fields = Fields::from([
            ("key", "k"),
            ("acl", "private"),
            ("Content-Type", "text/plain"),
            ("x-amz-meta-b", "c"),
            ("tagging", xml),
            ("policy", "p"),
        ]);
        set_headers(&mut all, &fields).unwrap();
        let expected = headers(&[
            ("content-type", "text/plain"),
            ("transfer-encoding", "chunked"),
            ("user-agent", "browser"),
            ("x-amz-acl", "private"),
            ("x-amz-meta-b", "c"),
            ("x-amz-tagging", "a+b=1"),
        ]);
        assert_eq!(all, expected);
        for (name, value) in
            [("x-amz-meta-b", "a\nb"), ("tagging", "<Tagging>"), ("x-amz-meta-\u{e4}", "")]
        {
            assert!(set_headers(&mut all, &Fields::from([(name, value)])).is_err(), "{name}");
        }
    }

    #[test]
    fn response_is_the_requested_one() {
        let apply = |fields: Fields| {
            let answer = Answer::of(&fields, "b", "a b&<", &headers(&[("host", "localhost:1")]));
            let put = Response::builder().header("etag", "\"e\"").body(Body::empty()).unwrap();
            let response = answer.apply(put).unwrap();
            let location = response.headers()[LOCATION].to_str().unwrap().to_owned();
            let body = response.body().bytes().map(|bytes| bytes.to_vec()).unwrap_or_default();
            (response.status().as_u16(), location, String::from_utf8(body).unwrap())
        };
        let own = "//localhost:1/b/a%20b%26%3C";
        assert_eq!(apply(Fields::default()), (204, own.to_owned(), String::new()));
        assert_eq!(apply([("success_action_status", "404")].into()).0, 204);
        assert_eq!(apply([("success_action_status", "200")].into()).0, 200);
        let (status, _, xml) = apply([("success_action_status", "201")].into());
        assert_eq!(status, 201);
        let content = "<Bucket>b</Bucket><Key>a b&amp;&lt;</Key><ETag>&quot;e&quot;</ETag>";
        assert!(xml.contains(content), "{xml}");
        for (url, expected) in [
            ("http://a/", "http://a/?bucket=b&key=a+b%26%3C&etag=%22e%22"),
            ("https://a/?c=d", "https://a/?c=d&bucket=b&key=a+b%26%3C&etag=%22e%22"),
        ] {
            let redirected = apply([("success_action_redirect", url)].into());
            assert_eq!(redirected, (303, expected.to_owned(), String::new()));
        }
        assert_eq!(apply([("success_action_redirect", "javascript:a")].into()).0, 204);
        assert_eq!(apply([("redirect", "http://\n")].into()).0, 204);
    }
}
