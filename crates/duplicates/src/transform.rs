//! Files as a command of the user's makes them: what is compared instead of their bytes.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use haul_bulk_read::digest::{Digest, HashKind};
use rustix::fs::{FileType, Mode};

use crate::error::{Error, Result};
use crate::shell::split;

/// Where the command takes a file from and where its output is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransformOptions {
    /// The output is the input file, which the command changes: always a copy.
    pub in_place: bool,
    /// `$IN` is the file itself instead of a copy of it.
    pub no_copy: bool,
}

/// A command that makes of each file what is compared.
///
/// The file comes on its stdin and the result is read from its stdout; `$IN` in the command is
/// the path of a copy of the file instead, and `$OUT` that of a pipe to write the result to. There
/// is no shell: words are split as one does, and nothing else.
#[derive(Debug)]
pub struct Transform {
    words: Vec<OsString>,
    options: TransformOptions,
    hash: HashKind,
    dir: PathBuf,
    next: AtomicU64,
}

/// What a transformed file is known by: the length and the digest of the result.
pub(crate) type Made = (u64, Digest);

impl Transform {
    /// A command, which keeps its copies and pipes in `dir`.
    ///
    /// # Errors
    /// When `command` holds no program, or its quotes are not closed.
    pub fn new(
        command: &str,
        options: TransformOptions,
        hash: HashKind,
        dir: &Path,
    ) -> Result<Self> {
        let wrong = |what: &str| Error::Transform { path: command.into(), what: what.to_owned() };
        let words = split(command).ok_or_else(|| wrong("a quote is not closed"))?;
        if words.is_empty() {
            return Err(wrong("it names no program"));
        }
        let has = |name| words.iter().any(|word| find(word.as_bytes(), name).is_some());
        if options.in_place && (!has(b"$IN") || has(b"$OUT")) {
            return Err(wrong("what changes a file in place takes $IN, and no $OUT"));
        }
        let (dir, next) = (dir.to_owned(), AtomicU64::new(0));
        Ok(Self { words, options, hash, dir, next })
    }

    /// What the command makes of the file at `path`.
    ///
    /// # Errors
    /// When it cannot be run, or says by its exit code that it failed.
    pub(crate) fn digest_of(&self, path: &Path) -> Result<Made> {
        let fail = |what: String| Error::Transform { path: path.to_owned(), what };
        self.run(path).map_err(|error| fail(error.to_string()))
    }

    fn run(&self, path: &Path) -> io::Result<Made> {
        let has = |name| self.words.iter().any(|word| find(word.as_bytes(), name).is_some());
        let input = match (has(b"$IN"), self.options.no_copy && !self.options.in_place) {
            (false, _) => None,
            (true, true) => Some(Passing { path: path.to_owned(), is_ours: false }),
            (true, false) => {
                let copy = self.passing("in");
                fs::copy(path, &copy.path)?;
                Some(copy)
            }
        };
        let output = if has(b"$OUT") { Some(self.passing("out")) } else { None };
        let mut command = Command::new(&self.words[0]);
        for word in &self.words[1..] {
            let word = replaced(word.as_bytes(), b"$IN", input.as_ref());
            command.arg(OsString::from_vec(replaced(&word, b"$OUT", output.as_ref())));
        }
        command.stderr(Stdio::null()).stdin(match &input {
            None => Stdio::from(File::open(path)?),
            Some(_) => Stdio::null(),
        });
        match (&output, self.options.in_place) {
            (Some(output), _) => {
                let mode = Mode::RUSR | Mode::WUSR;
                rustix::fs::mknodat(rustix::fs::CWD, &output.path, FileType::Fifo, mode, 0)?;
                let child = command.stdout(Stdio::null()).spawn()?;
                self.read_pipe(&output.path, child)
            }
            (None, true) => {
                finished(command.stdout(Stdio::null()).spawn()?)?;
                let input = input.as_ref().map_or(path, |input| &*input.path);
                self.digest(&mut File::open(input)?)
            }
            (None, false) => {
                let mut child = command.stdout(Stdio::piped()).spawn()?;
                let stdout = child.stdout.take();
                let made = stdout.map(|mut stdout| self.digest(&mut stdout)).transpose();
                finished(child)?;
                made?.ok_or_else(|| io::Error::other("it has no stdout"))
            }
        }
    }

    /// Reads what the command writes to the pipe. A command that ends without ever opening it
    /// must not leave us waiting: we hold an end for writing until it has ended.
    fn read_pipe(&self, path: &Path, child: Child) -> io::Result<Made> {
        let keeper = File::options().read(true).write(true).open(path)?;
        std::thread::scope(|scope| {
            let ended = scope.spawn(move || {
                let ended = finished(child);
                drop(keeper);
                ended
            });
            let made = self.digest(&mut File::open(path)?);
            match ended.join() {
                Ok(ended) => ended.and(made),
                Err(_panic) => Err(io::Error::other("the command could not be waited for")),
            }
        })
    }

    fn digest(&self, from: &mut dyn Read) -> io::Result<Made> {
        let (mut hasher, mut bytes, mut buffer) = (self.hash.hasher(), 0, vec![0; 64 << 10]);
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok((bytes, hasher.finish())),
                Ok(read) => {
                    hasher.update(&buffer[..read]);
                    bytes += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn passing(&self, what: &str) -> Passing {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Passing { path: self.dir.join(format!("{what}-{number}")), is_ours: true }
    }
}

/// A file that is there while a command runs.
#[derive(Debug)]
struct Passing {
    path: PathBuf,
    is_ours: bool,
}

impl Drop for Passing {
    fn drop(&mut self) {
        if self.is_ours {
            fs::remove_file(&self.path).ok();
        }
    }
}

fn finished(mut child: Child) -> io::Result<()> {
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("it ended with {status}"))) }
}

fn find(text: &[u8], name: &[u8]) -> Option<usize> {
    text.windows(name.len()).position(|window| window == name)
}

/// `word` with a path in each place of `name`.
fn replaced(word: &[u8], name: &[u8], by: Option<&Passing>) -> Vec<u8> {
    let (mut made, mut rest) = (Vec::new(), word);
    let by: &OsStr = by.map_or(OsStr::new(""), |passing| passing.path.as_os_str());
    while let Some(at) = find(rest, name) {
        made.extend_from_slice(&rest[..at]);
        made.extend_from_slice(by.as_bytes());
        rest = &rest[at + name.len()..];
    }
    made.extend_from_slice(rest);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(command: &str, options: TransformOptions, content: &str) -> Result<Made> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a file");
        fs::write(&path, content).unwrap();
        let passing = tempfile::tempdir().unwrap();
        let transform = Transform::new(command, options, HashKind::Xxh3, passing.path())?;
        let made = transform.digest_of(&path);
        assert_eq!(fs::read_to_string(&path).unwrap(), content, "the file is as it was");
        assert_eq!(fs::read_dir(passing.path()).unwrap().count(), 0, "nothing is left");
        made
    }

    #[test]
    fn a_command_reads_and_writes_in_any_of_its_ways() {
        let plain = TransformOptions::default();
        let no_copy = TransformOptions { no_copy: true, ..plain };
        let in_place = TransformOptions { in_place: true, ..plain };
        let expected = (3, HashKind::Xxh3.of(b"ABC"));
        for (command, options) in [
            ("tr a-z A-Z", plain),
            ("sh -c 'tr a-z A-Z < \"$0\"' $IN", plain),
            ("sh -c 'tr a-z A-Z < \"$0\"' $IN", no_copy),
            ("sh -c 'tr a-z A-Z > \"$0\"' $OUT", plain),
            ("sh -c 'tr a-z A-Z < \"$0\" > \"$1\"' $IN $OUT", plain),
            ("sed -i y/abc/ABC/ $IN", in_place),
        ] {
            let content = "abc";
            assert_eq!(made(command, options, content).unwrap(), expected, "{command}");
        }
    }

    #[test]
    fn a_command_that_fails_says_so_and_none_waits_forever() {
        let plain = TransformOptions::default();
        for (command, why) in [
            ("false", "exit status: 1"),
            ("sh -c 'exit 3' $IN $OUT", "exit status: 3"),
            ("no-such-program-anywhere", "No such file"),
            ("'open", "not closed"),
            ("", "no program"),
        ] {
            let error = made(command, plain, "x").unwrap_err().to_string();
            assert!(error.contains(why), "{command}: {error}");
        }
        let in_place = TransformOptions { in_place: true, ..plain };
        assert!(made("cat", in_place, "x").is_err());
    }
}
