//! The session: a random number by which a process recognizes the copy that it owns.
//!
//! The manifest has its owner's session. A file beside the log has the session of this directory's
//! last owner, so that only this directory continues the copy.

use haul_append_log::Lsn;
use haul_disk::{Disk, Durability, Open, read_full, write_full};

use crate::error::{Error, Result};

/// The file beside the log.
pub(crate) const NAME: &str = "REPLICA";

const UNFINISHED: &str = "REPLICA.new";

/// The file's maximum length in bytes.
const BYTES_MAX: usize = 200;

/// The sessions by which this directory recognizes its copy. Both are needed, because a crash can
/// leave the manifest with either of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sessions {
    /// The session that a claim is about to store, or has stored.
    pub(crate) claimed: u128,
    /// The session before it.
    pub(crate) previous: Option<u128>,
    /// The only end of the copy that this directory may continue. In a restored directory it
    /// applies until a claim has waited for the lease of the copy's owner, which may still be
    /// alive. In a directory whose log did not continue the copy, it applies permanently.
    pub(crate) copy_end: Option<Lsn>,
}

impl Sessions {
    /// Returns the session for a directory that was restored from a copy with this session and end.
    pub(crate) fn restored(session: u128, end: Lsn) -> Self {
        Self { claimed: session, previous: None, copy_end: Some(end) }
    }

    /// Returns the sessions for claiming the copy, whose manifest has the session `current`.
    ///
    /// An earlier claim that failed may still be executed. It is repeated with the same session, so
    /// that this directory recognizes either claim's manifest.
    pub(crate) fn for_claim(found: Option<Self>, current: Option<u128>) -> Result<Self> {
        let copy_end = found.and_then(|sessions| sessions.copy_end);
        let repeated = found.map(|sessions| sessions.claimed).filter(|it| Some(*it) != current);
        let claimed = repeated.map_or_else(new_session, Ok)?;
        Ok(Self { claimed, previous: current, copy_end })
    }

    /// `true` if a manifest with this session belongs to this directory.
    pub(crate) fn has(self, session: u128) -> bool {
        self.claimed == session || self.previous == Some(session)
    }

    /// Reads a directory's sessions; `None` if it never had a copy.
    pub(crate) fn load(disk: &dyn Disk) -> Result<Option<Self>> {
        let read_only = Open { read_only: true, ..Open::default() };
        let file = match disk.open(NAME, read_only) {
            Err(error) if error.is_not_found() => return Ok(None),
            opened => opened?,
        };
        let mut bytes = vec![0; BYTES_MAX];
        let read = read_full(&*file, &mut bytes, 0)?;
        match parse(&bytes[..read]) {
            Some(sessions) => Ok(Some(sessions)),
            None => {
                let path = disk.root().join(NAME);
                Err(Error::Invalid(format!("{} is not a session file", path.display())))
            }
        }
    }

    /// Stores the sessions.
    ///
    /// 1. Writes and syncs the unfinished file. After a crash the old file remains.
    /// 2. Renames it. After a crash either file remains, which is complete.
    /// 3. Syncs the directory.
    ///
    /// # Durability
    /// The sessions survive a power cut when this returns.
    pub(crate) fn store(self, disk: &dyn Disk) -> Result<()> {
        match disk.remove(UNFINISHED) {
            Err(error) if !error.is_not_found() => return Err(error.into()),
            _ => {}
        }
        let file = disk.create(UNFINISHED, Open::default())?;
        write_full(&*file, self.text().as_bytes(), 0)?;
        file.sync(Durability::Everything)?;
        disk.rename(UNFINISHED, NAME)?;
        Ok(disk.sync_dir("")?)
    }

    fn text(self) -> String {
        let previous = self.previous.map(|session| format!("previous {session:032x}\n"));
        let copy_end = self.copy_end.map(|end| format!("copy-end {end}\n"));
        let [previous, copy_end] = [previous, copy_end].map(Option::unwrap_or_default);
        format!("session {:032x}\n{previous}{copy_end}", self.claimed)
    }
}

fn parse(bytes: &[u8]) -> Option<Sessions> {
    let mut lines = std::str::from_utf8(bytes).ok()?.lines();
    let number = |line: &str, name: &str| {
        u128::from_str_radix(line.strip_prefix(name)?.strip_prefix(' ')?, 16).ok()
    };
    let claimed = number(lines.next()?, "session")?;
    let mut next = lines.next();
    let previous = next.and_then(|line| number(line, "previous"));
    if previous.is_some() {
        next = lines.next();
    }
    let copy_end = next.and_then(|line| line.strip_prefix("copy-end ")?.parse().ok());
    if copy_end.is_some() {
        next = lines.next();
    }
    (next, lines.next()).eq(&(None, None)).then_some(Sessions { claimed, previous, copy_end })
}

fn new_session() -> Result<u128> {
    Ok(u128::from_le_bytes(haul_disk::random_bytes()?))
}

#[cfg(test)]
mod tests {
    use haul_disk_sim::{MemoryDisk, Survival};

    use super::*;

    #[test]
    fn crash_leaves_the_sessions_before_or_after_the_change() {
        let disk = MemoryDisk::default();
        assert_eq!(Sessions::load(&disk).unwrap(), None);
        let old = Sessions::restored(1, Lsn::new(2, 4096));
        let new = Sessions { claimed: u128::MAX, previous: Some(1), copy_end: None };
        old.store(&disk).unwrap();
        let (mut medium, steps) = (disk.medium(), disk.steps().len());
        new.store(&disk).unwrap();
        assert_eq!(Sessions::load(&disk).unwrap(), Some(new));
        for step in &disk.steps()[steps..] {
            medium.apply_step(step);
            for survival in [Survival::Nothing, Survival::Everything]
                .into_iter()
                .chain((0..16).map(|seed| Survival::Half { seed }))
            {
                let left = MemoryDisk::on(&medium.cut(survival));
                let found = Sessions::load(&left).unwrap();
                assert!(found == Some(old) || found == Some(new), "{step:?}: {found:?}");
            }
        }
    }

    #[test]
    fn file_with_other_text_is_an_error() {
        for text in [
            "",
            "session\n",
            "session xyz\n",
            "session 1\nprevious\n",
            "session 1\nprevious 2\n3\n",
            "session 1\ncopy-end\n",
            "session 1\ncopy-end 2\n",
            "session 1\ncopy-end 2:4096\nprevious 2\n",
            "session 1\ncopy-end 2:4096\ncopy-end 2:4096\n",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }
}
