//! The website configuration of a bucket, as an S3 document.

use haul_file_store::KEY_BYTES_MAX;

use crate::errors::{S3ErrorCode, S3Result, invalid_argument, refuse};
use crate::xml::Document;
use crate::xml::reader::{Element, malformed};
use crate::xml::writer::Xml;

/// The maximum number of routing rules in a website, as in S3.
const RULES_MAX: usize = 50;

/// The maximum length of a host name (RFC 1035, 2.3.4) with a port.
const HOST_BYTES_MAX: usize = 253 + 6;

/// A bucket's website.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WebsiteConfiguration {
    /// Every request is redirected to this host.
    RedirectAll { host: String, protocol: Option<Protocol> },
    /// The bucket's objects are the pages.
    Pages(Pages),
}

/// A website whose pages are objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pages {
    /// The name of the index document in each directory.
    pub(super) index_suffix: String,
    /// The object that is sent in place of the server's own error page.
    pub(super) error_key: Option<String>,
    pub(super) rules: Vec<RoutingRule>,
}

/// A rule that redirects requests. Without conditions, it redirects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RoutingRule {
    /// The prefix that the key must have.
    pub(super) prefix: Option<String>,
    /// The status with which the request must have failed.
    pub(super) error_status: Option<u16>,
    pub(super) redirect: Redirect,
}

/// The URL to which a rule redirects. Parts without a value are those of the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(super) host: Option<String>,
    pub(super) protocol: Option<Protocol>,
    pub(super) status: Option<u16>,
    pub(super) replacement: Option<Replacement>,
}

/// The change of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// Replaces the whole key.
    Key(String),
    /// Replaces the prefix in the rule's condition.
    Prefix(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http,
    Https,
}

impl Protocol {
    pub(super) fn scheme(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// Reads the protocol in an element, if it has one.
    fn read_in(element: &Element) -> S3Result<Option<Self>> {
        match element.word_of("Protocol")?.unwrap_or_default() {
            "" => Ok(None),
            "http" => Ok(Some(Self::Http)),
            "https" => Ok(Some(Self::Https)),
            other => Err(invalid(format!("The protocol must be http or https, not \"{other}\""))),
        }
    }
}

impl Document for WebsiteConfiguration {
    const ROOT: &'static str = "WebsiteConfiguration";

    fn read(root: &Element) -> S3Result<Self> {
        root.only(&["RedirectAllRequestsTo", "IndexDocument", "ErrorDocument", "RoutingRules"])?;
        let index = root.child("IndexDocument")?;
        let error = root.child("ErrorDocument")?;
        let rules = root.child("RoutingRules")?;
        if let Some(all) = root.child("RedirectAllRequestsTo")? {
            if index.or(error).or(rules).is_some() {
                return Err(malformed("<RedirectAllRequestsTo> excludes all other elements"));
            }
            all.only(&["HostName", "Protocol"])?;
            let host = all.required("HostName")?.word()?.to_owned();
            return Ok(Self::RedirectAll { host, protocol: Protocol::read_in(all)? });
        }
        let Some(index) = index else {
            return Err(malformed("<WebsiteConfiguration> has no <IndexDocument>"));
        };
        let key =
            |error: &Element| error.only(&["Key"])?.required("Key")?.text().map(str::to_owned);
        let rules = match rules {
            Some(rules) => {
                let rules = rules.only(&["RoutingRule"])?.all("RoutingRule");
                rules.map(RoutingRule::read).collect::<S3Result<_>>()?
            }
            None => Vec::new(),
        };
        Ok(Self::Pages(Pages {
            index_suffix: index.only(&["Suffix"])?.required("Suffix")?.text()?.to_owned(),
            error_key: error.map(key).transpose()?,
            rules,
        }))
    }

    fn write(&self, xml: &mut Xml) {
        match self {
            Self::RedirectAll { host, protocol } => xml.group("RedirectAllRequestsTo", |xml| {
                xml.element("HostName", host);
                xml.optional("Protocol", protocol.map(Protocol::scheme));
            }),
            Self::Pages(Pages { index_suffix, error_key, rules }) => {
                xml.group("IndexDocument", |xml| xml.element("Suffix", index_suffix));
                if let Some(key) = error_key {
                    xml.group("ErrorDocument", |xml| xml.element("Key", key));
                }
                if !rules.is_empty() {
                    xml.group("RoutingRules", |xml| rules.iter().for_each(|rule| rule.write(xml)));
                }
            }
        }
    }
}

impl RoutingRule {
    fn read(rule: &Element) -> S3Result<Self> {
        rule.only(&["Condition", "Redirect"])?;
        let (mut prefix, mut error_status) = (None, None);
        if let Some(condition) = rule.child("Condition")? {
            condition.only(&["KeyPrefixEquals", "HttpErrorCodeReturnedEquals"])?;
            prefix = condition.text_of("KeyPrefixEquals")?;
            error_status = condition.number_of("HttpErrorCodeReturnedEquals")?;
            if prefix.as_deref().unwrap_or_default().is_empty() && error_status.is_none() {
                return Err(malformed("<Condition> has no condition"));
            }
        }
        let redirect = Redirect::read(rule.required("Redirect")?)?;
        Ok(Self { prefix, error_status, redirect })
    }

    fn write(&self, xml: &mut Xml) {
        let Self { prefix, error_status, redirect } = self;
        xml.group("RoutingRule", |xml| {
            if prefix.is_some() || error_status.is_some() {
                xml.group("Condition", |xml| {
                    xml.optional("HttpErrorCodeReturnedEquals", *error_status);
                    xml.optional("KeyPrefixEquals", prefix.as_ref());
                });
            }
            xml.group("Redirect", |xml| redirect.write(xml));
        });
    }
}

impl Redirect {
    fn read(redirect: &Element) -> S3Result<Self> {
        redirect.only(&[
            "HostName",
            "HttpRedirectCode",
            "Protocol",
            "ReplaceKeyPrefixWith",
            "ReplaceKeyWith",
        ])?;
        let key = redirect.text_of("ReplaceKeyWith")?;
        let prefix = redirect.text_of("ReplaceKeyPrefixWith")?;
        let host = redirect.word_of("HostName")?.filter(|host| !host.is_empty());
        let read = Self {
            host: host.map(str::to_owned),
            protocol: Protocol::read_in(redirect)?,
            status: redirect.number_of("HttpRedirectCode")?,
            replacement: match (key, prefix) {
                (Some(_), Some(_)) => {
                    let message = "A redirect has either ReplaceKeyWith or ReplaceKeyPrefixWith";
                    return Err(invalid(message.to_owned()));
                }
                (Some(key), None) => Some(Replacement::Key(key)),
                (None, prefix) => prefix.map(Replacement::Prefix),
            },
        };
        if read == Self::default() {
            return Err(malformed("<Redirect> is empty"));
        }
        Ok(read)
    }

    fn write(&self, xml: &mut Xml) {
        xml.optional("HostName", self.host.as_ref());
        xml.optional("HttpRedirectCode", self.status);
        xml.optional("Protocol", self.protocol.map(Protocol::scheme));
        match &self.replacement {
            Some(Replacement::Key(key)) => xml.element("ReplaceKeyWith", key),
            Some(Replacement::Prefix(prefix)) => xml.element("ReplaceKeyPrefixWith", prefix),
            None => {}
        }
    }
}

/// Rejects a configuration that S3 does not permit.
pub(crate) fn check(configuration: &WebsiteConfiguration) -> S3Result<()> {
    let Pages { index_suffix, error_key, rules } = match configuration {
        WebsiteConfiguration::RedirectAll { host, .. } => return check_host(host),
        WebsiteConfiguration::Pages(pages) => pages,
    };
    if index_suffix.is_empty() || index_suffix.contains('/') || index_suffix.len() > KEY_BYTES_MAX {
        let message = "The suffix of an index document is a name without a slash";
        return Err(invalid_argument("IndexDocument", index_suffix, message));
    }
    if let Some(key) = error_key
        && !(1..=KEY_BYTES_MAX).contains(&key.len())
    {
        let message = format!("The key of an error document has 1 to {KEY_BYTES_MAX} bytes");
        return Err(invalid_argument("ErrorDocument", key, message));
    }
    if rules.len() > RULES_MAX {
        let count = rules.len();
        return Err(invalid(format!("A website has at most {RULES_MAX} rules, not {count}")));
    }
    rules.iter().try_for_each(check_rule)
}

fn check_rule(rule: &RoutingRule) -> S3Result<()> {
    let RoutingRule { error_status, redirect, .. } = rule;
    match redirect.status {
        None | Some(301..=305 | 307 | 308) => {}
        Some(other) => return Err(invalid(format!("{other} is no status of a redirect"))),
    }
    match error_status {
        None | Some(400..=417 | 500..=505) => {}
        Some(other) => return Err(invalid(format!("{other} is no status of an error"))),
    }
    redirect.host.as_deref().map_or(Ok(()), check_host)
}

/// Rejects a host that would change the meaning of the URL that contains it.
fn check_host(host: &str) -> S3Result<()> {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    if host.is_empty() {
        return Err(malformed("<HostName> is empty"));
    }
    match host.len() <= HOST_BYTES_MAX && host.bytes().all(is_valid) {
        true => Ok(()),
        false => Err(invalid(format!("\"{host}\" is no host name"))),
    }
}

fn invalid(message: String) -> crate::errors::S3Error {
    refuse(S3ErrorCode::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = "<IndexDocument><Suffix>index.html</Suffix></IndexDocument>";

    fn parse(content: &str) -> S3Result<WebsiteConfiguration> {
        let text = format!("<WebsiteConfiguration>{content}</WebsiteConfiguration>");
        WebsiteConfiguration::parse(text.as_bytes())
    }

    /// Returns the code with which a document is rejected; empty if it is accepted.
    fn code(content: &str) -> &'static str {
        let checked = parse(content).and_then(|document| check(&document));
        checked.map_or_else(|error| error.code().as_str(), |()| "")
    }

    fn rule(content: &str) -> String {
        format!("{INDEX}<RoutingRules><RoutingRule>{content}</RoutingRule></RoutingRules>")
    }

    #[test]
    fn documents_survive_a_round_trip() {
        let rules = "<RoutingRules><RoutingRule><Condition>\
            <HttpErrorCodeReturnedEquals>404</HttpErrorCodeReturnedEquals>\
            <KeyPrefixEquals>a&amp;b/</KeyPrefixEquals></Condition><Redirect>\
            <HostName>example.com</HostName><HttpRedirectCode>302</HttpRedirectCode>\
            <Protocol>https</Protocol><ReplaceKeyWith>c</ReplaceKeyWith></Redirect></RoutingRule>\
            <RoutingRule><Redirect><ReplaceKeyPrefixWith></ReplaceKeyPrefixWith></Redirect>\
            </RoutingRule></RoutingRules>";
        for content in [
            INDEX.to_owned(),
            format!("{INDEX}<ErrorDocument><Key>errors/404.html</Key></ErrorDocument>{rules}"),
            "<RedirectAllRequestsTo><HostName>example.com</HostName></RedirectAllRequestsTo>"
                .into(),
            "<RedirectAllRequestsTo><HostName>a.b:8080</HostName><Protocol>http</Protocol>\
             </RedirectAllRequestsTo>"
                .into(),
        ] {
            let document = parse(&content).unwrap();
            assert_eq!(code(&content), "", "{content}");
            assert!(document.text().contains(&content), "{}", document.text());
            assert_eq!(WebsiteConfiguration::parse(document.text().as_bytes()).unwrap(), document);
        }
    }

    #[test]
    fn invalid_documents_have_the_codes_of_s3() {
        let redirect = "<Redirect><HostName>a</HostName></Redirect>";
        let all = "<RedirectAllRequestsTo><HostName>a</HostName></RedirectAllRequestsTo>";
        let index = |suffix| format!("<IndexDocument><Suffix>{suffix}</Suffix></IndexDocument>");
        let error = |key| format!("{INDEX}<ErrorDocument><Key>{key}</Key></ErrorDocument>");
        let to_host = |host| {
            format!("<RedirectAllRequestsTo><HostName>{host}</HostName></RedirectAllRequestsTo>")
        };
        let by = |part: &str| rule(&format!("<Redirect><HostName>a</HostName>{part}</Redirect>"));
        let on = |status| {
            rule(&format!(
                "<Condition><HttpErrorCodeReturnedEquals>{status}</HttpErrorCodeReturnedEquals>\
                 </Condition>{redirect}"
            ))
        };
        let redirect_code = |code| by(&format!("<HttpRedirectCode>{code}</HttpRedirectCode>"));
        let long = "k".repeat(1025);
        let both = "<ReplaceKeyWith>a</ReplaceKeyWith><ReplaceKeyPrefixWith/>";
        for (content, expected) in [
            (String::new(), "MalformedXML"),
            ("<IndexDocument/>".into(), "MalformedXML"),
            (format!("{INDEX}{INDEX}"), "MalformedXML"),
            (format!("{INDEX}<Other/>"), "MalformedXML"),
            (format!("{all}{INDEX}"), "MalformedXML"),
            (format!("{all}<ErrorDocument><Key>e</Key></ErrorDocument>"), "MalformedXML"),
            (format!("{all}<RoutingRules/>"), "MalformedXML"),
            (to_host(""), "MalformedXML"),
            (to_host("a/b"), "InvalidRequest"),
            (to_host("a b"), "InvalidRequest"),
            (to_host("user@a"), "InvalidRequest"),
            (index(""), "InvalidArgument"),
            (index("/index.html"), "InvalidArgument"),
            (index(&long), "InvalidArgument"),
            (error(""), "InvalidArgument"),
            (error(&long), "InvalidArgument"),
            (by("<Protocol>ftp</Protocol>"), "InvalidRequest"),
            (by("<Protocol>https</Protocol>"), ""),
            (by(both), "InvalidRequest"),
            (rule(&format!("<Condition/>{redirect}")), "MalformedXML"),
            (rule("<Redirect/>"), "MalformedXML"),
            (rule("<Condition><KeyPrefixEquals>a</KeyPrefixEquals></Condition>"), "MalformedXML"),
            (rule("<Redirect><HostName>a?b</HostName></Redirect>"), "InvalidRequest"),
            (redirect_code("301"), ""),
            (redirect_code("308"), ""),
            (redirect_code("300"), "InvalidRequest"),
            (redirect_code("306"), "InvalidRequest"),
            (redirect_code("309"), "InvalidRequest"),
            (redirect_code("3xx"), "MalformedXML"),
            (on("400"), ""),
            (on("505"), ""),
            (on("399"), "InvalidRequest"),
            (on("418"), "InvalidRequest"),
            (on("506"), "InvalidRequest"),
            (on("4xx"), "MalformedXML"),
        ] {
            assert_eq!(code(&content), expected, "{content}");
        }
    }

    #[test]
    fn number_of_rules_is_limited() {
        let rules = |count| {
            let one = "<RoutingRule><Redirect><HostName>a</HostName></Redirect></RoutingRule>";
            format!("{INDEX}<RoutingRules>{}</RoutingRules>", one.repeat(count))
        };
        assert_eq!([50, 51].map(|count| code(&rules(count))), ["", "InvalidRequest"]);
    }
}
