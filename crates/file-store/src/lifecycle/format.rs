//! A lifecycle's format in the attributes of its bucket's needle, which `FORMAT.md` describes.
//! Pure.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use crate::error::{Error, Result};
use crate::lifecycle::rules::{
    Expiry, Lifecycle, LifecycleRule, NoncurrentExpiry, duration_millis, millis,
};
use crate::lifecycle::tags::{decode as decode_tags, encode as encode_tags};
use crate::object::Attributes;

/// The prefix with which all rule attributes' names begin.
const PREFIX: &str = "lifecycle.";

/// Returns `true` if a bucket attribute belongs to the bucket's rules.
pub(crate) fn is_rule(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Returns a lifecycle's attributes: `lifecycle.NUMBER.FIELD` for each rule field that does not
/// have its default value.
pub(crate) fn encode(lifecycle: &Lifecycle) -> Attributes {
    let mut attributes = Attributes::new();
    for (number, rule) in lifecycle.rules.iter().enumerate() {
        let mut set = |field: &str, value: String| {
            attributes.set(format!("{PREFIX}{number:04}.{field}"), value);
        };
        set("status", if rule.enabled { "enabled" } else { "disabled" }.to_owned());
        let (expire_after, expire_at) = match rule.expire {
            Some(Expiry::After(age)) => (Some(duration_millis(age)), None),
            Some(Expiry::At(time)) => (None, Some(millis(time))),
            None => (None, None),
        };
        for (field, text) in [("id", &rule.id), ("prefix", &rule.prefix), ("note", &rule.note)] {
            if !text.is_empty() {
                set(field, text.clone());
            }
        }
        if !rule.tags.is_empty() {
            set("tags", encode_tags(&rule.tags));
        }
        let noncurrent = rule.expire_noncurrent;
        let newer_versions = noncurrent.map(|expiry| u64::from(expiry.newer_versions));
        let round_up_to = Some(duration_millis(rule.round_up_to)).filter(|unit| *unit > 0);
        for (field, value) in [
            ("bytes-greater-than", rule.bytes_greater_than),
            ("bytes-less-than", rule.bytes_less_than),
            ("expire-after-ms", expire_after),
            ("expire-at-ms", expire_at),
            ("noncurrent-after-ms", noncurrent.map(|expiry| duration_millis(expiry.after))),
            ("noncurrent-newer-versions", newer_versions.filter(|number| *number > 0)),
            ("expire-markers", rule.expire_markers.then_some(1)),
            ("abort-uploads-after-ms", rule.abort_uploads_after.map(duration_millis)),
            ("round-up-to-ms", round_up_to),
        ] {
            if let Some(value) = value {
                set(field, value.to_string());
            }
        }
    }
    attributes
}

/// Decodes the lifecycle in a bucket's attributes.
///
/// # Errors
/// [`Error::Invalid`] if a field is unknown or malformed, because a later version wrote it: without
/// the field, the rule might delete too much.
pub(crate) fn decode(attributes: &Attributes) -> Result<Lifecycle> {
    let mut rules: BTreeMap<&str, LifecycleRule> = BTreeMap::new();
    for (name, value) in attributes.iter() {
        let Some(name) = name.strip_prefix(PREFIX) else { continue };
        let (number, field) = name.split_once('.').ok_or_else(|| unknown_field(name, value))?;
        let rule = rules.entry(number).or_default();
        set_field(rule, field, value).ok_or_else(|| unknown_field(field, value))?;
    }
    Ok(Lifecycle { rules: rules.into_values().collect() })
}

/// Sets a field of a rule; `None` if the field is unknown or malformed.
fn set_field(rule: &mut LifecycleRule, field: &str, value: &str) -> Option<()> {
    let number = || value.parse::<u64>().ok();
    let duration = || number().map(Duration::from_millis);
    match field {
        "status" => rule.enabled = ["disabled", "enabled"].iter().position(|s| *s == value)? == 1,
        "id" => value.clone_into(&mut rule.id),
        "prefix" => value.clone_into(&mut rule.prefix),
        "note" => value.clone_into(&mut rule.note),
        "bytes-greater-than" => rule.bytes_greater_than = Some(number()?),
        "bytes-less-than" => rule.bytes_less_than = Some(number()?),
        "tags" if !value.is_empty() => rule.tags = decode_tags(value),
        "expire-after-ms" => rule.expire = Some(Expiry::After(duration()?)),
        "expire-at-ms" => rule.expire = Some(Expiry::At(UNIX_EPOCH.checked_add(duration()?)?)),
        // The attributes are sorted, so the age comes before the number.
        "noncurrent-after-ms" => {
            let after = duration()?;
            rule.expire_noncurrent = Some(NoncurrentExpiry { after, newer_versions: 0 });
        }
        "noncurrent-newer-versions" => {
            rule.expire_noncurrent.as_mut()?.newer_versions = value.parse().ok()?;
        }
        "expire-markers" if value == "1" => rule.expire_markers = true,
        "abort-uploads-after-ms" => rule.abort_uploads_after = Some(duration()?),
        "round-up-to-ms" => rule.round_up_to = duration()?,
        _ => return None,
    }
    Some(())
}

fn unknown_field(field: &str, value: &str) -> Error {
    let what = format!("a lifecycle rule has an unknown field or value: \"{field}\" = \"{value}\"");
    Error::Invalid { what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Lifecycle {
        let millis = Duration::from_millis;
        let full = LifecycleRule {
            id: "a rule".to_owned(),
            enabled: true,
            prefix: "a.b\n/\u{e4}".to_owned(),
            bytes_greater_than: Some(0),
            bytes_less_than: Some(u64::MAX),
            tags: [("a b", "\u{e4}&="), ("c", "")].map(|(k, v)| (k.into(), v.into())).into(),
            expire: Some(Expiry::After(millis(86_400_000))),
            expire_noncurrent: Some(NoncurrentExpiry { after: millis(9), newer_versions: 3 }),
            expire_markers: true,
            abort_uploads_after: Some(millis(7)),
            round_up_to: millis(86_400_000),
            note: "filter".to_owned(),
        };
        let dated = LifecycleRule {
            expire: Some(Expiry::At(UNIX_EPOCH + millis(5))),
            ..LifecycleRule::default()
        };
        Lifecycle { rules: vec![full, dated] }
    }

    #[test]
    fn rules_round_trip_in_order() {
        let mut many = rules();
        for number in 0..998 {
            let id = number.to_string();
            many.rules.push(LifecycleRule { id, ..many.rules[0].clone() });
        }
        for lifecycle in [rules(), many, Lifecycle::default()] {
            assert_eq!(decode(&encode(&lifecycle)).unwrap(), lifecycle);
        }
    }

    #[test]
    fn attributes_match_the_description() {
        let pairs: Vec<_> = encode(&rules())
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .filter(|pair| pair.contains("0001"))
            .collect();
        assert_eq!(pairs, ["lifecycle.0001.expire-at-ms=5", "lifecycle.0001.status=disabled"]);
    }

    #[test]
    fn unknown_fields_and_values_are_errors() {
        for (name, value) in [
            ("lifecycle.0000.tag", "x"),
            ("lifecycle.0000.tags", ""),
            ("lifecycle.0000.status", "paused"),
            ("lifecycle.0000.expire-after-ms", "-1"),
            ("lifecycle.0000.expire-after-ms", ""),
            ("lifecycle.0000", ""),
            ("lifecycle.0000.noncurrent-newer-versions", "-1"),
            ("lifecycle.0001.noncurrent-newer-versions", "1"),
            ("lifecycle.0000.expire-markers", "0"),
        ] {
            let mut attributes = encode(&rules());
            attributes.set(name, value);
            assert!(decode(&attributes).is_err(), "{name}={value}");
        }
        let mut other = encode(&rules());
        other.set("owner", "x");
        assert_eq!(decode(&other).unwrap(), rules(), "other attributes are ignored");
    }
}
