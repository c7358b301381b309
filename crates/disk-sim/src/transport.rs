//! What a request costs on its way through the kernel, this machine's own time.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::arm::Arm;

/// How many requests are sent, one after the other, and how long each waits for its answer: long
/// enough for the processors to fall asleep, as they do while an arm moves.
const REQUESTS: usize = 24;
const ANSWER: Duration = Duration::from_millis(8);

const BYTES: usize = 4096;

/// More than the way can cost: what a busy machine adds is not hidden.
const TRANSPORT_MAX: Duration = Duration::from_millis(1);

/// What a read of 4 KiB of the device takes above the time of its answer: the median.
pub(crate) fn measure(arm: &Arm, node: &str) -> Result<Duration, String> {
    arm.answer_after(Some(ANSWER));
    let times = read_again_and_again(node);
    arm.answer_after(None);
    let mut times = times.map_err(|error| format!("cannot read {node}: {error}"))?;
    times.sort_unstable();
    Ok(times[times.len() / 2].saturating_sub(ANSWER).min(TRANSPORT_MAX))
}

fn read_again_and_again(node: &str) -> io::Result<Vec<Duration>> {
    let flags = OFlags::DIRECT.bits().cast_signed();
    let device = OpenOptions::new().read(true).custom_flags(flags).open(node)?;
    let mut memory = vec![0; 2 * BYTES];
    let aligned = memory.as_ptr().align_offset(BYTES);
    let buffer = &mut memory[aligned..][..BYTES];
    let times = (0..REQUESTS).map(|_| {
        let began = Instant::now();
        device.read_exact_at(buffer, 0)?;
        Ok(began.elapsed())
    });
    times.collect()
}
