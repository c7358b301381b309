//! The names of fields in events.

/// The fields of an event, in addition to those that the store adds.
pub(super) const NAME: &str = "event";
pub(super) const USER: &str = "user";
pub(super) const ADDRESS: &str = "address";
pub(super) const REQUEST: &str = "request";
pub(super) const BUCKET_OWNER: &str = "owner";
/// The length that clients see, if it is not the stored one.
pub(super) const SIZE: &str = "size";

/// The number of clients that had begun to listen before the event.
pub(super) const LISTENING: &str = "listening";

/// The prefix of the field with the ID of the rule that sends an event to a target, whose name
/// follows.
pub(super) const RULE: &str = "rule:";

/// The length of most events' fields, in bytes.
pub(super) const FIELDS_BYTES: usize = 192;
