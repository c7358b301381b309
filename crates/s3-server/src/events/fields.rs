//! The names of fields in events.

/// The fields of an event, in addition to those that the store adds.
pub(super) const NAME: &str = "event";
pub(super) const USER: &str = "user";
pub(super) const ADDRESS: &str = "address";
pub(super) const REQUEST: &str = "request";
pub(super) const BUCKET_OWNER: &str = "owner";
/// The length that clients see, if it is not the stored one.
pub(super) const SIZE: &str = "size";

/// Returns the name of the field with the ID of the rule that sends an event to a target.
pub(super) fn rule_field(target: &str) -> String {
    format!("rule:{target}")
}
