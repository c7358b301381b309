//! Parses the values of fields: dates, ranges, entity tags, conditions and lists.
//!
//! The first two bytes are the length of the representation; the rest is a value.

use std::time::{Duration, UNIX_EPOCH};

use crate::heads::assert_ranges;
use crate::input::Input;
use haul_http1::{
    Conditions, Date, EntityTag, IfRange, Modified, TagList, Validators, Verdict, list_members,
    parse_date,
};

const TAG: &[u8] = b"\"tag\"";

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let length = u64::from(input.short());
    let value = input.take(usize::MAX);
    assert_ranges(value, length);
    let date = parse_date(value);
    if let Some(date) = date {
        assert_eq!(parse_date(Date::of(date).as_bytes()), Some(date));
    }
    let tag = EntityTag::parse(value);
    assert!(tag.is_none_or(|tag| tag.weak_eq(&tag)));
    assert_eq!(matches!(IfRange::parse(value), IfRange::Tag(_)), tag.is_some());
    assert!(list_members(value).all(|one| !one.is_empty() && !one.contains(&b',')));

    let modified = Modified { at: UNIX_EPOCH + Duration::from_secs(7), is_strong: true };
    let validators = Validators { tag: EntityTag::strong(TAG), modified: Some(modified) };
    let with = |value| Some(TagList::from_iter([value, &b"*"[..]]));
    let always = Conditions { if_match: with(value), ..Conditions::default() };
    assert_eq!(always.evaluate(&validators), Verdict::Proceed { with_ranges: true });
    let never = Conditions { if_none_match: with(value), ..Conditions::default() };
    assert_eq!(never.evaluate(&validators), Verdict::NotModified);
    let only = Some(TagList::from_iter([value]));
    let matching = Conditions { if_match: only, ..Conditions::default() };
    let is_listed = value.trim_ascii() == b"*" || value.windows(TAG.len()).any(|part| part == TAG);
    assert!(is_listed || matching.evaluate(&validators) == Verdict::Failed);
}
