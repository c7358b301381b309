//! Remote object stores, with the options of the environment and of a file, and the copy of a store
//! that a server keeps there.

pub(crate) mod copies;
pub(crate) mod read_only;
pub(crate) mod standby;

use std::sync::Arc;
use std::time::Duration;

use haul_replicate::{Options, Progress, Remote};

use crate::args::{Acknowledge, RemoteArgs, ReplicationArgs};
use crate::report::{Exit, Failure, OrFail, Result};
use crate::secrets::file;

/// The prefixes of the environment variables that are options of a remote store.
const VARIABLES: &[&str] = &["AWS_", "AZURE_", "GOOGLE_"];

/// Opens the remote store at a URL. Makes no request.
pub(crate) fn open(url: &str, args: &RemoteArgs) -> Result<Remote> {
    let is_option = |name: &str| VARIABLES.iter().any(|prefix| name.starts_with(prefix));
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let environment: Vec<_> = variables.filter(|(name, _)| is_option(name)).collect();
    let mut options = Vec::new();
    if let Some(path) = &args.remote_options {
        let cannot =
            || format!("cannot read the options of the remote store in {}", path.display());
        let text = file::read(path, &cannot)?;
        let parsed = parse(&text);
        let malformed = |why| Failure::new(format!("{}: {why}", cannot())).exit(Exit::NotStarted);
        options = parsed.map_err(malformed)?;
    }
    Remote::open(url, &environment, &options)
        .or_fail(|| "cannot use the remote store".to_owned())
        .map_err(|failure| failure.exit(Exit::Usage))
}

/// The maximum number of states of a copy that are kept.
const STATES_MAX: u32 = 10_000;

/// Checks the options that limit each other.
fn check(args: &ReplicationArgs) -> Result {
    if args.keep > args.keep_every.saturating_mul(STATES_MAX) {
        let least = args.keep.div_duration_f64(Duration::from_secs(STATES_MAX.into())).ceil();
        let failure = Failure::new(format!(
            "--keep must be at most 10,000 times --keep-every, so --keep-every at least {least}s"
        ));
        return Err(failure.exit(Exit::Usage));
    }
    Ok(())
}

/// The copy that a server is to keep, before its store is open.
pub(crate) struct Copy {
    pub(crate) remote: Remote,
    pub(crate) options: Options,
    /// The disk space for the local part of the store.
    local_space: Option<u64>,
    /// The longest time for which a write waits for the copy; `None` if it does not.
    ack_time: Option<Duration>,
    /// The end of the copy, for which a store of its own waits.
    pub(crate) progress: Arc<Progress>,
    /// The first option that only a store in one directory can have.
    single_option: Option<&'static str>,
}

impl Copy {
    /// Returns the copy of the arguments, if they name one. Makes no request.
    pub(crate) fn of(args: &ReplicationArgs) -> Result<Option<Self>> {
        let Some(url) = &args.remote else { return Ok(None) };
        let remote = open(url, &args.options)?;
        let options = Options {
            interval: args.ship_every,
            lease: args.lease,
            keep: args.keep,
            keep_every: args.keep_every,
            delete_after: args.delete_after,
            ..Options::default()
        };
        check(args)?;
        let ack_time = (args.ack == Acknowledge::Remote).then_some(args.ack_time);
        Ok(Some(Self {
            remote,
            options,
            local_space: args.local_space,
            ack_time,
            progress: new_progress(ack_time),
            single_option: args.single_option(),
        }))
    }
}

fn new_progress(ack_time: Option<Duration>) -> Arc<Progress> {
    Arc::new(ack_time.map_or_else(Progress::without_waiting, Progress::new))
}

/// Parses lines of the form `name = value`.
fn parse(text: &str) -> std::result::Result<Vec<(String, String)>, String> {
    let lines = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
    let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(line, number)| match line.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
            None => Err(format!("line {number} has no \"=\"")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn kept_states_have_the_limits_of_the_library() {
        for (keep, keep_every, is_valid) in
            [("0s", "0s", true), ("10000s", "1s", true), ("10001s", "1s", false)]
        {
            let every = ["--keep-every", keep_every];
            let words = ["haul", "serve", "--remote", "s3://b/p", "--keep", keep];
            let cli = Cli::try_parse_from(words.iter().chain(&every)).unwrap();
            let Command::Serve(args) = cli.command else { panic!("not serve") };
            let args = &args.replication;
            let (keep, keep_every) = (args.keep, args.keep_every);
            let library = Options { keep, keep_every, ..Options::default() }.check();
            assert_eq!([check(args).is_ok(), library.is_ok()], [is_valid; 2], "{keep:?}");
        }
    }

    #[test]
    fn options_are_lines_with_an_equals_sign() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let text = "# keys\naws_access_key_id = a=b \n\n AWS_REGION=x\n";
        assert_eq!(
            parse(text),
            Ok(vec![pair("aws_access_key_id", "a=b"), pair("AWS_REGION", "x")])
        );
        assert_eq!(parse("a = 1\nb"), Err("line 2 has no \"=\"".to_owned()));
    }
}
