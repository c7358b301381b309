//! Takes over from the process that this one replaces.

mod admin_takeover;
mod predecessor;

pub(crate) use admin_takeover::AdminTakeover;
pub(crate) use predecessor::Predecessor;
