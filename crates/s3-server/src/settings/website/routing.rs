//! Decides what a website does with a request.

use http::StatusCode;

use crate::auth::canonical::push_encoded;
use crate::settings::website::configuration::{
    Pages, Redirect, Replacement, RoutingRule, WebsiteConfiguration,
};

/// The parts of a website request's URL.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visited<'a> {
    /// `http` or `https`.
    pub(crate) scheme: &'a str,
    /// The host, with its port if it has one.
    pub(crate) host: &'a str,
    /// The path as received; it begins with a slash.
    pub(crate) path: &'a str,
    /// The decoded path without its first slash.
    pub(crate) key: &'a str,
    pub(crate) query: Option<&'a str>,
}

/// What a website does with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Sends the object with this key.
    Object(String),
    /// Redirects to this location.
    Redirect(StatusCode, String),
    /// Sends the object with this key, with the error's status.
    ErrorDocument(String),
    /// Sends the server's own error page.
    ErrorPage,
}

/// Returns what the website does with a request, or, if `failed` is the status of its object, with
/// a request that failed.
pub(crate) fn next_step(
    configuration: &WebsiteConfiguration,
    visited: &Visited<'_>,
    failed: Option<StatusCode>,
) -> Step {
    let Pages { index_suffix, error_key, rules } = match configuration {
        WebsiteConfiguration::RedirectAll { host, protocol } => {
            let redirect =
                Redirect { host: Some(host.clone()), protocol: *protocol, ..Redirect::default() };
            return follow(&redirect, None, visited);
        }
        WebsiteConfiguration::Pages(pages) => pages,
    };
    let applies = |rule: &&RoutingRule| {
        rule.error_status == failed.map(|status| status.as_u16())
            && visited.key.starts_with(rule.prefix.as_deref().unwrap_or_default())
    };
    if let Some(rule) = rules.iter().find(applies) {
        return follow(&rule.redirect, rule.prefix.as_deref(), visited);
    }
    match (failed, error_key) {
        (None, _) => Step::Object(index_key(visited.key, index_suffix)),
        (Some(status), Some(key)) if status.is_client_error() => Step::ErrorDocument(key.clone()),
        (Some(_), _) => Step::ErrorPage,
    }
}

/// Returns the key of the index document in the directory that a key without a slash at its end may
/// mean, and the location of this directory.
pub(crate) fn directory(
    configuration: &WebsiteConfiguration,
    visited: &Visited<'_>,
) -> Option<(String, String)> {
    let WebsiteConfiguration::Pages(Pages { index_suffix, .. }) = configuration else {
        return None;
    };
    if visited.key.is_empty() || visited.key.ends_with('/') {
        return None;
    }
    // Relative, so that it is correct behind a proxy, too.
    let mut location = "/".to_owned();
    // Two slashes at the beginning would name a host.
    let rest = visited.key.trim_start_matches('/');
    location += &"%2F".repeat(visited.key.len() - rest.len());
    push_encoded(&mut location, rest);
    location.push('/');
    push_query(&mut location, visited.query);
    Some((format!("{}/{index_suffix}", visited.key), location))
}

/// Returns the key of the object for a path.
fn index_key(key: &str, index_suffix: &str) -> String {
    match key.is_empty() || key.ends_with('/') {
        true => format!("{key}{index_suffix}"),
        false => key.to_owned(),
    }
}

/// Returns the redirect of a rule with this prefix.
fn follow(redirect: &Redirect, prefix: Option<&str>, visited: &Visited<'_>) -> Step {
    let scheme = redirect.protocol.map_or(visited.scheme, |protocol| protocol.scheme());
    let host = redirect.host.as_deref().unwrap_or(visited.host);
    let mut location = format!("{scheme}://{host}");
    match &redirect.replacement {
        None => location += visited.path,
        Some(Replacement::Key(key)) => {
            location.push('/');
            push_written(&mut location, key);
        }
        Some(Replacement::Prefix(replacement)) => {
            let prefix = prefix.unwrap_or_default();
            location.push('/');
            push_written(&mut location, replacement);
            push_encoded(&mut location, visited.key.strip_prefix(prefix).unwrap_or(visited.key));
        }
    }
    push_query(&mut location, visited.query);
    let status = redirect.status.and_then(|status| StatusCode::from_u16(status).ok());
    Step::Redirect(status.unwrap_or(StatusCode::MOVED_PERMANENTLY), location)
}

fn push_query(location: &mut String, query: Option<&str>) {
    if let Some(query) = query {
        location.push(if location.contains('?') { '&' } else { '?' });
        location.push_str(query);
    }
}

/// Appends a text that the owner of the website has written as a part of a URL, such as `#!/` or
/// `page?id=`. Only what no URL can contain is encoded.
fn push_written(location: &mut String, text: &str) {
    for char in text.chars() {
        match char.is_ascii_graphic() && !"\"<>\\^`{|}".contains(char) {
            true => location.push(char),
            false => push_encoded(location, char.encode_utf8(&mut [0; 4])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::head::decode;
    use crate::xml::Document;

    const RULES: &str = "<IndexDocument><Suffix>index.html</Suffix></IndexDocument>\
        <ErrorDocument><Key>error.html</Key></ErrorDocument><RoutingRules>\
        <RoutingRule><Condition><KeyPrefixEquals>old/</KeyPrefixEquals></Condition>\
        <Redirect><ReplaceKeyPrefixWith>new/</ReplaceKeyPrefixWith></Redirect></RoutingRule>\
        <RoutingRule><Condition><KeyPrefixEquals>gone/</KeyPrefixEquals>\
        <HttpErrorCodeReturnedEquals>404</HttpErrorCodeReturnedEquals></Condition>\
        <Redirect><ReplaceKeyWith>archive</ReplaceKeyWith>\
        <HttpRedirectCode>307</HttpRedirectCode></Redirect></RoutingRule>\
        <RoutingRule><Condition>\
        <HttpErrorCodeReturnedEquals>403</HttpErrorCodeReturnedEquals></Condition>\
        <Redirect><HostName>login.b</HostName><Protocol>https</Protocol></Redirect></RoutingRule>\
        <RoutingRule><Condition>\
        <HttpErrorCodeReturnedEquals>503</HttpErrorCodeReturnedEquals></Condition>\
        <Redirect><ReplaceKeyPrefixWith>#!/</ReplaceKeyPrefixWith>\
        <HttpRedirectCode>302</HttpRedirectCode></Redirect></RoutingRule>\
        <RoutingRule><Condition><KeyPrefixEquals>img/</KeyPrefixEquals></Condition>\
        <Redirect><HostName>resize.b</HostName>\
        <ReplaceKeyPrefixWith>run?key=</ReplaceKeyPrefixWith></Redirect></RoutingRule>\
        <RoutingRule><Condition><KeyPrefixEquals>strip/</KeyPrefixEquals></Condition>\
        <Redirect><ReplaceKeyPrefixWith/></Redirect></RoutingRule></RoutingRules>";

    fn configuration(content: &str) -> WebsiteConfiguration {
        let text = format!("<WebsiteConfiguration>{content}</WebsiteConfiguration>");
        WebsiteConfiguration::parse(text.as_bytes()).unwrap()
    }

    /// Calls `then` with the parts of a request for this target.
    fn visit<T>(target: &str, then: impl FnOnce(&Visited<'_>) -> T) -> T {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let decoded = decode(path).unwrap();
        then(&Visited { scheme: "http", host: "a:80", path, key: &decoded[1..], query })
    }

    /// Returns a step as a word and a key or location.
    fn step(content: &str, target: &str, failed: Option<u16>) -> String {
        let failed = failed.map(|status| StatusCode::from_u16(status).unwrap());
        match visit(target, |visited| next_step(&configuration(content), visited, failed)) {
            Step::Object(key) => format!("object {key}"),
            Step::Redirect(status, location) => format!("{} {location}", status.as_u16()),
            Step::ErrorDocument(key) => format!("error {key}"),
            Step::ErrorPage => "page".to_owned(),
        }
    }

    #[test]
    fn each_request_has_its_step() {
        for (target, failed, expected) in [
            ("/", None, "object index.html"),
            ("/a/", None, "object a/index.html"),
            ("/a", None, "object a"),
            ("/a%20b?acl", None, "object a b"),
            ("/a%2F", None, "object a/index.html"),
            ("/../a", None, "object ../a"),
            ("//", None, "object /index.html"),
            ("/old/a%20b?c=d&e", None, "301 http://a:80/new/a%20b?c=d&e"),
            ("/old/%0d%0aX:%20y", None, "301 http://a:80/new/%0D%0AX%3A%20y"),
            ("/older", None, "object older"),
            ("/gone/a", None, "object gone/a"),
            ("/gone/a?b", Some(404), "307 http://a:80/archive?b"),
            ("/gone/a", Some(403), "301 https://login.b/gone/a"),
            ("/a%2fb?c", Some(403), "301 https://login.b/a%2fb?c"),
            ("/a", Some(404), "error error.html"),
            ("/a", Some(416), "error error.html"),
            ("/a", Some(500), "page"),
            ("/a/b", Some(503), "302 http://a:80/#!/a/b"),
            // The failure does not make a rule for keys apply, which was followed before.
            ("/old/a", Some(404), "error error.html"),
            ("/img/a%20b.png?w=1", None, "301 http://resize.b/run?key=a%20b.png&w=1"),
            ("/strip/a", None, "301 http://a:80/a"),
        ] {
            assert_eq!(step(RULES, target, failed), expected, "{target} {failed:?}");
        }
    }

    #[test]
    fn website_without_error_document_has_the_page_of_the_server() {
        let index = "<IndexDocument><Suffix>i</Suffix></IndexDocument>";
        assert_eq!(step(index, "/a", Some(404)), "page");
    }

    #[test]
    fn rule_without_conditions_redirects_all() {
        let content = "<IndexDocument><Suffix>i</Suffix></IndexDocument><RoutingRules><RoutingRule>\
            <Redirect><ReplaceKeyWith>x y\"\u{e4}%41</ReplaceKeyWith></Redirect></RoutingRule>\
            </RoutingRules>";
        assert_eq!(step(content, "/a?b", None), "301 http://a:80/x%20y%22%C3%A4%41?b");
        let content = content.replace("ReplaceKeyWith", "ReplaceKeyPrefixWith").replace("x y", "/");
        assert_eq!(step(&content, "/a", None), "301 http://a:80//%22%C3%A4%41a");
    }

    #[test]
    fn all_requests_are_redirected_with_their_paths() {
        let all = |protocol: &str| {
            format!(
                "<RedirectAllRequestsTo><HostName>b</HostName>{protocol}</RedirectAllRequestsTo>"
            )
        };
        let secure = all("<Protocol>https</Protocol>");
        assert_eq!(step(&secure, "/a%20/b?c=1", None), "301 https://b/a%20/b?c=1");
        assert_eq!(step(&all(""), "//evil", None), "301 http://b//evil");
    }

    #[test]
    fn directories_are_the_keys_without_a_slash() {
        let website = configuration(RULES);
        for (target, expected) in [
            ("/a?b", Some(("a/index.html", "/a/?b"))),
            ("/a/b%20c", Some(("a/b c/index.html", "/a/b%20c/"))),
            ("//evil.example", Some(("/evil.example/index.html", "/%2Fevil.example/"))),
            ("/a%0d%0ab", Some(("a\r\nb/index.html", "/a%0D%0Ab/"))),
            ("/", None),
            ("/a/", None),
        ] {
            let found = visit(target, |visited| directory(&website, visited));
            let found = found.as_ref().map(|(key, location)| (&**key, &**location));
            assert_eq!(found, expected, "{target}");
        }
        let all =
            configuration("<RedirectAllRequestsTo><HostName>b</HostName></RedirectAllRequestsTo>");
        assert_eq!(visit("/a", |visited| directory(&all, visited)), None);
    }
}
