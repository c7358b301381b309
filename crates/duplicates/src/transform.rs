//! Runs external commands on files. A search compares the outputs instead of the file contents.

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

/// Options for the input of a transform command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransformOptions {
    /// `true` if the command modifies `$IN`, which is then always a copy of the file, and the
    /// modified copy is compared instead of an output.
    pub in_place: bool,
    /// `true` if `$IN` is the original file instead of a copy.
    pub no_copy: bool,
}

/// A command that transforms files before they are compared.
///
/// By default the command reads stdin and writes stdout. In the words of the command, `$IN` is
/// replaced by the path of a copy of the file, and `$OUT` by the path of a FIFO for the output. The
/// command is split into words like in a shell, but is run without a shell.
#[derive(Debug)]
pub struct Transform {
    words: Vec<OsString>,
    options: TransformOptions,
    hash: HashKind,
    dir: PathBuf,
    next: AtomicU64,
}

/// The length and digest of the output of a transform.
pub(crate) type OutputDigest = (u64, Digest);

impl Transform {
    /// Parses a command. Its temporary files are created in `dir`.
    ///
    /// # Errors
    /// Fails if `command` is empty, a quote is not closed, or the variables contradict `options`.
    pub fn new(
        command: &str,
        options: TransformOptions,
        hash: HashKind,
        dir: &Path,
    ) -> Result<Self> {
        let invalid =
            |reason: &str| Error::Transform { path: command.into(), reason: reason.to_owned() };
        let words = split(command).ok_or_else(|| invalid("a quote is not closed"))?;
        if words.is_empty() {
            return Err(invalid("it names no program"));
        }
        let has = |name| words.iter().any(|word| find(word.as_bytes(), name).is_some());
        if options.in_place && (!has(b"$IN") || has(b"$OUT")) {
            return Err(invalid("an in-place command needs $IN and no $OUT"));
        }
        let (dir, next) = (dir.to_owned(), AtomicU64::new(0));
        Ok(Self { words, options, hash, dir, next })
    }

    /// Runs the command on the file at `path` and returns the digest of its output.
    ///
    /// # Errors
    /// Fails if the command cannot be run or its exit status is not 0.
    pub(crate) fn digest_of(&self, path: &Path) -> Result<OutputDigest> {
        let fail = |reason: String| Error::Transform { path: path.to_owned(), reason };
        self.run(path).map_err(|error| fail(error.to_string()))
    }

    fn run(&self, path: &Path) -> io::Result<OutputDigest> {
        let has = |name| self.words.iter().any(|word| find(word.as_bytes(), name).is_some());
        let input = match (has(b"$IN"), self.options.no_copy && !self.options.in_place) {
            (false, _) => None,
            (true, true) => Some(IoFile { path: path.to_owned(), is_owned: false }),
            (true, false) => {
                let copy = self.temp_file("in");
                fs::copy(path, &copy.path)?;
                Some(copy)
            }
        };
        let output = if has(b"$OUT") { Some(self.temp_file("out")) } else { None };
        let mut command = Command::new(&self.words[0]);
        for word in &self.words[1..] {
            let word = substitute(word.as_bytes(), b"$IN", input.as_ref());
            command.arg(OsString::from_vec(substitute(&word, b"$OUT", output.as_ref())));
        }
        command.stderr(Stdio::null()).stdin(match &input {
            None => Stdio::from(File::open(path)?),
            Some(_) => Stdio::null(),
        });
        match (&output, self.options.in_place) {
            (Some(output), _) => {
                let mode = Mode::RUSR | Mode::WUSR;
                rustix::fs::mknodat(rustix::fs::CWD, &output.path, FileType::Fifo, mode, 0)?;
                let fifo = Fifo::open(&output.path)?;
                let child = command.stdout(Stdio::null()).spawn()?;
                self.read_fifo(fifo, child)
            }
            (None, true) => {
                wait(command.stdout(Stdio::null()).spawn()?)?;
                let input = input.as_ref().map_or(path, |input| &*input.path);
                self.digest(&mut File::open(input)?)
            }
            (None, false) => {
                let mut child = command.stdout(Stdio::piped()).spawn()?;
                let stdout = child.stdout.take();
                let output = stdout.map(|mut stdout| self.digest(&mut stdout)).transpose();
                wait(child)?;
                output?.ok_or_else(|| io::Error::other("the command has no stdout"))
            }
        }
    }

    /// Reads the output of the command from the FIFO until the command exits.
    fn read_fifo(&self, fifo: Fifo, child: Child) -> io::Result<OutputDigest> {
        let Fifo { mut read_end, write_end } = fifo;
        std::thread::scope(|scope| {
            let waiter = scope.spawn(move || {
                let status = wait(child);
                drop(write_end);
                status
            });
            let output = self.digest(&mut read_end);
            match waiter.join() {
                Ok(status) => status.and(output),
                Err(_panic) => Err(io::Error::other("cannot wait for the command")),
            }
        })
    }

    fn digest(&self, from: &mut dyn Read) -> io::Result<OutputDigest> {
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

    fn temp_file(&self, prefix: &str) -> IoFile {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        IoFile { path: self.dir.join(format!("{prefix}-{number}")), is_owned: true }
    }
}

/// Both ends of a FIFO that a command writes to, opened before the command starts.
///
/// The read end keeps the output of a command that exits before it is read. The write end keeps a
/// read from ending before the command opens the FIFO; it is closed when the command exits, so that
/// the read ends even if the command never opened the FIFO.
struct Fifo {
    read_end: File,
    write_end: File,
}

impl Fifo {
    fn open(path: &Path) -> io::Result<Self> {
        // Opening one end alone would block; opening both at once never does.
        let write_end = File::options().read(true).write(true).open(path)?;
        Ok(Self { read_end: File::open(path)?, write_end })
    }
}

/// An input or output file of a command. It is removed on drop if it is owned.
#[derive(Debug)]
struct IoFile {
    path: PathBuf,
    is_owned: bool,
}

impl Drop for IoFile {
    fn drop(&mut self) {
        if self.is_owned {
            fs::remove_file(&self.path).ok();
        }
    }
}

/// Waits for a child process; an unsuccessful exit status is an error.
fn wait(mut child: Child) -> io::Result<()> {
    let status = child.wait()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("the command failed: {status}")))
    }
}

fn find(text: &[u8], name: &[u8]) -> Option<usize> {
    text.windows(name.len()).position(|window| window == name)
}

/// Replaces each occurrence of `name` in `word` by a path.
fn substitute(word: &[u8], name: &[u8], file: Option<&IoFile>) -> Vec<u8> {
    let (mut result, mut rest) = (Vec::new(), word);
    let path: &OsStr = file.map_or(OsStr::new(""), |file| file.path.as_os_str());
    while let Some(at) = find(rest, name) {
        result.extend_from_slice(&rest[..at]);
        result.extend_from_slice(path.as_bytes());
        rest = &rest[at + name.len()..];
    }
    result.extend_from_slice(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transformed(
        command: &str,
        options: TransformOptions,
        content: &str,
    ) -> Result<OutputDigest> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a file");
        fs::write(&path, content).unwrap();
        let temp = tempfile::tempdir().unwrap();
        let transform = Transform::new(command, options, HashKind::Xxh3, temp.path())?;
        let output = transform.digest_of(&path);
        assert_eq!(fs::read_to_string(&path).unwrap(), content, "the file is unchanged");
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0, "temporary files are removed");
        output
    }

    #[test]
    fn every_input_and_output_mode_works() {
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
            assert_eq!(transformed(command, options, content).unwrap(), expected, "{command}");
        }
    }

    #[test]
    fn output_of_a_command_that_exits_at_once_is_read() {
        let expected = (3, HashKind::Xxh3.of(b"ABC"));
        for _ in 0..100 {
            let command = "sh -c 'printf ABC > \"$0\"' $OUT";
            let output = transformed(command, TransformOptions::default(), "abc");
            assert_eq!(output.unwrap(), expected);
        }
    }

    #[test]
    fn failing_command_is_an_error_and_does_not_block() {
        let plain = TransformOptions::default();
        for (command, expected) in [
            ("false", "exit status: 1"),
            ("sh -c 'exit 3' $IN $OUT", "exit status: 3"),
            ("no-such-program-anywhere", "No such file"),
            ("'open", "not closed"),
            ("", "no program"),
        ] {
            let error = transformed(command, plain, "x").unwrap_err().to_string();
            assert!(error.contains(expected), "{command}: {error}");
        }
        let in_place = TransformOptions { in_place: true, ..plain };
        assert!(transformed("cat", in_place, "x").is_err());
    }
}
