//! The document of a bucket's notification configuration.

use std::collections::HashSet;

use crate::errors::{S3ErrorCode, S3Result, refuse};
use crate::settings::notification::destination::target_of;
use crate::settings::notification::name::{EventName, EventPattern};
use crate::xml::Document;
use crate::xml::reader::{Element, malformed};
use crate::xml::writer::Xml;

/// The maximum number of rules in a bucket, as in S3.
const RULES_MAX: usize = 100;

/// The maximum length of a rule's ID, in characters, as in S3.
const ID_CHARS_MAX: usize = 255;

/// The maximum length of a prefix or suffix, in characters, as in S3.
const FILTER_CHARS_MAX: usize = 1024;

/// A bucket's rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NotificationConfiguration {
    pub(crate) rules: Vec<NotificationRule>,
}

/// A rule, which sends events to a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotificationRule {
    pub(crate) id: String,
    kind: RuleKind,
    arn: String,
    /// The target in the ARN.
    pub(crate) target: String,
    events: Vec<EventPattern>,
    prefix: Option<String>,
    suffix: Option<String>,
}

/// The element in which a rule names its target. All have the same meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuleKind {
    Queue,
    Topic,
    Function,
}

impl RuleKind {
    const ALL: [Self; 3] = [Self::Topic, Self::Queue, Self::Function];

    /// Returns the names of the rule's element, and of the element with the ARN.
    fn elements(self) -> [&'static str; 2] {
        match self {
            Self::Queue => ["QueueConfiguration", "Queue"],
            Self::Topic => ["TopicConfiguration", "Topic"],
            Self::Function => ["CloudFunctionConfiguration", "CloudFunction"],
        }
    }
}

impl NotificationRule {
    /// Returns `true` if the rule selects this event of a key.
    pub(crate) fn selects(&self, name: EventName, key: &str) -> bool {
        self.events.iter().any(|pattern| pattern.selects(name))
            && self.prefix.as_ref().is_none_or(|prefix| key.starts_with(&**prefix))
            && self.suffix.as_ref().is_none_or(|suffix| key.ends_with(&**suffix))
    }

    fn read(rule: &Element, kind: RuleKind, number: usize) -> S3Result<Self> {
        let [_, name] = kind.elements();
        rule.only(&["Id", name, "Event", "Filter"])?;
        let arn = rule.required(name)?.word()?.to_owned();
        let Some(target) = target_of(&arn).map(str::to_owned) else {
            return Err(no_destination());
        };
        let events = rule.all("Event").map(read_event).collect::<S3Result<Vec<_>>>()?;
        if events.is_empty() {
            return Err(malformed("a notification rule has no <Event>"));
        }
        let id = rule.text_of("Id")?.filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| format!("rule-{number}"));
        if id.chars().count() > ID_CHARS_MAX {
            return Err(invalid(&format!("An ID has at most {ID_CHARS_MAX} characters")));
        }
        let [prefix, suffix] = rule.child("Filter")?.map_or(Ok([None, None]), read_filter)?;
        Ok(Self { id, kind, arn, target, events, prefix, suffix })
    }

    fn write(&self, xml: &mut Xml) {
        let [_, name] = self.kind.elements();
        xml.element("Id", &self.id);
        xml.element(name, &self.arn);
        self.events.iter().for_each(|event| xml.element("Event", event.as_str()));
        if self.prefix.is_none() && self.suffix.is_none() {
            return;
        }
        let filters = [("prefix", &self.prefix), ("suffix", &self.suffix)];
        xml.group("Filter", |xml| {
            xml.group("S3Key", |xml| {
                for (name, value) in filters {
                    let Some(value) = value else { continue };
                    xml.group("FilterRule", |xml| {
                        xml.element("Name", name);
                        xml.element("Value", value);
                    });
                }
            });
        });
    }
}

impl Document for NotificationConfiguration {
    const ROOT: &'static str = "NotificationConfiguration";

    fn read(root: &Element) -> S3Result<Self> {
        if root.child("EventBridgeConfiguration")?.is_some() {
            let message = "Events cannot be sent to EventBridge: name a target in a queue's rule";
            return Err(refuse(S3ErrorCode::NotImplemented, message));
        }
        root.only(&RuleKind::ALL.map(|kind| kind.elements()[0]))?;
        let mut rules = Vec::new();
        for kind in RuleKind::ALL {
            for rule in root.all(kind.elements()[0]) {
                rules.push(NotificationRule::read(rule, kind, rules.len() + 1)?);
            }
        }
        if rules.len() > RULES_MAX {
            return Err(invalid(&format!("A bucket has at most {RULES_MAX} notification rules")));
        }
        let mut ids = HashSet::new();
        match rules.iter().find(|rule| !ids.insert(&rule.id)) {
            Some(rule) => Err(invalid(&format!("The ID {:?} is used twice", rule.id))),
            None => Ok(Self { rules }),
        }
    }

    fn write(&self, xml: &mut Xml) {
        for rule in &self.rules {
            xml.group(rule.kind.elements()[0], |xml| rule.write(xml));
        }
    }
}

fn read_event(event: &Element) -> S3Result<EventPattern> {
    let text = event.word()?;
    EventPattern::parse(text).ok_or_else(|| {
        invalid(&format!(
            "The event {text:?} is not supported for notifications: there are s3:ObjectCreated:*, \
             s3:ObjectRemoved:*, s3:ObjectTagging:*, s3:ObjectAcl:Put and s3:LifecycleExpiration:*"
        ))
    })
}

/// Returns the prefix and the suffix.
fn read_filter(filter: &Element) -> S3Result<[Option<String>; 2]> {
    let mut found = [None, None];
    let Some(key) = filter.only(&["S3Key"])?.child("S3Key")? else { return Ok(found) };
    for rule in key.only(&["FilterRule"])?.all("FilterRule") {
        rule.only(&["Name", "Value"])?;
        let name = rule.required("Name")?.word()?.to_ascii_lowercase();
        let Some(number) = ["prefix", "suffix"].iter().position(|known| *known == name) else {
            return Err(invalid("The name of a filter rule must be either prefix or suffix"));
        };
        let value = rule.required("Value")?.text()?.to_owned();
        if value.chars().count() > FILTER_CHARS_MAX {
            let message =
                format!("The value of a filter has at most {FILTER_CHARS_MAX} characters");
            return Err(invalid(&message));
        }
        if found[number].replace(value).is_some() {
            return Err(invalid(&format!("A filter has one rule for the {name} only")));
        }
    }
    Ok(found)
}

/// Returns the error for an ARN that names no target of this server.
pub(crate) fn no_destination() -> crate::errors::S3Error {
    invalid(
        "A specified destination ARN does not exist or is not well-formed. Verify the destination \
         ARN: the server has the targets of --event-targets, such as arn:haul:sqs:::NAME",
    )
}

fn invalid(message: &str) -> crate::errors::S3Error {
    refuse(S3ErrorCode::InvalidArgument, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(content: &str) -> S3Result<NotificationConfiguration> {
        let text = format!("<NotificationConfiguration>{content}</NotificationConfiguration>");
        NotificationConfiguration::parse(text.as_bytes())
    }

    fn rule(content: &str) -> String {
        format!(
            "<QueueConfiguration><Queue>arn:haul:sqs:::orders</Queue>\
             <Event>s3:ObjectCreated:*</Event>{content}</QueueConfiguration>"
        )
    }

    fn filter(rules: &[(&str, &str)]) -> String {
        let rule = |(name, value): &(&str, &str)| {
            format!("<FilterRule><Name>{name}</Name><Value>{value}</Value></FilterRule>")
        };
        let rules: String = rules.iter().map(rule).collect();
        format!("<Filter><S3Key>{rules}</S3Key></Filter>")
    }

    #[test]
    fn rules_select_events_by_name_prefix_and_suffix() {
        let found = parse(&rule(&filter(&[("Prefix", "in/"), ("suffix", ".jpg")]))).unwrap();
        let [rule] = &found.rules[..] else { panic!("{found:?}") };
        assert_eq!((&*rule.target, &*rule.id), ("orders", "rule-1"));
        for (name, key, is_selected) in [
            (EventName::CreatedByPut, "in/a.jpg", true),
            (EventName::CreatedByUpload, "in/.jpg", true),
            (EventName::Removed, "in/a.jpg", false),
            (EventName::CreatedByPut, "out/a.jpg", false),
            (EventName::CreatedByPut, "in/a.png", false),
        ] {
            assert_eq!(rule.selects(name, key), is_selected, "{key}");
        }
        assert!(parse("").unwrap().rules.is_empty());
    }

    #[test]
    fn configuration_survives_a_round_trip() {
        let text = format!(
            "{}<TopicConfiguration><Id>a</Id><Topic>arn:aws:sns:r:1:t</Topic>\
             <Event>s3:ObjectAcl:Put</Event><Event>s3:ObjectRemoved:Delete</Event>\
             </TopicConfiguration><CloudFunctionConfiguration><Id> b </Id>\
             <CloudFunction>arn:aws:lambda:r:1:function:f</CloudFunction>\
             <Event>s3:ObjectTagging:*</Event></CloudFunctionConfiguration>{}",
            rule("<Id>c</Id>"),
            rule(&filter(&[("prefix", "")])),
        );
        let found = parse(&text).unwrap();
        assert_eq!(found.rules.len(), 4);
        let again = NotificationConfiguration::parse(found.text().as_bytes()).unwrap();
        assert_eq!(again, found);
    }

    #[test]
    fn invalid_configurations_are_refused() {
        use S3ErrorCode::{InvalidArgument, MalformedXML, NotImplemented};

        let long = "a".repeat(1025);
        for (text, code) in [
            (rule("<Other/>"), MalformedXML),
            (rule("").replace("<Event>s3:ObjectCreated:*</Event>", ""), MalformedXML),
            (rule("").replace("Created", "Accessed"), InvalidArgument),
            (rule("").replace(":orders", ""), InvalidArgument),
            (rule(&filter(&[("middle", "a")])), InvalidArgument),
            (rule(&filter(&[("prefix", "a"), ("Prefix", "b")])), InvalidArgument),
            (rule(&filter(&[("prefix", &long)])), InvalidArgument),
            (rule(&format!("<Id>{long}</Id>")), InvalidArgument),
            (rule("<Id>a</Id>").repeat(2), InvalidArgument),
            (rule("").repeat(101), InvalidArgument),
            ("<EventBridgeConfiguration/>".to_owned(), NotImplemented),
            ("<Other/>".to_owned(), MalformedXML),
        ] {
            assert_eq!(parse(&text).unwrap_err().code(), code, "{text}");
        }
    }
}
