//! Opening: what the log has and the file has not is written again.

use std::sync::Arc;

use haul_append_log::{Log, Lsn, Position};
use haul_disk::Disk;

use crate::error::{Error, Result};
use crate::page_file::format::{Owner, Record, decode};

/// What a log says about itself.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Of the last mark.
    pub(crate) mark: Option<Mark>,
    pub(crate) records: u64,
    /// The writes in front of the commit of a patch.
    pub(crate) committed: Option<u64>,
    /// There are records nobody here knows.
    pub(crate) is_foreign: bool,
}

#[derive(Debug)]
pub(crate) struct Mark {
    owner: Owner,
    pub(crate) through: Lsn,
    file_bytes: u64,
    name: String,
}

impl Found {
    fn record(&mut self, payload: &[u8]) {
        self.records += 1;
        match decode(payload) {
            Some(Record::Mark { owner, through, file_bytes, name }) => {
                let (through, name) = (Lsn(through), name.to_owned());
                self.mark = Some(Mark { owner, through, file_bytes, name });
            }
            Some(Record::Commit { records }) => self.committed = Some(records),
            Some(Record::Write { .. }) => {}
            None => self.is_foreign = true,
        }
    }

    /// Refuses a log of something else. One without any record is new.
    pub(crate) fn check(
        &self,
        dir: &dyn Disk,
        owner: Owner,
        name: &str,
        file_bytes: u64,
    ) -> Result<()> {
        let foreign = |what: String| Err(Error::Foreign { dir: dir.root().to_path_buf(), what });
        if self.is_foreign {
            return foreign("it holds records this version does not know".to_owned());
        }
        let Some(mark) = &self.mark else {
            return match self.records {
                0 => Ok(()),
                _ => foreign("it does not say what file it is for".to_owned()),
            };
        };
        if mark.owner != owner {
            let other = match mark.owner {
                Owner::PageFile => "a page file",
                Owner::Patch => "a patch",
            };
            return foreign(format!("it is the log of {other}"));
        }
        if mark.name != name {
            return foreign(format!("it is for the file {}", mark.name));
        }
        if mark.file_bytes > file_bytes {
            let (was, is) = (mark.file_bytes, file_bytes);
            return foreign(format!("its file had {was} bytes, and this one has {is}"));
        }
        Ok(())
    }
}

/// Opens a log and reads what it says about itself.
pub(crate) fn open(
    disk: &Arc<dyn Disk>,
    options: haul_append_log::Options,
) -> Result<(Log, Found)> {
    let mut found = Found::default();
    let mut each = |_: Position, payload: &[u8]| found.record(payload);
    let (log, _recovered) = Log::open(Arc::clone(disk), options, &mut each)?;
    Ok((log, found))
}

/// Takes a write: its LSN, its offset, its bytes.
pub(crate) type EachWrite<'a> = dyn FnMut(Lsn, u64, &[u8]) -> Result<()> + 'a;

/// Gives the writes of the log behind `through`, in its order, and says how many there were.
pub(crate) fn each_write(log: &Log, through: Lsn, each: &mut EachWrite<'_>) -> Result<u64> {
    let mut reader = log.reader(through);
    let mut writes = 0;
    while let Some((at, payload)) = reader.read_next()? {
        if at.lsn > through
            && let Some(Record::Write { offset, bytes }) = decode(payload)
        {
            each(at.lsn, offset, bytes)?;
            writes += 1;
        }
    }
    Ok(writes)
}
