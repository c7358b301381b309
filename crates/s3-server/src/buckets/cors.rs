//! The rules of a bucket for requests of web pages of other origins (CORS). Pure.

use s3s::dto::{CORSConfiguration, CORSRule};

use crate::pattern;

/// The maximum number of rules of a bucket, as in S3.
const RULES_MAX: usize = 100;

/// The maximum number of headers of a preflight request. Each is compared with those of
/// all rules.
const REQUESTED_MAX: usize = 100;

const METHODS: [&str; 5] = ["GET", "PUT", "HEAD", "POST", "DELETE"];

/// Headers of a response that allow a web page to use it, with their values.
pub(crate) type AllowHeaders = Vec<(&'static str, String)>;

/// Returns the reason why rules are invalid.
pub(crate) fn check(configuration: &CORSConfiguration) -> Result<(), String> {
    let rules = &configuration.cors_rules;
    if rules.is_empty() || rules.len() > RULES_MAX {
        return Err(format!("expected 1 to {RULES_MAX} rules, found {}", rules.len()));
    }
    for rule in rules {
        if rule.allowed_methods.is_empty() || rule.allowed_origins.is_empty() {
            return Err("a rule needs AllowedMethod and AllowedOrigin".to_owned());
        }
        for method in &rule.allowed_methods {
            if !METHODS.contains(&method.as_str()) {
                return Err(format!("the AllowedMethod {method} is not one of {METHODS:?}"));
            }
        }
        let headers = rule.allowed_headers.iter().flatten();
        for text in rule.allowed_origins.iter().chain(headers) {
            if text.matches('*').count() > 1 || text.contains('?') {
                return Err(format!("\"{text}\" can have one wildcard character (*) at most"));
            }
        }
        let exposed = rule.expose_headers.iter().flatten();
        if let Some(text) = exposed.into_iter().find(|text| text.contains('*')) {
            return Err(format!("ExposeHeader \"{text}\" cannot have a wildcard character"));
        }
        if rule.max_age_seconds.is_some_and(|seconds| seconds < 0) {
            return Err("MaxAgeSeconds must not be negative".to_owned());
        }
    }
    Ok(())
}

/// Returns the headers for a request with this origin and method and, if it is a preflight request,
/// these requested headers: those of the first rule that allows it. `None` if no rule does.
pub(crate) fn allow(
    configuration: &CORSConfiguration,
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
    let is_allowed = |rule: &&CORSRule| {
        let headers = rule.allowed_headers.iter().flatten();
        let headers: Vec<_> = headers.map(|header| header.to_ascii_lowercase()).collect();
        rule.allowed_methods.iter().any(|allowed| allowed == method)
            && rule.allowed_origins.iter().any(|allowed| pattern::matches(allowed, origin))
            && requested
                .iter()
                .all(|name| headers.iter().any(|allowed| pattern::matches(allowed, name)))
    };
    let rule = configuration.cors_rules.iter().find(is_allowed)?;
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
    if let Some(exposed) = rule.expose_headers.as_ref().filter(|exposed| !exposed.is_empty()) {
        headers.push(("access-control-expose-headers", exposed.join(", ")));
    }
    if let Some(seconds) = rule.max_age_seconds {
        headers.push(("access-control-max-age", seconds.to_string()));
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(methods: &[&str], origins: &[&str], headers: &[&str]) -> CORSRule {
        let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        CORSRule {
            allowed_headers: Some(texts(headers)),
            allowed_methods: texts(methods),
            allowed_origins: texts(origins),
            expose_headers: None,
            id: None,
            max_age_seconds: None,
        }
    }

    fn rules(rules: Vec<CORSRule>) -> CORSConfiguration {
        CORSConfiguration { cors_rules: rules }
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
            one.expose_headers = Some(vec!["ETag".to_owned(), "x-amz-meta-a".to_owned()]);
            one.max_age_seconds = Some(60);
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
        assert_eq!(check(&rules(vec![valid.clone()])), Ok(()));
        for (one, reason) in [
            (rule(&[], &["*"], &[]), "needs"),
            (rule(&["GET"], &[], &[]), "needs"),
            (rule(&["OPTIONS"], &["*"], &[]), "AllowedMethod OPTIONS"),
            (rule(&["GET"], &["*.a.*"], &[]), "wildcard"),
            (rule(&["GET"], &["*"], &["a?"]), "wildcard"),
            (CORSRule { expose_headers: Some(vec!["*".into()]), ..valid.clone() }, "ExposeHeader"),
            (CORSRule { max_age_seconds: Some(-1), ..valid.clone() }, "negative"),
        ] {
            assert!(check(&rules(vec![one])).unwrap_err().contains(reason), "{reason}");
        }
        assert!(check(&rules(vec![])).is_err());
        assert!(check(&rules(vec![valid; 101])).is_err());
    }
}
