//! Converts the entries of a configuration file to words of a command line.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, Error};

use super::entries::{Entry, Problem, Value};

/// The options of a server that a file cannot contain.
const EXCLUDED: [&str; 5] = ["config", "help", "print_config", "verbose", "version"];

/// Returns the options that a file may contain.
pub(super) fn options(server: &Command) -> impl Iterator<Item = &Arg> {
    server.get_arguments().filter(|option| !EXCLUDED.contains(&option.get_id().as_str()))
}

/// Returns the name of an option in a file: `dir` for the argument `DIR`.
pub(super) fn name(option: &Arg) -> &str {
    option.get_long().unwrap_or(option.get_id().as_str())
}

/// Returns the option of an entry.
pub(super) fn option<'a>(server: &'a Command, entry: &Entry) -> Result<&'a Arg, Problem> {
    let found = options(server).find(|option| name(option) == entry.name);
    found.ok_or_else(|| {
        let error = parse(server, &[format!("--{}", entry.name)]).err();
        let similar = match error.as_ref().and_then(|error| error.get(ContextKind::SuggestedArg)) {
            Some(ContextValue::String(flag)) => {
                format!("; did you mean \"{}\"?", flag.trim_start_matches('-'))
            }
            _ => String::new(),
        };
        let reason = format!("there is no option \"{}\"{similar}", entry.name);
        Problem { line: entry.line, reason }
    })
}

/// Returns the words that set the option to the value of the entry, after checking the value.
pub(super) fn words(server: &Command, option: &Arg, entry: &Entry) -> Result<Vec<String>, Problem> {
    let problem = |reason| Problem { line: entry.line, reason };
    let expected = |what: &str| problem(format!("{}: expected {what}", entry.name));
    let word = |value: &String| match option.get_long() {
        Some(long) => format!("--{long}={value}"),
        None => value.clone(),
    };
    let words = match (option.get_action(), &entry.value) {
        (ArgAction::SetTrue, Value::Flag(true)) => vec![format!("--{}", entry.name)],
        (ArgAction::SetTrue, Value::Flag(false)) => Vec::new(),
        (ArgAction::SetTrue, _) => return Err(expected("true or false")),
        (_, Value::Flag(_)) => return Err(expected("a string or a number")),
        (_, Value::One(value)) => vec![word(value)],
        (ArgAction::Append, Value::Many(values)) => values.iter().map(word).collect(),
        (_, Value::Many(_)) => return Err(expected("one value, not an array")),
    };
    match parse(server, &words) {
        Err(error) if is_about_a_value(error.kind()) => Err(problem(reason(&error))),
        _ => Ok(words),
    }
}

/// Parses words as the arguments of a server.
fn parse(server: &Command, words: &[String]) -> Result<(), Error> {
    let all = [server.get_name()].into_iter().chain(words.iter().map(String::as_str));
    server.clone().try_get_matches_from(all).map(drop)
}

/// `true` for errors of a value. Other errors, such as that of an option that requires another one,
/// are reported for the whole command line.
fn is_about_a_value(kind: ErrorKind) -> bool {
    use ErrorKind::{InvalidUtf8, InvalidValue, NoEquals, TooFewValues, TooManyValues};
    use ErrorKind::{ValueValidation, WrongNumberOfValues};
    matches!(
        kind,
        InvalidUtf8
            | InvalidValue
            | NoEquals
            | TooFewValues
            | TooManyValues
            | ValueValidation
            | WrongNumberOfValues
    )
}

/// Returns the first paragraph of an error message, without its prefix.
fn reason(error: &Error) -> String {
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    first.trim_start_matches("error: ").trim().to_owned()
}
