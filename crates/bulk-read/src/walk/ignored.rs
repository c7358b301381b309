//! What `.gitignore`, `.fdignore` and `.ignore` leave out.
//!
//! The rules of one file come from the `ignore` crate; here is only which files apply: those of
//! the directory, then those of the ones above it up to the root of the walk. The innermost that
//! says anything decides, as git has it. Files above the root do not count.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

/// Of one directory, a later name wins over an earlier one.
const NAMES: [&CStr; 3] = [c".gitignore", c".fdignore", c".ignore"];

/// Longer than any list of patterns that was written by hand.
const BYTES_MAX: usize = 1 << 20;

/// The rules that apply in a directory.
#[derive(Debug)]
pub(super) struct Ignored {
    rules: Gitignore,
    /// How much of a path leads to the directory, with the slash behind it.
    prefix_bytes: usize,
    above: Option<Arc<Self>>,
}

impl Ignored {
    /// The rules in the directory `dir` with that path, below a directory with rules `above`.
    pub(super) fn below(above: Option<Arc<Self>>, dir: &OwnedFd, path: &[u8]) -> Option<Arc<Self>> {
        let mut builder = GitignoreBuilder::new("");
        let mut is_empty = true;
        for text in NAMES.iter().filter_map(|name| text(dir, name)) {
            for line in String::from_utf8_lossy(&text).lines() {
                // A line that is no pattern is no rule; git does not mind either.
                is_empty &= builder.add_line(None, line).is_err();
            }
        }
        if is_empty {
            return above;
        }
        let slash = usize::from(!path.is_empty() && !path.ends_with(b"/"));
        let Ok(rules) = builder.build() else { return above };
        Some(Arc::new(Self { rules, prefix_bytes: path.len() + slash, above }))
    }

    /// Whether the rules leave out what has that whole path.
    pub(super) fn leaves_out(&self, path: &[u8], is_dir: bool) -> bool {
        let mut at = Some(self);
        while let Some(here) = at {
            let relative = path.get(here.prefix_bytes..).unwrap_or_default();
            match here.rules.matched(Path::new(std::ffi::OsStr::from_bytes(relative)), is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => at = here.above.as_deref(),
            }
        }
        false
    }
}

/// What such a file says; nothing if it is not there, or not to be read.
fn text(dir: &OwnedFd, name: &CStr) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = fs::openat(dir, name, flags, Mode::empty()).ok()?;
    let mut text = vec![0; 16 << 10];
    let mut filled = 0;
    loop {
        match rustix::io::read(&fd, &mut text[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        if filled == text.len() {
            if filled >= BYTES_MAX {
                break;
            }
            text.resize(filled * 2, 0);
        }
    }
    text.truncate(filled);
    Some(text)
}
