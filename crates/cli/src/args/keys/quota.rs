//! The options for the quota of a user.

use clap::Args;
use haul_file_store::Quota;

use crate::units::parse_bytes;

/// The limit that removes a limit.
const NONE: &str = "none";

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct QuotaArgs {
    /// Limit the bytes in the buckets of the user, such as 10GiB; "none" removes the limit
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    quota: Option<Limit>,
    /// Limit the objects in the buckets of the user; "none" removes the limit
    #[arg(long, value_name = "N", value_parser = parse_number)]
    quota_objects: Option<Limit>,
}

/// A limit to set; `None` removes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit(Option<u64>);

impl QuotaArgs {
    /// Returns `true` if no option is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.quota.is_none() && self.quota_objects.is_none()
    }

    /// Returns a quota with the limits that are given, and those of `before` otherwise.
    pub(crate) fn applied_to(&self, before: Quota) -> Quota {
        Quota {
            bytes: self.quota.map_or(before.bytes, |limit| limit.0),
            objects: self.quota_objects.map_or(before.objects, |limit| limit.0),
        }
    }
}

fn parse_size(text: &str) -> Result<Limit, String> {
    if text == NONE { Ok(Limit(None)) } else { parse_bytes(text).map(|bytes| Limit(Some(bytes))) }
}

fn parse_number(text: &str) -> Result<Limit, String> {
    if text == NONE {
        return Ok(Limit(None));
    }
    let number = text.parse().map(|number| Limit(Some(number)));
    number.map_err(|_not_a_number| format!("must be a whole number, or {NONE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_are_not_given_stay() {
        let before = Quota { bytes: Some(1), objects: Some(2) };
        for (quota, quota_objects, expected) in [
            (None, None, before),
            (Some("none"), None, Quota { bytes: None, ..before }),
            (Some("1KiB"), Some("none"), Quota { bytes: Some(1024), objects: None }),
            (None, Some("0"), Quota { objects: Some(0), ..before }),
        ] {
            let quota = quota.map(|text| parse_size(text).unwrap());
            let quota_objects = quota_objects.map(|text| parse_number(text).unwrap());
            let args = QuotaArgs { quota, quota_objects };
            assert_eq!(args.applied_to(before), expected);
        }
        for text in ["", "-1", "1K", "None"] {
            assert!(parse_number(text).is_err(), "{text}");
        }
    }
}
