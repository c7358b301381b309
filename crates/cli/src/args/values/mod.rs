//! Defines options and values that several commands share.

mod number;
mod progress;

pub(crate) use number::{
    parse_bytes_between, parse_bytes_from, parse_positive, parse_time_between, parse_time_from,
};
pub(crate) use progress::ProgressArgs;
