//! A bucket's rules for requests from web pages with other origins (CORS). Pure.

use crate::errors::{S3ErrorCode, S3Result, refuse};
use crate::pattern;
use crate::xml::Document;
use crate::xml::reader::{Element, malformed};
use crate::xml::writer::Xml;

/// The maximum number of rules in a bucket, as in S3.
const RULES_MAX: usize = 100;

/// The maximum length of a rule's ID, in characters, as in S3.
const ID_CHARS_MAX: usize = 255;

/// The maximum number of headers in a preflight request. Each is compared with the headers in all
/// rules.
const REQUESTED_MAX: usize = 100;

/// The methods that rules can allow.
pub(crate) const METHODS: [&str; 5] = ["GET", "PUT", "HEAD", "POST", "DELETE"];

/// Response headers that allow a web page to use the response, with their values.
pub(crate) type AllowHeaders = Vec<(&'static str, String)>;

/// A bucket's rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CorsConfiguration {
    pub(crate) rules: Vec<CorsRule>,
}

/// A rule, which allows requests that match its origins, methods and headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CorsRule {
    id: Option<String>,
    allowed_headers: Vec<String>,
    pub(crate) allowed_methods: Vec<String>,
    allowed_origins: Vec<String>,
    expose_headers: Vec<String>,
    max_age_s: Option<i32>,
}

impl Document for CorsConfiguration {
    const ROOT: &'static str = "CORSConfiguration";

    fn read(root: &Element) -> S3Result<Self> {
        let rules = root.only(&["CORSRule"])?.all("CORSRule").map(CorsRule::read);
        let rules = rules.collect::<S3Result<Vec<_>>>()?;
        if rules.is_empty() {
            return Err(malformed("<CORSConfiguration> has no <CORSRule>"));
        }
        Ok(Self { rules })
    }

    fn write(&self, xml: &mut Xml) {
        for rule in &self.rules {
            xml.group("CORSRule", |xml| rule.write(xml));
        }
    }
}

impl CorsRule {
    fn read(rule: &Element) -> S3Result<Self> {
        rule.only(&[
            "AllowedHeader",
            "AllowedMethod",
            "AllowedOrigin",
            "ExposeHeader",
            "ID",
            "MaxAgeSeconds",
        ])?;
        let words = |name: &str| {
            let words = rule.all(name).map(|element| element.word().map(str::to_owned));
            words.collect::<S3Result<Vec<_>>>()
        };
        let some = |name: &str| match words(name)? {
            none if none.is_empty() => Err(malformed(&format!("<CORSRule> has no <{name}>"))),
            found => Ok(found),
        };
        Ok(Self {
            id: rule.text_of("ID")?,
            allowed_headers: words("AllowedHeader")?,
            allowed_methods: some("AllowedMethod")?,
            allowed_origins: some("AllowedOrigin")?,
            expose_headers: words("ExposeHeader")?,
            max_age_s: rule.number_of("MaxAgeSeconds")?,
        })
    }

    fn write(&self, xml: &mut Xml) {
        let lists = [
            ("AllowedHeader", &self.allowed_headers),
            ("AllowedMethod", &self.allowed_methods),
            ("AllowedOrigin", &self.allowed_origins),
            ("ExposeHeader", &self.expose_headers),
        ];
        for (name, values) in lists {
            values.iter().for_each(|value| xml.element(name, value));
        }
        xml.optional("ID", self.id.as_ref());
        xml.optional("MaxAgeSeconds", self.max_age_s);
    }

    /// Fails with the reason if the rule is invalid.
    fn check(&self) -> Result<(), String> {
        if self.id.as_ref().is_some_and(|id| id.chars().count() > ID_CHARS_MAX) {
            return Err(format!("The ID of a rule has at most {ID_CHARS_MAX} characters"));
        }
        for method in &self.allowed_methods {
            if !METHODS.contains(&method.as_str()) {
                return Err(format!(
                    "Found unsupported HTTP method in CORS config. Unsupported method is {method}"
                ));
            }
        }
        for (name, patterns) in
            [("AllowedOrigin", &self.allowed_origins), ("AllowedHeader", &self.allowed_headers)]
        {
            for text in patterns {
                if text.matches('*').count() > 1 || text.contains('?') {
                    return Err(format!(
                        "{name} \"{text}\" can not have more than one wildcard, which is *"
                    ));
                }
            }
        }
        if let Some(text) = self.expose_headers.iter().find(|text| text.contains('*')) {
            return Err(format!("ExposeHeader \"{text}\" cannot have a wildcard character"));
        }
        for (name, headers) in
            [("AllowedHeader", &self.allowed_headers), ("ExposeHeader", &self.expose_headers)]
        {
            if let Some(text) = headers.iter().find(|text| !text.bytes().all(is_token_byte)) {
                return Err(format!("{name} \"{text}\" contains invalid character."));
            }
        }
        Ok(())
    }
}

/// Rejects rules that S3 does not permit.
pub(crate) fn check(configuration: &CorsConfiguration) -> S3Result<()> {
    let rules = &configuration.rules;
    let invalid = |reason| refuse(S3ErrorCode::InvalidRequest, reason);
    if rules.len() > RULES_MAX {
        let count = rules.len();
        return Err(invalid(format!("Expected at most {RULES_MAX} CORS rules, found {count}")));
    }
    rules.iter().try_for_each(|rule| rule.check().map_err(invalid))
}

/// Returns `true` for a byte that a header name can have (RFC 9110, 5.6.2).
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns the headers from the first rule that allows a request with this origin and method and,
/// for a preflight request, these requested headers. `None` if no rule does.
pub(crate) fn allow(
    configuration: &CorsConfiguration,
    origin: &str,
    method: &str,
    requested_headers: &str,
) -> Option<AllowHeaders> {
    let requested: Vec<String> = requested_headers
        .split(',')
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty())
        .collect();
    if requested.len() > REQUESTED_MAX {
        return None;
    }
    let is_allowed = |rule: &&CorsRule| {
        let headers = rule.allowed_headers.iter().map(|header| header.to_ascii_lowercase());
        let headers: Vec<_> = headers.collect();
        rule.allowed_methods.iter().any(|allowed| allowed == method)
            && rule.allowed_origins.iter().any(|allowed| pattern::matches(allowed, origin))
            && requested
                .iter()
                .all(|name| headers.iter().any(|allowed| pattern::matches(allowed, name)))
    };
    let rule = configuration.rules.iter().find(is_allowed)?;
    let is_for_all = rule.allowed_origins.iter().any(|allowed| allowed == "*");
    let mut headers = vec![
        ("access-control-allow-origin", if is_for_all { "*" } else { origin }.to_owned()),
        ("access-control-allow-methods", rule.allowed_methods.join(", ")),
        (
            "vary",
            "Origin, Access-Control-Request-Headers, Access-Control-Request-Method".to_owned(),
        ),
    ];
    if !is_for_all {
        headers.push(("access-control-allow-credentials", "true".to_owned()));
    }
    if !requested.is_empty() {
        headers.push(("access-control-allow-headers", requested.join(", ")));
    }
    if !rule.expose_headers.is_empty() {
        headers.push(("access-control-expose-headers", rule.expose_headers.join(", ")));
    }
    if let Some(seconds) = rule.max_age_s {
        headers.push(("access-control-max-age", seconds.to_string()));
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(methods: &[&str], origins: &[&str], headers: &[&str]) -> CorsRule {
        CorsRule {
            allowed_headers: texts(headers),
            allowed_methods: texts(methods),
            allowed_origins: texts(origins),
            ..CorsRule::default()
        }
    }

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|text| (*text).to_owned()).collect()
    }

    fn rules(rules: Vec<CorsRule>) -> CorsConfiguration {
        CorsConfiguration { rules }
    }

    fn value(headers: &AllowHeaders, name: &str) -> Option<String> {
        headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    }

    #[test]
    fn first_rule_with_origin_method_and_headers_decides() {
        let all = rules(vec![
            rule(&["GET"], &["https://*.example.org"], &[]),
            rule(&["GET", "PUT"], &["https://a.example.org", "http://b"], &["X-Amz-*", "range"]),
        ]);
        for (origin, method, requested, methods) in [
            ("https://a.example.org", "GET", "", Some("GET")),
            ("https://a.example.org", "PUT", "", Some("GET, PUT")),
            ("https://a.example.org", "GET", "x-amz-date, Range", Some("GET, PUT")),
            ("http://b", "PUT", "range", Some("GET, PUT")),
            ("http://b", "PUT", "range,cookie", None),
            ("http://b", "DELETE", "", None),
            ("https://example.org", "GET", "", None),
            ("null", "GET", "", None),
        ] {
            let found = allow(&all, origin, method, requested);
            let found = found.map(|headers| value(&headers, "access-control-allow-methods"));
            assert_eq!(found.flatten().as_deref(), methods, "{origin} {method} {requested}");
        }
    }

    #[test]
    fn origin_is_repeated_with_credentials_unless_all_are_allowed() {
        let headers = |origin| {
            let mut one = rule(&["GET"], &[origin], &["*"]);
            one.expose_headers = texts(&["ETag", "x-amz-meta-a"]);
            one.max_age_s = Some(60);
            allow(&rules(vec![one]), "http://a", "GET", "A, b").unwrap()
        };
        let (any, one) = (headers("*"), headers("http://a"));
        let get = |headers, name: &str| value(headers, &format!("access-control-{name}"));
        assert_eq!(get(&any, "allow-origin").unwrap(), "*");
        assert_eq!(get(&any, "allow-credentials"), None);
        assert_eq!(get(&one, "allow-origin").unwrap(), "http://a");
        assert_eq!(get(&one, "allow-credentials").unwrap(), "true");
        assert_eq!(get(&one, "allow-headers").unwrap(), "a, b");
        assert_eq!(get(&one, "expose-headers").unwrap(), "ETag, x-amz-meta-a");
        assert_eq!(get(&one, "max-age").unwrap(), "60");
    }

    #[test]
    fn invalid_rules_are_refused() {
        let valid = rule(&["GET"], &["*"], &["*"]);
        let exposing = |name| CorsRule { expose_headers: texts(&[name]), ..valid.clone() };
        let code = |rules_| check(&rules(rules_)).map_err(|error| error.code().as_str());
        assert_eq!(code(vec![valid.clone()]), Ok(()));
        assert_eq!(code(vec![rule(&["GET"], &["*"], &["X-Amz-*", ""])]), Ok(()));
        for (one, reason) in [
            (rule(&["OPTIONS"], &["*"], &[]), "method is OPTIONS"),
            (rule(&["GET", "get"], &["*"], &[]), "method is get"),
            (rule(&[""], &["*"], &[]), "method is "),
            (rule(&["GET"], &["*.a.*"], &[]), "wildcard"),
            (rule(&["GET"], &["*"], &["a?"]), "wildcard"),
            (exposing("*"), "ExposeHeader \"*\""),
        ] {
            let error = check(&rules(vec![valid.clone(), one])).unwrap_err();
            assert_eq!(error.code().as_str(), "InvalidRequest", "{reason}");
            assert!(error.message().contains(reason), "{error}");
        }
        for name in ["a b", "X-Custom:Header", "X(Custom)", "Bad/Header", "X[K]", "a=b", "\u{e4}"] {
            for one in [rule(&["GET"], &["*"], &["ETag", name]), exposing(name)] {
                let error = check(&rules(vec![one])).unwrap_err();
                assert!(error.message().contains("invalid character"), "{error}");
            }
        }
        assert_eq!(code(vec![valid.clone(); 100]), Ok(()));
        assert_eq!(code(vec![valid; 101]), Err("InvalidRequest"));
    }

    fn parse(content: &str) -> S3Result<CorsConfiguration> {
        let text = format!("<CORSConfiguration>{content}</CORSConfiguration>");
        CorsConfiguration::parse(text.as_bytes())
    }

    #[test]
    fn rules_survive_a_round_trip() {
        let document = parse(
            "<CORSRule><ID> a </ID><AllowedMethod>\nGET\n</AllowedMethod>\
             <AllowedMethod>PUT</AllowedMethod><AllowedOrigin>http://*.a</AllowedOrigin>\
             <AllowedHeader>X-*</AllowedHeader><ExposeHeader>ETag</ExposeHeader>\
             <MaxAgeSeconds>60</MaxAgeSeconds></CORSRule>",
        );
        let document = document.unwrap();
        let expected = CorsRule {
            id: Some(" a ".to_owned()),
            expose_headers: texts(&["ETag"]),
            max_age_s: Some(60),
            ..rule(&["GET", "PUT"], &["http://*.a"], &["X-*"])
        };
        assert_eq!(document.rules, [expected]);
        assert_eq!(CorsConfiguration::parse(document.text().as_bytes()).unwrap(), document);
    }

    #[test]
    fn rule_without_methods_or_origins_is_malformed() {
        let (method, origin) =
            ("<AllowedMethod>GET</AllowedMethod>", "<AllowedOrigin>*</AllowedOrigin>");
        assert!(parse(&format!("<CORSRule>{method}{origin}</CORSRule>")).is_ok());
        for content in [
            String::new(),
            format!("<CORSRule>{method}</CORSRule>"),
            format!("<CORSRule>{origin}</CORSRule>"),
            format!("<CORSRule>{method}{origin}<Other/></CORSRule>"),
            format!("<CORSRule>{method}{origin}<MaxAgeSeconds>a</MaxAgeSeconds></CORSRule>"),
        ] {
            let code = parse(&content).unwrap_err().code();
            assert_eq!(code.as_str(), "MalformedXML", "{content}");
        }
    }
}
