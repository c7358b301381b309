//! Measures writes of single blocks by each [`Method`].

use std::sync::Arc;
use std::time::Instant;

use haul_disk::{Durability, File, Open, write_durable, write_full, write_out};

use crate::error::{Error, Result};
use crate::method::Method;
use crate::options::{BLOCK_BYTES, Options};
use crate::rounds::turns;
use crate::scratch::{Scratch, noise};
use crate::stats::Sample;
use crate::watch::Steps;

/// The writes of single blocks by one method.
#[derive(Debug, Clone)]
pub struct MethodWrite {
    /// The method of writing.
    pub method: Method,
    /// The latencies of the writes and their total time, over all rounds.
    pub sample: Sample,
    /// The reason why the method could not be measured; `None` if it was measured.
    pub why_not: Option<String>,
}

/// Measures all methods, in rounds that measure each method once.
pub(crate) fn measure(
    scratch: &Scratch,
    options: &Options,
    steps: &Steps<'_>,
) -> Result<Vec<MethodWrite>> {
    let mut rows = Method::ALL.map(|method| MethodWrite {
        method,
        sample: Sample::default(),
        why_not: (method.is_direct() && !scratch.is_direct)
            .then(|| "the file system has no direct I/O".to_owned()),
    });
    let mut next = 0;
    for turn in turns(options.rounds.max(1), rows.len()) {
        let row = &mut rows[turn.which];
        steps.at(1 + turn.done, &row.method.to_string())?;
        if row.why_not.is_some() {
            continue;
        }
        match round(scratch, options, row.method, &mut next, steps) {
            Ok(sample) => row.sample.add(&sample),
            Err(Error::Disk(error)) if error.is_unsupported() => {
                row.why_not = Some(haul_disk::error_chain(&error));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(rows.into())
}

/// Measures one method for one round. `next` is the offset of the next overwrite; it moves through
/// the file, so that no block is overwritten twice in a row.
fn round(
    scratch: &Scratch,
    options: &Options,
    method: Method,
    next: &mut u64,
    steps: &Steps<'_>,
) -> Result<Sample> {
    let (file, bytes) = open(scratch, method)?;
    let block = noise(BLOCK_BYTES);
    let mut sample = Sample::default();
    let mut offset = if method == Method::Growing { 0 } else { *next };
    // The first write is not timed: it may have to wait for metadata that opening the file changed.
    write(&*file, method, &block, offset)?;
    while sample.latencies.count() == 0 || sample.time < options.time {
        steps.watcher.check()?;
        offset += BLOCK_BYTES as u64;
        if method != Method::Growing && offset >= bytes {
            offset = 0;
        }
        let began = Instant::now();
        write(&*file, method, &block, offset)?;
        let took = began.elapsed();
        sample.latencies.record(took);
        sample.time += took;
    }
    if method != Method::Growing {
        *next = (offset + BLOCK_BYTES as u64) % bytes;
    }
    // Without this sync, the kernel might write this method's dirty pages while the next method is
    // measured.
    file.sync(Durability::Everything)?;
    Ok(sample)
}

fn open(scratch: &Scratch, method: Method) -> Result<(Arc<dyn File>, u64)> {
    let dsync = matches!(method, Method::Dsync | Method::DirectDsync);
    let how = Open { direct: method.is_direct(), dsync, ..Open::default() };
    let file = match method {
        Method::Growing => scratch.disk.unnamed(how)?,
        _ => scratch.open(how)?,
    };
    Ok((file, scratch.bytes))
}

fn write(file: &dyn File, method: Method, block: &[u8], offset: u64) -> Result<()> {
    if method == Method::DirectWriteDsync {
        return Ok(write_durable(file, block, offset)?);
    }
    write_full(file, block, offset)?;
    match method {
        Method::Fdatasync | Method::DirectFdatasync | Method::Growing => {
            file.sync(Durability::Data)?;
        }
        Method::WrittenOut => write_out(file, offset, block.len() as u64)?,
        Method::Dsync | Method::DirectDsync | Method::DirectWriteDsync => {}
    }
    Ok(())
}
