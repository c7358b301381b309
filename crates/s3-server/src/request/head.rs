//! A request's head, parsed once.

use haul_http1::{Request, Target, Version};
use http::Method;
use http::header::HeaderMap;

use crate::request::domains::Domains;
use crate::request::fields::Fields;
use crate::request::name::ObjectName;
use crate::request::query::Query;

/// The fields that select a part of an object, or decide whether it is sent.
pub(crate) const SELECTING_FIELDS: [&str; 6] =
    ["range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];

/// The other fields of a website request that have an effect: those of CORS, and those that policies
/// compare and access logs record.
const VISIT_FIELDS: [&str; 6] = [
    "host",
    "origin",
    "access-control-request-method",
    "access-control-request-headers",
    "referer",
    "user-agent",
];

/// A request's head.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) method: Method,
    /// The path and the query, as received.
    pub(crate) target: String,
    /// The decoded path, as signed by the client; `None` if it is malformed.
    pub(crate) path: Option<String>,
    pub(crate) query: Query,
    pub(crate) fields: Fields,
    /// The host, with its port if it has one.
    pub(crate) host: Option<String>,
    /// The bucket and object names in the path and the host; empty for a malformed path.
    pub(crate) name: ObjectName,
    /// `true` if the client sends HTTP/1.0.
    pub(crate) is_old: bool,
    /// `true` if the request was sent to the address for websites.
    pub(crate) is_website: bool,
}

impl Head {
    /// Returns a parsed request's head. If the host is below one of the `domains`, it names the
    /// bucket.
    pub(crate) fn new(request: &Request<'_>, domains: &Domains) -> Option<Self> {
        let method = Method::from_bytes(request.method.as_bytes()).ok()?;
        let target = match request.target {
            Target::Asterisk => "*",
            Target::Origin(target) => target,
            // A target without a path asks for the list of buckets.
            _ => match request.target.path() {
                "" => "/",
                target => target,
            },
        };
        let count = request.fields.count();
        let mut fields = Fields::with_capacity(count, request.head_bytes);
        request.fields.into_iter().for_each(|field| fields.push(field.name, field.value));
        let is_old = request.version == Version::Http10;
        let head = Self::from_parts(method, target, fields, request.host, domains);
        Some(Self { is_old, ..head })
    }

    /// Returns the head of a request of the crate `http`.
    pub(crate) fn from_http<B>(request: &http::Request<B>, domains: &Domains) -> Self {
        let fields = from_headers(request.headers());
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
        let host = authority.or_else(|| fields.text("host").map(str::to_owned));
        let is_old = request.version() == http::Version::HTTP_10;
        let method = request.method().clone();
        let head = Self::from_parts(method, target, fields, host.as_deref(), domains);
        Self { is_old, ..head }
    }

    fn from_parts(
        method: Method,
        target: &str,
        mut fields: Fields,
        host: Option<&str>,
        domains: &Domains,
    ) -> Self {
        // The authority in an absolute target replaces the `Host` field (RFC 9112, 3.2.2). The
        // signature then covers the host that names the bucket in use.
        if let Some(host) = host.filter(|host| fields.text("host") != Some(host)) {
            fields.set("host", host);
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = decode(path);
        let name = match (&path, host.and_then(|host| domains.bucket_of(host))) {
            (None, _) => ObjectName::default(),
            // The target of `OPTIONS *` is not a path.
            (Some(path), Some(bucket)) if path.starts_with('/') => {
                ObjectName::new(bucket, &path[1..])
            }
            (Some(path), _) => ObjectName::in_path(path),
        };
        Self {
            method,
            target: target.to_owned(),
            path,
            query: Query::parse(query),
            fields,
            host: host.map(str::to_owned),
            name,
            is_old: false,
            is_website: false,
        }
    }

    /// Returns this head as that of a website request: the host names the bucket, and the path the
    /// object.
    ///
    /// The query, and all fields except those of plain reads, are removed: whoever follows a link
    /// to a website must get the page, and neither another S3 operation nor other headers. The
    /// target keeps the query, for redirects and logs.
    pub(crate) fn into_visit(self, domains: &Domains) -> Self {
        let Self { mut fields, host, path, .. } = self;
        fields.retain(|name| VISIT_FIELDS.contains(&name) || SELECTING_FIELDS.contains(&name));
        let bucket = host.as_deref().and_then(|host| domains.website_of(host));
        let key = path.as_deref().unwrap_or_default();
        let key = key.strip_prefix('/').unwrap_or(key);
        let name = ObjectName::new(bucket.unwrap_or_default(), key);
        let query = Query::default();
        Self { fields, host, path, name, query, is_website: true, ..self }
    }

    /// Returns the path as received.
    pub(crate) fn raw_path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Returns `true` if the host names the bucket.
    pub(crate) fn names_bucket_in_host(&self) -> bool {
        self.path.as_deref().is_some_and(|path| ObjectName::in_path(path) != self.name)
    }

    /// Returns `true` for GET and HEAD.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// Returns `true` for a file upload with an HTML form.
    pub(crate) fn is_form(&self) -> bool {
        self.posts("multipart/form-data")
    }

    /// Returns `true` for a request to the Security Token Service, whose form has the action.
    pub(crate) fn is_for_sts(&self) -> bool {
        self.raw_path() == "/"
            && self.name.bucket.is_empty()
            && self.posts("application/x-www-form-urlencoded")
    }

    /// Returns `true` for a POST whose body has this type.
    fn posts(&self, expected: &str) -> bool {
        let kind = self.fields.text("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        self.method == Method::POST && kind.eq_ignore_ascii_case(expected)
    }
}

fn from_headers(headers: &HeaderMap) -> Fields {
    let bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    let mut fields = Fields::with_capacity(headers.len(), bytes);
    for (name, value) in headers {
        fields.push(name.as_str().as_bytes(), value.as_bytes());
    }
    fields
}

/// Decodes a path; `None` if it is malformed.
pub(crate) fn decode(path: &str) -> Option<String> {
    if !path.contains('%') {
        return Some(path.to_owned());
    }
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        decoded.push(match byte {
            b'%' => u8::try_from(digit()? << 4 | digit()?).ok()?,
            _ => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use haul_http1::{HeadLimits, parse_request};

    use super::*;

    /// Returns the head of a request with this first line, such as `GET /b/k`, and these fields.
    pub(crate) fn head(line: &str, fields: &[(&str, &str)]) -> Head {
        let mut text = format!("{line} HTTP/1.1\r\n");
        if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text += "Host: localhost\r\n";
        }
        fields.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
        text += "\r\n";
        let request = parse_request(text.as_bytes(), &HeadLimits::default()).unwrap().unwrap();
        Head::new(&request, &Domains::default()).unwrap()
    }

    #[test]
    fn head_has_the_names_of_its_path_and_host() {
        let domains = Domains::new(&["example.com".to_owned()]);
        let name = |target: &str, host: &str| {
            let request = http::Request::builder().uri(target).header("host", host).body(());
            let head = Head::from_http(&request.unwrap(), &domains);
            (head.name.bucket, head.name.key, head.path.unwrap_or_default())
        };
        let is = |bucket: &str, key: &str, path: &str| {
            (bucket.to_owned(), key.to_owned(), path.to_owned())
        };
        assert_eq!(name("/b/a%20b?x", "other"), is("b", "a b", "/b/a b"));
        assert_eq!(name("/a%20b?x", "bucket.example.com:80"), is("bucket", "a b", "/a b"));
        assert_eq!(name("/", "bucket.example.com"), is("bucket", "", "/"));
        assert_eq!(name("/", "example.com"), is("", "", "/"));
        assert_eq!(name("*", "bucket.example.com"), is("*", "", "*"));
        assert_eq!(name("/b/%FF", "other"), is("", "", ""));
        assert_eq!(name("http://bucket.example.com/k", "other"), is("bucket", "k", "/k"));
    }

    #[test]
    fn website_request_is_a_plain_read() {
        let fields = [
            ("Host", "blog.example.com:80"),
            ("Range", "bytes=0-1"),
            ("Authorization", "AWS4-HMAC-SHA256 x"),
            ("X-Amz-Copy-Source", "/a/b"),
            ("x-amz-server-side-encryption-customer-key", "a"),
            ("Content-Type", "multipart/form-data"),
            ("Referer", "http://a/"),
        ];
        let domains = Domains::new(&["example.com".to_owned()]);
        let line = "GET /a%2Fb/?versionId=1&acl&X-Amz-Signature=a";
        let head = head(line, &fields).into_visit(&domains);
        assert_eq!(head.name, ObjectName::new("blog", "a/b/"));
        assert!(head.is_website && head.query.is_empty());
        assert_eq!(head.target, "/a%2Fb/?versionId=1&acl&X-Amz-Signature=a");
        let names: Vec<_> = head.fields.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["host", "range", "referer"]);
    }

    #[test]
    fn authority_of_the_target_takes_the_place_of_the_host() {
        let fields = [("Host", "a.example.com")];
        let head = head("GET http://b.example.com/k", &fields);
        assert_eq!(head.fields.all("host").collect::<Vec<_>>(), [b"b.example.com"]);
    }

    #[test]
    fn parts_of_the_target_are_as_the_client_sent_them() {
        let head = head("PUT /b/k%2f?a=b%20c&d", &[("X-A", "1")]);
        assert_eq!(head.raw_path(), "/b/k%2f");
        assert_eq!((head.query.get("a"), head.query.get("d")), (Some("b c"), Some("")));
        assert_eq!(head.fields.text("x-a"), Some("1"));
        assert!(!head.is_read() && !head.is_old);
    }

    #[test]
    fn paths_are_decoded_and_malformed_ones_are_not() {
        assert_eq!(decode("/bucket/a+b").as_deref(), Some("/bucket/a+b"));
        assert_eq!(decode("/bucket/a%20b%2fc%C3%A4").as_deref(), Some("/bucket/a b/c\u{e4}"));
        for malformed in ["/%", "/%2", "/%zz", "/%FF"] {
            assert_eq!(decode(malformed), None, "{malformed}");
        }
    }
}
