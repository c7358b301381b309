//! What a command takes over from the search that made the report.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::Parser;
use haul_duplicates::report::Header;

use super::place::below;
use super::search::{replication, roots};
use crate::args::{Cli, Command, SearchArgs};
use crate::report::{Exit, Failure, Result};
use haul_duplicates::Replication;

/// The arguments of the search.
pub(super) fn search(header: &Header) -> Result<SearchArgs> {
    let fail = || {
        let command = header.command.join(OsStr::new(" "));
        let what = format!("cannot understand the command of the report: {}", command.display());
        Failure::new(what).advise("search again with \"haul dups\"").exit(Exit::Usage)
    };
    let words = arguments(&header.command).ok_or_else(fail)?;
    match Cli::try_parse_from(words).map(|cli| cli.command) {
        Ok(Command::Dups(args)) if args.action.is_none() => Ok(args.search),
        _ => Err(fail()),
    }
}

/// The words of a search as `haul` takes them: fclones calls it `group`.
fn arguments(command: &[OsString]) -> Option<Vec<OsString>> {
    let at = command.iter().position(|word| word == "dups" || word == "group")?;
    let words = ["haul", "dups"].map(OsString::from).into_iter();
    Some(words.chain(command[at + 1..].iter().cloned()).collect())
}

/// How many replicas stay.
pub(super) fn keep_count(search: &SearchArgs) -> usize {
    match replication(search) {
        Replication::Over(over) => over,
        Replication::Under(_) => 1,
    }
}

/// The paths below which all files are one replica.
pub(super) fn isolated(search: &SearchArgs, header: &Header) -> Result<Vec<PathBuf>> {
    if !search.isolate {
        return Ok(Vec::new());
    }
    if search.stdin {
        let what = "the paths of the report came from stdin, so that it does not have them";
        return Err(Failure::new(what).advise("name them with --isolate").exit(Exit::Usage));
    }
    let base = search.base_dir.as_ref().map_or(header.base.clone(), |dir| below(&header.base, dir));
    roots(search, &base)
}

#[cfg(test)]
mod tests {
    use haul_duplicates::report::{Moment, Stats};

    use super::*;

    fn header(command: &[&str]) -> Header {
        Header {
            program: String::new(),
            begun: Moment(0),
            command: command.iter().map(OsString::from).collect(),
            base: "/base".into(),
            stats: Stats::default(),
        }
    }

    #[test]
    fn a_search_of_either_program_is_understood() {
        for command in [
            &["haul", "dups", "-n", "2", "-I", "a", "/b"][..],
            &["haul", "-v", "dups", "a", "/b", "--isolate", "--rf-over=2"],
            &["fclones", "-q", "group", "-I", "a", "/b", "-n", "2", "--hash-fn", "metro"],
        ] {
            let header = header(command);
            let search = search(&header).unwrap();
            assert_eq!(keep_count(&search), 2);
            let roots = isolated(&search, &header).unwrap();
            assert_eq!(roots, ["/base/a", "/b"].map(PathBuf::from), "{command:?}");
        }
    }

    #[test]
    fn what_is_no_search_is_refused() {
        for command in
            [&["jdupes", "."][..], &["haul", "dups", "remove"], &["haul", "dups", "-q"], &[]]
        {
            assert!(search(&header(command)).is_err(), "{command:?}");
        }
        let header = header(&["haul", "dups", "--stdin", "-I"]);
        assert!(isolated(&search(&header).unwrap(), &header).is_err());
    }
}
