//! Turns failures of a command into exit codes and messages on stderr.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::PIPE_BUF;

/// The result of a subcommand.
pub type Result<T = ()> = std::result::Result<T, Failure>;

/// The exit codes. They are part of the interface and are listed in `haul --help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The reader of stdout closed it, as in `haul store ls | head`. This counts as success.
    BrokenPipe,
    /// Part of the work failed, damage or differences were found, or an object does not exist.
    Failed,
    /// The command line is invalid.
    Usage,
    /// The command could not start: for example, a path of the command line does not exist, the
    /// store is locked, the directory is not a store, or an address is in use.
    NotStarted,
    /// The signal with this number stopped the command before all work was done.
    Signal(u8),
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::BrokenPipe => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotStarted => 3,
            Self::Signal(number) => 128 + number,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// The reason why a command failed: the attempted operation, the cause, and advice.
#[derive(Debug)]
pub struct Failure {
    context: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
    advice: Option<String>,
    exit: Exit,
}

impl Failure {
    /// Creates a failure described by `context` alone.
    pub fn new(context: impl Into<String>) -> Self {
        Self { context: Some(context.into()), source: None, advice: None, exit: Exit::Failed }
    }

    /// Creates a failure that was already reported on stderr.
    pub fn reported() -> Self {
        Self { context: None, source: None, advice: None, exit: Exit::Failed }
    }

    /// Sets the cause of the failure.
    #[must_use]
    pub fn because(mut self, error: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(error));
        self
    }

    /// Adds a line of advice or further information.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        let advice = advice.into();
        self.advice = Some(match self.advice {
            Some(before) => format!("{before}\n  {advice}"),
            None => advice,
        });
        self
    }

    /// Sets the exit code, which is otherwise 1.
    #[must_use]
    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// Returns the cause of the failure, if any.
    pub fn cause(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }

    /// `true` if there is advice.
    pub fn has_advice(&self) -> bool {
        self.advice.is_some()
    }

    /// Returns the message with context, causes and advice, or `None` if the failure was already
    /// reported.
    pub fn text(&self) -> Option<String> {
        let source = self.source.as_deref().map(|source| source as &dyn Error);
        let mut text = chain(self.context.as_deref()?, source);
        if let Some(advice) = &self.advice {
            text = format!("{text}\n  {advice}");
        }
        Some(text)
    }
}

/// Converts the error of a library into a [`Failure`] with context.
pub trait OrFail<T> {
    /// Converts an error to a [`Failure`]. `context` returns the attempted operation, which follows
    /// "haul: " in the message, for example "cannot read the file x".
    fn or_fail(self, context: impl FnOnce() -> String) -> Result<T>;

    /// Like [`or_fail`](Self::or_fail), for an error that prevents the command from starting, such
    /// as a path of the command line that does not exist: the failure has [`Exit::NotStarted`].
    fn or_not_start(self, context: impl FnOnce() -> String) -> Result<T>
    where
        Self: Sized,
    {
        self.or_fail(context).map_err(|failure| failure.exit(Exit::NotStarted))
    }
}

impl<T, E: Error + Send + Sync + 'static> OrFail<T> for std::result::Result<T, E> {
    fn or_fail(self, context: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Failure::new(context()).because(error))
    }
}

/// Prints the failure, if any, and returns the exit code of the program.
pub fn exit_code(result: Result) -> ExitCode {
    let Err(failure) = result else { return ExitCode::SUCCESS };
    if let Some(text) = failure.text().filter(|_| failure.exit != Exit::BrokenPipe) {
        print_message(&text);
    }
    failure.exit.into()
}

/// Prints a message to stderr. Errors of stderr are ignored.
pub fn print_message(text: &str) {
    writeln!(io::stderr(), "haul: {text}").ok();
}

/// Prints a message to stderr without blocking, and drops the part that stderr cannot accept
/// immediately. Takes no lock on stderr: a thread that is blocked on stderr may hold the lock.
pub fn try_print_message(text: &str) {
    let stderr = io::stderr();
    // If a pipe is writable, a write of up to PIPE_BUF bytes to it does not block.
    for piece in format!("haul: {text}\n").as_bytes().chunks(PIPE_BUF) {
        let mut ready = [PollFd::new(&stderr, PollFlags::OUT)];
        let no_wait = Timespec::default();
        let is_writable = poll(&mut ready, Some(&no_wait)).is_ok_and(|count| count > 0);
        if !is_writable || rustix::io::write(&stderr, piece).is_err() {
            return;
        }
    }
}

/// Returns `context`, followed by `source` and its causes. Each text appears once, even if an error
/// repeats the text of its cause.
pub fn chain(context: &str, source: Option<&(dyn Error + 'static)>) -> String {
    haul_disk::append_sources(context.to_owned(), source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_the_chain_is_printed_once() {
        let kernel = io::Error::other("no space left");
        let disk = haul_disk::Error::new(haul_disk::Op::Write, "/d/v1", kernel);
        let failure = Failure::new("cannot store \"k\"").because(disk);
        assert_eq!(
            failure.text().unwrap(),
            "cannot store \"k\": cannot write /d/v1: no space left"
        );
    }

    #[test]
    fn reported_failures_have_no_text() {
        assert_eq!(Failure::reported().text(), None);
    }

    #[test]
    fn advice_follows_the_message_on_lines_of_its_own() {
        let failure = Failure::new("cannot start");
        assert!(!failure.has_advice() && failure.cause().is_none());
        let failure = failure.advise("use another port").advise("or stop the server");
        let text = "cannot start\n  use another port\n  or stop the server";
        assert_eq!((failure.has_advice(), failure.text().as_deref()), (true, Some(text)));
    }

    #[test]
    fn errors_of_libraries_become_failures_with_an_exit_code() {
        let full =
            || haul_disk::Error::new(haul_disk::Op::Write, "/d/v1", rustix::io::Errno::NOSPC);
        let failure = Err::<(), _>(full()).or_fail(|| "cannot store".to_owned()).unwrap_err();
        assert_eq!(failure.exit, Exit::Failed);
        assert!(failure.cause().is_some_and(|cause| cause.is::<haul_disk::Error>()));
        let failure = Err::<(), _>(full()).or_not_start(|| "cannot open".to_owned()).unwrap_err();
        assert_eq!(failure.exit, Exit::NotStarted);
        assert_eq!(Ok::<_, io::Error>(7).or_fail(String::new).unwrap(), 7);
    }

    #[test]
    fn exit_codes_are_those_of_the_documentation() {
        let failed = |exit| exit_code(Err(Failure::reported().exit(exit)));
        for (exit, code) in [
            (Exit::BrokenPipe, 0),
            (Exit::Failed, 1),
            (Exit::Usage, 2),
            (Exit::NotStarted, 3),
            (Exit::Signal(15), 143),
        ] {
            assert_eq!(failed(exit), ExitCode::from(code), "{exit:?}");
        }
        assert_eq!(exit_code(Ok(())), ExitCode::SUCCESS);
    }
}
