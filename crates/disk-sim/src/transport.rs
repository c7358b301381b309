//! Measures the overhead, in real time, that FUSE and the loop device add to a request.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::queue::DriveQueue;

/// How many requests are measured. Each reply is sent after `LATENCY`, which is long enough for
/// idle processors to enter a sleep state, as they do during a seek.
const REQUESTS: usize = 24;
const LATENCY: Duration = Duration::from_millis(8);

const BYTES: usize = 4096;

/// The maximum overhead that is compensated. Longer delays are caused by a busy machine.
const TRANSPORT_MAX: Duration = Duration::from_millis(1);

/// Returns the median overhead for a 4 KiB read from the device: its time beyond the fixed latency.
pub(crate) fn measure(queue: &DriveQueue, node: &str) -> Result<Duration, String> {
    queue.set_fixed_latency(Some(LATENCY));
    let times = read_repeatedly(node);
    queue.set_fixed_latency(None);
    let mut times = times.map_err(|error| format!("cannot read {node}: {error}"))?;
    times.sort_unstable();
    Ok(times[times.len() / 2].saturating_sub(LATENCY).min(TRANSPORT_MAX))
}

fn read_repeatedly(node: &str) -> io::Result<Vec<Duration>> {
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
