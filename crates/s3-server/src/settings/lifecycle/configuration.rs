//! The document with a bucket's lifecycle rules. Pure.

use std::time::SystemTime;

use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

use crate::errors::{S3ErrorCode, S3Result, refuse};
use crate::times::document_time;
use crate::xml::Document;
use crate::xml::reader::{Element, malformed};
use crate::xml::tagging::{read_tag, write_tag};
use crate::xml::writer::Xml;

/// The values of a rule's `Status`.
pub(super) const ENABLED: &str = "Enabled";
pub(super) const DISABLED: &str = "Disabled";

/// A bucket's rules, as S3 has them. Their values need not be valid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LifecycleConfiguration {
    pub(super) rules: Vec<Rule>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) id: Option<String>,
    pub(super) status: String,
    /// The prefix outside the filter, in the earlier form of rules.
    pub(super) prefix: Option<String>,
    pub(super) filter: Option<Filter>,
    pub(super) expiration: Option<Expiration>,
    pub(super) noncurrent: Option<NoncurrentExpiration>,
    /// The action that aborts uploads.
    pub(super) abort: Option<Abort>,
    /// The transitions to other storage classes, each with its date, if it has one.
    pub(super) transitions: Vec<Option<SystemTime>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filter {
    /// All conditions in a filter that combines several. The filter itself then has none.
    pub(super) and: Option<Conditions>,
    pub(super) one: Conditions,
}

/// The conditions that a filter has for objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    pub(super) prefix: Option<String>,
    pub(super) greater_than: Option<i64>,
    pub(super) less_than: Option<i64>,
    pub(super) tags: Vec<(String, String)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Expiration {
    pub(super) days: Option<i32>,
    pub(super) date: Option<SystemTime>,
    pub(super) expire_markers: Option<bool>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct NoncurrentExpiration {
    pub(super) days: Option<i32>,
    pub(super) newer_versions: Option<i32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Abort {
    pub(super) days: Option<i32>,
}

impl Document for LifecycleConfiguration {
    const ROOT: &'static str = "LifecycleConfiguration";

    fn read(root: &Element) -> S3Result<Self> {
        let rules = root.only(&["Rule"])?.all("Rule").map(Rule::read);
        Ok(Self { rules: rules.collect::<S3Result<_>>()? })
    }

    fn write(&self, xml: &mut Xml) {
        for rule in &self.rules {
            xml.group("Rule", |xml| rule.write(xml));
        }
    }
}

impl Rule {
    fn read(rule: &Element) -> S3Result<Self> {
        rule.only(&[
            "AbortIncompleteMultipartUpload",
            "Expiration",
            "Filter",
            "ID",
            "NoncurrentVersionExpiration",
            "NoncurrentVersionTransition",
            "Prefix",
            "Status",
            "Transition",
        ])?;
        let expiration = rule.child("Expiration")?.map(Expiration::read).transpose()?;
        let noncurrent = rule.child("NoncurrentVersionExpiration")?;
        let abort = rule.child("AbortIncompleteMultipartUpload")?;
        Ok(Self {
            id: rule.text_of("ID")?,
            status: rule.required("Status")?.word()?.to_owned(),
            prefix: rule.text_of("Prefix")?,
            filter: rule.child("Filter")?.map(Filter::read).transpose()?,
            expiration,
            noncurrent: noncurrent.map(NoncurrentExpiration::read).transpose()?,
            abort: abort.map(Abort::read).transpose()?,
            transitions: read_transitions(rule)?,
        })
    }

    fn write(&self, xml: &mut Xml) {
        if let Some(Abort { days }) = self.abort {
            xml.group("AbortIncompleteMultipartUpload", |xml| {
                xml.optional("DaysAfterInitiation", days);
            });
        }
        if let Some(expiration) = &self.expiration {
            xml.group("Expiration", |xml| expiration.write(xml));
        }
        if let Some(filter) = &self.filter {
            xml.group("Filter", |xml| filter.write(xml));
        }
        xml.optional("ID", self.id.as_ref());
        if let Some(NoncurrentExpiration { days, newer_versions }) = self.noncurrent {
            xml.group("NoncurrentVersionExpiration", |xml| {
                xml.optional("NewerNoncurrentVersions", newer_versions);
                xml.optional("NoncurrentDays", days);
            });
        }
        xml.optional("Prefix", self.prefix.as_ref());
        xml.element("Status", &self.status);
    }
}

impl Filter {
    fn read(filter: &Element) -> S3Result<Self> {
        filter.only(&["And", "ObjectSizeGreaterThan", "ObjectSizeLessThan", "Prefix", "Tag"])?;
        let and = filter.child("And")?;
        let and = and.map(|and| {
            Conditions::read(and.only(&[
                "ObjectSizeGreaterThan",
                "ObjectSizeLessThan",
                "Prefix",
                "Tag",
            ])?)
        });
        // A filter combines several tags with `And`.
        filter.child("Tag")?;
        Ok(Self { and: and.transpose()?, one: Conditions::read(filter)? })
    }

    fn write(&self, xml: &mut Xml) {
        if let Some(and) = &self.and {
            xml.group("And", |xml| and.write(xml));
        }
        self.one.write(xml);
    }
}

impl Conditions {
    fn read(conditions: &Element) -> S3Result<Self> {
        let tags = conditions.all("Tag").map(read_tag);
        Ok(Self {
            prefix: conditions.text_of("Prefix")?,
            greater_than: conditions.number_of("ObjectSizeGreaterThan")?,
            less_than: conditions.number_of("ObjectSizeLessThan")?,
            tags: tags.collect::<S3Result<_>>()?,
        })
    }

    fn write(&self, xml: &mut Xml) {
        xml.optional("ObjectSizeGreaterThan", self.greater_than);
        xml.optional("ObjectSizeLessThan", self.less_than);
        xml.optional("Prefix", self.prefix.as_ref());
        self.tags.iter().for_each(|(key, value)| write_tag(xml, key, value));
    }

    pub(super) fn count(&self) -> usize {
        let given = [self.prefix.is_some(), self.greater_than.is_some(), self.less_than.is_some()];
        given.into_iter().filter(|is_given| *is_given).count() + self.tags.len()
    }
}

impl Expiration {
    fn read(expiration: &Element) -> S3Result<Self> {
        expiration.only(&["Date", "Days", "ExpiredObjectDeleteMarker"])?;
        Ok(Self {
            days: expiration.number_of("Days")?,
            date: read_date(expiration)?,
            expire_markers: expiration.flag_of("ExpiredObjectDeleteMarker")?,
        })
    }

    fn write(&self, xml: &mut Xml) {
        xml.optional("Date", self.date.map(document_time));
        xml.optional("Days", self.days);
        xml.optional("ExpiredObjectDeleteMarker", self.expire_markers);
    }
}

impl NoncurrentExpiration {
    fn read(expiration: &Element) -> S3Result<Self> {
        expiration.only(&["NewerNoncurrentVersions", "NoncurrentDays"])?;
        Ok(Self {
            days: expiration.number_of("NoncurrentDays")?,
            newer_versions: expiration.number_of("NewerNoncurrentVersions")?,
        })
    }
}

impl Abort {
    fn read(abort: &Element) -> S3Result<Self> {
        abort.only(&["DaysAfterInitiation"])?;
        Ok(Self { days: abort.number_of("DaysAfterInitiation")? })
    }
}

/// Returns the dates of a rule's transitions; `None` for a transition without a date.
fn read_transitions(rule: &Element) -> S3Result<Vec<Option<SystemTime>>> {
    let noncurrent = rule.all("NoncurrentVersionTransition").map(|transition| {
        transition.only(&["NewerNoncurrentVersions", "NoncurrentDays", "StorageClass"])?;
        Ok(None)
    });
    let current = rule
        .all("Transition")
        .map(|transition| read_date(transition.only(&["Date", "Days", "StorageClass"])?));
    current.chain(noncurrent).collect()
}

/// Returns the date in an action.
fn read_date(action: &Element) -> S3Result<Option<SystemTime>> {
    let Some(word) = action.word_of("Date")? else { return Ok(None) };
    let Ok(date) = OffsetDateTime::parse(word, &Rfc3339) else {
        return Err(malformed(&format!("<Date> is no time: {word:?}")));
    };
    match date.checked_to_offset(UtcOffset::UTC) {
        Some(date) => Ok(Some(date.into())),
        None => Err(refuse(S3ErrorCode::InvalidArgument, "'Date' must be before the year 10000")),
    }
}
