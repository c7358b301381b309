//! How the program ends, and what it says on stderr when something went wrong.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use haul_file_store::Error as StoreError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::PIPE_BUF;

/// The result of a subcommand.
pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

/// The exit codes. They are part of the interface, and told in `haul --help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Nobody reads stdout any more (`haul store ls | head`): that is how pipes end.
    NobodyReads,
    /// Some of it failed, or damage was found.
    Failed,
    /// The command line is wrong.
    Usage,
    /// It could not start: the store is locked or no store, an address is taken.
    NotStarted,
    /// A signal of this number asked it to stop before everything was done.
    Signal(u8),
}

impl Exit {
    fn code(self) -> u8 {
        match self {
            Self::NobodyReads => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotStarted => 3,
            Self::Signal(number) => 128 + number,
        }
    }
}

/// Why a subcommand did not succeed: what was tried, why it failed, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    what: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
    advice: Option<String>,
    exit: Exit,
}

impl Failure {
    /// A failure told by `what` alone.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: Some(what.into()), source: None, advice: None, exit: Exit::Failed }
    }

    /// A failure everything was said about already.
    pub(crate) fn told() -> Self {
        Self { what: None, source: None, advice: None, exit: Exit::Failed }
    }

    /// The same failure, with its cause.
    #[must_use]
    pub(crate) fn because(mut self, error: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(error));
        self
    }

    /// The same failure, with what to do about it, or what else there is to know: each in a line.
    #[must_use]
    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        let advice = advice.into();
        self.advice = Some(match self.advice {
            Some(before) => format!("{before}\n  {advice}"),
            None => advice,
        });
        self
    }

    /// The same failure, ending the program with another code than 1.
    #[must_use]
    pub(crate) fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// Whether a file could not be written because the disk under it is full.
    pub(crate) fn is_disk_full(&self) -> bool {
        let source = self.source.as_deref().and_then(|source| source.downcast_ref());
        source.is_some_and(haul_disk::Error::is_full)
    }

    /// Everything there is to say, in one or two lines.
    pub(crate) fn text(&self) -> Option<String> {
        let source = self.source.as_deref().map(|source| source as &dyn Error);
        let mut text = chain(self.what.as_deref()?, source);
        if let Some(advice) = self.advice.as_deref().or_else(|| advice(source?)) {
            text = format!("{text}\n  {advice}");
        }
        Some(text)
    }
}

/// Turns the error of a library into a [`Failure`] that says what was tried.
pub(crate) trait OrFail<T> {
    /// `what` completes "haul: ", such as "cannot read the file x".
    fn or_fail(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Error + Send + Sync + 'static> OrFail<T> for std::result::Result<T, E> {
    fn or_fail(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Failure::new(what()).because(error))
    }
}

/// Says what there is to say, and gives the code to end with.
pub(crate) fn exit_code(result: Result) -> ExitCode {
    let Err(failure) = result else { return ExitCode::SUCCESS };
    if let Some(text) = failure.text().filter(|_| failure.exit != Exit::NobodyReads) {
        say(&text);
    }
    failure.exit.code().into()
}

/// One message on stderr. When even that is gone there is nobody left to tell.
pub(crate) fn say(text: &str) {
    writeln!(io::stderr(), "haul: {text}").ok();
}

/// The same, for threads that must go on: what stderr has no room for is lost. It takes no lock,
/// which somebody who waits for room may hold.
pub(crate) fn say_if_room(text: &str) {
    let stderr = io::stderr();
    // What is to be written at once never waits where there is room for anything.
    for piece in format!("haul: {text}\n").as_bytes().chunks(PIPE_BUF) {
        let mut ready = [PollFd::new(&stderr, PollFlags::OUT)];
        let now = Timespec::default();
        let has_room = poll(&mut ready, Some(&now)).is_ok_and(|count| count > 0);
        if !has_room || rustix::io::write(&stderr, piece).is_err() {
            return;
        }
    }
}

/// `what`, then every error of the chain, each once: some errors repeat their source.
pub(crate) fn chain(what: &str, mut source: Option<&(dyn Error + 'static)>) -> String {
    let mut text = what.to_owned();
    while let Some(error) = source {
        let link = error.to_string();
        if !text.ends_with(&link) {
            text = format!("{text}: {link}");
        }
        source = error.source();
    }
    text
}

/// What to do about an error of the store.
fn advice(error: &(dyn Error + 'static)) -> Option<&'static str> {
    Some(match error.downcast_ref::<StoreError>()? {
        StoreError::NoSuchBucket { .. } => {
            "\"haul store ls\" tells the buckets, \"haul store mb\" makes one"
        }
        StoreError::BucketNotEmpty { .. } => "\"haul store rm --recursive\" empties it",
        StoreError::Full { .. } => {
            "delete objects (\"haul store rm\"), then \"haul store compact\", or enlarge the disk"
        }
        StoreError::Damaged { .. } => "\"haul store verify\" tells everything that is damaged",
        StoreError::Locked { .. } => "wait for it to end, or ask it: \"haul serve\" answers S3",
        StoreError::NotAStore { .. } => {
            "name a store with --data, or an empty directory to start a new one in"
        }
        StoreError::Log(_) => "what was acknowledged is safe; start again, and look at the disk",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_of_the_chain_is_told_once() {
        let kernel = io::Error::other("no space left");
        let disk = haul_disk::Error::new(haul_disk::Op::Write, "/d/v1", kernel);
        let failure = Failure::new("cannot store \"k\"").because(StoreError::Disk(disk));
        assert_eq!(
            failure.text().unwrap(),
            "cannot store \"k\": cannot write /d/v1: no space left"
        );
    }

    #[test]
    fn errors_of_the_store_come_with_advice() {
        let error = StoreError::NoSuchBucket { bucket: "b".into() };
        let text = Failure::new("cannot list").because(error).text().unwrap();
        assert!(text.starts_with("cannot list: there is no bucket \"b\"\n  "), "{text}");
        assert!(text.contains("haul store mb"), "{text}");
    }

    #[test]
    fn what_was_told_is_not_told_again() {
        assert_eq!(Failure::told().text(), None);
    }
}
