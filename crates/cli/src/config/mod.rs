//! Reads the options of a server from a file, and prints such a file.
//!
//! The entries of the file become words of the command line, before the words that the user gave.
//! They are therefore parsed and checked like options of the command line.

mod entries;
mod old_names;
mod print;
mod words;

use std::ffi::OsString;
use std::fs;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches};

use crate::args::ConfigArgs;
use crate::report::{Exit, Failure, OrFail, Result, print_message};
use entries::Problem;

/// The commands that read a file.
const SERVERS: [&str; 3] = ["serve", "files", "relay"];

/// The option that names the file.
const OPTION: &str = "--config";

/// A parsed command line.
pub(crate) enum Parsed {
    /// The options of a command, including those of the file of `--config`.
    Matches(ArgMatches),
    /// The text that `--print-config` prints.
    File(String),
    /// The help or the version, or the reason why the command line is invalid.
    Message(clap::Error),
}

/// Parses a command line, and the file of its option `--config`.
pub(crate) fn parse(command: &mut Command, mut arguments: Vec<OsString>) -> Result<Parsed> {
    old_names::replace(&mut arguments).iter().for_each(|note| print_message(note));
    let arguments = with_file(command, arguments)?;
    let matches = match command.try_get_matches_from_mut(arguments) {
        Ok(matches) => matches,
        Err(message) => return Ok(Parsed::Message(message)),
    };
    let text = server(command, &matches)?
        .filter(|(_, _, args)| args.print_config)
        .map(|(server, given, _)| print::text(server, given));
    Ok(text.map_or(Parsed::Matches(matches), Parsed::File))
}

/// Returns the definition, the options and the configuration of the server in `matches`, if any.
fn server<'a>(
    command: &'a Command,
    matches: &'a ArgMatches,
) -> Result<Option<(&'a Command, &'a ArgMatches, ConfigArgs)>> {
    let Some((name, given)) = matches.subcommand().filter(|(name, _)| SERVERS.contains(name))
    else {
        return Ok(None);
    };
    let args = ConfigArgs::from_arg_matches(given)
        .or_fail(|| "cannot read the command line".to_owned())?;
    Ok(command.find_subcommand(name).map(|server| (server, given, args)))
}

/// Inserts the options of the file of `--config`, if any, into the command line.
fn with_file(command: &Command, mut arguments: Vec<OsString>) -> Result<Vec<OsString>> {
    if !arguments.iter().any(|word| word.as_encoded_bytes().starts_with(OPTION.as_bytes())) {
        return Ok(arguments);
    }
    // Errors are ignored here: they are reported when the completed command line is parsed.
    let tolerant = command.clone().ignore_errors(true);
    let Ok(partial) = tolerant.try_get_matches_from(&arguments) else { return Ok(arguments) };
    let Some((server, given, ConfigArgs { config: Some(path), .. })) = server(command, &partial)?
    else {
        return Ok(arguments);
    };
    let cannot = || format!("cannot use the configuration {}", path.display());
    let exit = |exit: Exit| move |failure: Failure| failure.exit(exit);
    let text = fs::read_to_string(&path).or_fail(cannot).map_err(exit(Exit::NotStarted))?;
    let words = added(server, given, &text).or_fail(cannot).map_err(exit(Exit::Usage))?;
    // The word after which the options of the command follow. Options before it take no values.
    let at = arguments.iter().skip(1).position(|word| word == server.get_name());
    let at = at.map_or(arguments.len(), |at| at + 2);
    arguments.splice(at..at, words.into_iter().map(OsString::from));
    Ok(arguments)
}

/// Returns the words of the options in `text` that the command line `given` does not contain.
fn added(
    server: &Command,
    given: &ArgMatches,
    text: &str,
) -> std::result::Result<Vec<String>, Problem> {
    let mut all = Vec::new();
    for mut entry in entries::parse(text)? {
        if let Some(new) = old_names::new_name(server.get_name(), &entry.name) {
            print_message(&old_names::note(&entry.name, new));
            new.clone_into(&mut entry.name);
        }
        let option = words::option(server, &entry)?;
        let words = words::words(server, option, &entry)?;
        let source = given.value_source(option.get_id().as_str());
        if source != Some(ValueSource::CommandLine) {
            all.extend(words);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::{Cli, command};

    fn parsed(words: &[&str]) -> Parsed {
        let arguments = words.iter().map(OsString::from).collect();
        parse(&mut command(), arguments).unwrap_or_else(|failure| panic!("{:?}", failure.text()))
    }

    /// Returns all options of a command line, as text.
    fn options(words: &[&str]) -> String {
        match parsed(words) {
            Parsed::Matches(matches) => {
                let cli = Cli::from_arg_matches(&matches).unwrap();
                let text = format!("{cli:?}");
                let (before, rest) = text.split_once("config: ConfigArgs {").unwrap();
                let (_, after) = rest.split_once('}').unwrap();
                format!("{before}{after}")
            }
            Parsed::File(text) => panic!("{text}"),
            Parsed::Message(message) => panic!("{message}"),
        }
    }

    fn printed(words: &[&str]) -> String {
        match parsed(&[words, &["--print-config"]].concat()) {
            Parsed::File(text) => text,
            Parsed::Matches(_) => panic!("nothing is printed"),
            Parsed::Message(message) => panic!("{message}"),
        }
    }

    fn file(text: &str) -> tempfile::TempPath {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        file.into_temp_path()
    }

    fn refused(server: &str, text: &str) -> String {
        let path = file(text);
        let arguments = ["haul", server, "--config", path.to_str().unwrap()];
        let failed = with_file(&command(), arguments.iter().map(OsString::from).collect());
        failed.unwrap_err().text().unwrap()
    }

    const COMMAND_LINES: [&[&str]; 4] = [
        &["haul", "serve"],
        &[
            "haul",
            "serve",
            "--data=/d",
            "--cache=1MiB",
            "--tls-cert=a",
            "--tls-cert=b \"c\"",
            "--tls-key=d",
            "--tls-key=e",
            "--remote=s3://b/p",
            "--ack=remote",
            "--volume=64MiB",
            "--connections=7",
            "--log-format=json",
            "--standby",
        ],
        &["haul", "files", "/srv/www", "--plain-http", "--host=a", "--host=b", "--cold=splice"],
        &[
            "haul",
            "relay",
            "--listen=127.0.0.1:1",
            "--to=a:80",
            "--to=unix:/b",
            "--http",
            "--proxy-in",
            "--proxy-from=10.0.0.0/8,192.0.2.7",
            "--idle-time=never",
            "--move=copy",
        ],
    ];

    #[test]
    fn printed_file_has_the_options_of_the_command_line() {
        for words in COMMAND_LINES {
            let path = file(&printed(words));
            let config = ["haul", words[1], "--config", path.to_str().unwrap()];
            assert_eq!(options(&config), options(words), "{words:?}");
        }
    }

    #[test]
    fn printed_file_of_an_effective_configuration_is_the_same() {
        for words in COMMAND_LINES {
            let text = printed(words);
            let path = file(&text);
            let config = ["haul", words[1], "--config", path.to_str().unwrap()];
            assert_eq!(printed(&config), text);
        }
    }

    #[test]
    fn printed_file_describes_every_option() {
        let cli = Cli::command();
        for server in SERVERS {
            let text = printed(&["haul", server]);
            let definition = cli.find_subcommand(server).unwrap();
            for option in definition.get_arguments() {
                let name = words::name(option);
                let is_listed = text.contains(&format!("\n#{name} = "));
                let is_excluded =
                    ["config", "print-config"].contains(&name) || option.is_hide_set();
                assert_eq!(is_listed, !is_excluded, "{server}: {name}");
            }
            assert!(text.lines().all(|line| line.len() <= 100), "{text}");
            // Each default is a valid value under its name.
            for line in text.lines().filter(|line| has_default(line)) {
                let entry = entries::parse(&line[1..]).unwrap().remove(0);
                let option = words::option(definition, &entry).unwrap();
                words::words(definition, option, &entry)
                    .unwrap_or_else(|problem| panic!("{line}: {problem}"));
            }
        }
    }

    /// `true` for a line with the default of an option, which has no value in capital letters.
    fn has_default(line: &str) -> bool {
        let value = line.strip_prefix('#').and_then(|line| line.split_once(" = "));
        value.is_some_and(|(name, value)| {
            let is_name = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
            let text = value.trim_matches(['"', '[', ']']);
            is_name && !text.bytes().all(|byte| byte.is_ascii_uppercase())
        })
    }

    #[test]
    fn command_line_has_precedence() {
        let path = file(
            "cache = \"1MiB\"\nconnections = 9\ntls-cert = [\"a\", \"b\"]\n\
                         tls-key = [\"c\", \"d\"]\n",
        );
        let config = ["haul", "-v", "serve", "--config", path.to_str().unwrap()];
        let given = ["--cache=2MiB", "--tls-cert=e", "--tls-key=f"];
        let expected = [
            "haul",
            "-v",
            "serve",
            "--connections=9",
            "--cache=2MiB",
            "--tls-cert=e",
            "--tls-key=f",
        ];
        assert_eq!(options(&[&config[..], &given].concat()), options(&expected));
    }

    #[test]
    fn required_arguments_and_flags_may_be_in_the_file() {
        let path = file("dir = \"/srv\"\nlisting = true\ndotfiles = false\n");
        let config = ["haul", "files", "--config", path.to_str().unwrap()];
        assert_eq!(options(&config), options(&["haul", "files", "/srv", "--listing"]));
        let other = [&config[..], &["/other"]].concat();
        assert_eq!(options(&other), options(&["haul", "files", "/other", "--listing"]));
    }

    #[test]
    fn errors_name_the_line_and_the_option() {
        for (server, text, words) in [
            (
                "serve",
                "\ncach = \"1MiB\"",
                ["line 2", "no option \"cach\"; did you mean \"cache\"?"],
            ),
            ("serve", "config = \"x\"", ["line 1", "no option \"config\""]),
            ("serve", "verbose = 1", ["line 1", "no option \"verbose\""]),
            ("serve", "tls_cert = \"x\"", ["line 1", "did you mean \"tls-cert\"?"]),
            ("serve", "cache = \"1 parsec\"", ["line 1", "'1 parsec' for '--cache <SIZE>'"]),
            ("serve", "cache = true", ["line 1", "cache: expected a string or a number"]),
            ("serve", "cache = [1, 2]", ["line 1", "expected one value"]),
            ("files", "a = 1\nlisting = 1", ["line 1", "\"a\""]),
            ("files", "listing = 1", ["line 1", "listing: expected true or false"]),
            ("relay", "balance = \"odd\"", ["line 1", "least-connections"]),
        ] {
            let message = refused(server, text);
            assert!(words.iter().all(|words| message.contains(words)), "{text}: {message}");
        }
        let missing = ["haul", "serve", "--config", "/nowhere/x"].map(OsString::from).to_vec();
        let failure = with_file(&command(), missing).unwrap_err();
        assert!(failure.text().unwrap().contains("/nowhere/x"));
    }
}
