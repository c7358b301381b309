//! Bucket object lock configurations.

use haul_file_store::{DefaultRetention, RetentionPeriod};
use haul_store_pool::Pool;

use crate::answer::Answer;
use crate::body::Body;
use crate::buckets::documents::{absent, receive};
use crate::errors::{S3ErrorCode, S3Result, from_store, invalid_retention_period};
use crate::objects::lock::{mode_name, mode_of};
use crate::service::Haul;
use crate::service::request::Request;
use crate::xml::Document;
use crate::xml::reader::{Element, malformed};
use crate::xml::writer::Xml;

/// The maximum default retention, as in S3.
const YEARS_MAX: u32 = 100;
const DAYS_MAX: u32 = 36_500;

const ENABLED: &str = "Enabled";

/// The document with a bucket's object lock configuration; only buckets with object lock have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ObjectLockConfiguration {
    default: Option<DefaultRetention>,
}

impl Document for ObjectLockConfiguration {
    const ROOT: &'static str = "ObjectLockConfiguration";

    fn read(root: &Element) -> S3Result<Self> {
        root.only(&["ObjectLockEnabled", "Rule"])?;
        if root.word_of("ObjectLockEnabled")? != Some(ENABLED) {
            return Err(malformed("<ObjectLockEnabled> must be Enabled"));
        }
        let Some(rule) = root.child("Rule")? else { return Ok(Self { default: None }) };
        let retention = rule.only(&["DefaultRetention"])?.required("DefaultRetention")?;
        Ok(Self { default: Some(read_retention(retention)?) })
    }

    fn write(&self, xml: &mut Xml) {
        xml.element("ObjectLockEnabled", ENABLED);
        let Some(DefaultRetention { mode, period }) = self.default else { return };
        let (days, years) = match period {
            RetentionPeriod::Days(days) => (Some(days), None),
            RetentionPeriod::Years(years) => (None, Some(years)),
        };
        xml.group("Rule", |xml| {
            xml.group("DefaultRetention", |xml| {
                xml.optional("Days", days);
                xml.element("Mode", mode_name(mode));
                xml.optional("Years", years);
            });
        });
    }
}

/// Reads a `DefaultRetention` element.
fn read_retention(retention: &Element) -> S3Result<DefaultRetention> {
    retention.only(&["Days", "Mode", "Years"])?;
    let mode = retention.word_of("Mode")?.and_then(mode_of);
    let mode = mode.ok_or_else(|| malformed("<Mode> must be GOVERNANCE or COMPLIANCE"))?;
    let period = match (retention.number_of("Days")?, retention.number_of("Years")?) {
        (Some(days), None) => RetentionPeriod::Days(period(days, DAYS_MAX)?),
        (None, Some(years)) => RetentionPeriod::Years(period(years, YEARS_MAX)?),
        _ => return Err(malformed("<DefaultRetention> must have either <Days> or <Years>")),
    };
    Ok(DefaultRetention { mode, period })
}

fn period(number: i32, max: u32) -> S3Result<u32> {
    let number = u32::try_from(number).ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(invalid_retention_period)
}

pub(crate) async fn put_object_lock_configuration(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    let ObjectLockConfiguration { default } = receive(haul, request, body).await?;
    let bucket = request.name().bucket.clone();
    let set = move |store: &Pool| {
        store.enable_object_lock(&bucket).map_err(from_store)?;
        store.set_default_retention(&bucket, default).map_err(from_store)
    };
    haul.blocking(set).await?;
    Ok(Answer::ok())
}

pub(crate) async fn get_object_lock_configuration(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let bucket = request.name().bucket.clone();
    let get = move |store: &Pool| {
        if !store.has_object_lock(&bucket).map_err(from_store)? {
            return Err(absent(S3ErrorCode::ObjectLockConfigurationNotFoundError));
        }
        store.default_retention(&bucket).map_err(from_store)
    };
    let default = haul.blocking(get).await?;
    Ok(Answer::xml(ObjectLockConfiguration { default }.text()))
}

#[cfg(test)]
mod tests {
    use haul_file_store::RetentionMode;

    use super::*;

    fn parse(content: &str) -> Result<Option<DefaultRetention>, &'static str> {
        let root = ObjectLockConfiguration::ROOT;
        let text = format!("<{root}>{content}</{root}>");
        let parsed = ObjectLockConfiguration::parse(text.as_bytes());
        parsed.map(|found| found.default).map_err(|error| error.code().as_str())
    }

    fn with_retention(content: &str) -> String {
        format!(
            "<ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>{content}\
             </DefaultRetention></Rule>"
        )
    }

    #[test]
    fn retention_has_a_mode_and_one_period() {
        let (governance, compliance) = (RetentionMode::Governance, RetentionMode::Compliance);
        for (content, mode, period) in [
            ("<Mode>GOVERNANCE</Mode><Days>7</Days>", governance, RetentionPeriod::Days(7)),
            (
                "<Years> 100 </Years><Mode>COMPLIANCE</Mode>",
                compliance,
                RetentionPeriod::Years(100),
            ),
        ] {
            let default = Some(DefaultRetention { mode, period });
            assert_eq!(parse(&with_retention(content)), Ok(default), "{content}");
            let document = ObjectLockConfiguration { default };
            let again = ObjectLockConfiguration::parse(document.text().as_bytes());
            assert_eq!(again.unwrap(), document);
        }
        assert_eq!(parse("<ObjectLockEnabled>Enabled</ObjectLockEnabled>"), Ok(None));
    }

    #[test]
    fn invalid_configurations_are_refused() {
        let mode = "<Mode>GOVERNANCE</Mode>";
        for (content, code) in [
            (String::new(), "MalformedXML"),
            ("<ObjectLockEnabled>Disabled</ObjectLockEnabled>".to_owned(), "MalformedXML"),
            ("<ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule/>".to_owned(), "MalformedXML"),
            (with_retention(mode), "MalformedXML"),
            (with_retention("<Days>1</Days>"), "MalformedXML"),
            (with_retention("<Mode>NONE</Mode><Days>1</Days>"), "MalformedXML"),
            (with_retention(&format!("{mode}<Days>1</Days><Years>1</Years>")), "MalformedXML"),
            (with_retention(&format!("{mode}<Days>one</Days>")), "MalformedXML"),
            (with_retention(&format!("{mode}<Days>0</Days>")), "InvalidRetentionPeriod"),
            (with_retention(&format!("{mode}<Days>-3</Days>")), "InvalidRetentionPeriod"),
            (with_retention(&format!("{mode}<Days>36501</Days>")), "InvalidRetentionPeriod"),
            (with_retention(&format!("{mode}<Years>101</Years>")), "InvalidRetentionPeriod"),
        ] {
            assert_eq!(parse(&content), Err(code), "{content}");
        }
    }
}
