//! Times: the clock, calendar dates, the timestamps of lines, and the times of rotations.

mod clock;
mod local;
mod moment;
mod schedule;
mod stamp;
mod utc;

pub use clock::{Clock, SystemClock};
pub use moment::parse_moment;
pub use schedule::Schedule;
pub(crate) use stamp::{STAMP_BYTES_MAX, parse_stamp};
pub use stamp::{StampFormat, Stamper, split_stamp};
pub use utc::Utc;
pub(crate) use utc::micros;
