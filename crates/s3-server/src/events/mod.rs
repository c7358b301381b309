//! Bucket notifications: events about changes, which are queued in the store with the change and
//! sent to targets.
//!
//! `requester` describes who made a request, `new` makes the event of a change, and `record` formats
//! a queued event as S3 does. `options` has the settings of targets, and `target` the targets and
//! their counts. `unknown` finds the targets that rules name and the server does not have, and `lost`
//! counts their events. `sender` sends messages, by `webhook` or `nats`; `delivery` takes events from
//! a queue, sends them, and removes them. `listeners` are clients that receive events while they are
//! connected; `listening` sends them.

pub(crate) mod delivery;
mod fields;
pub(crate) mod listeners;
pub(crate) mod listening;
mod lost;
#[cfg(feature = "nats")]
mod nats;
pub(crate) mod new;
pub(crate) mod options;
pub(crate) mod record;
pub(crate) mod requester;
mod send_error;
mod sender;
pub(crate) mod target;
pub(crate) mod unknown;
mod webhook;
