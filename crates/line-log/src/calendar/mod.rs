//! Times: the clock, calendar dates, the timestamps of lines, and the times of rotations.

mod clock;
mod local;
mod schedule;
mod stamp;
mod utc;

pub use clock::{Clock, SystemClock};
pub use schedule::Schedule;
pub use stamp::{StampFormat, Stamper};
pub use utc::Utc;
