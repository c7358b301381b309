//! Prints a configuration file. The module does no I/O.

use std::ffi::OsStr;
use std::fmt::Write;

use clap::builder::StyledStr;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::Value;

use super::words::{self, name};

/// The maximum width of a line of a description.
const WIDTH: usize = 100;

/// Returns a configuration file with the options in `matches`, and all other options as comments
/// with their defaults.
pub(super) fn text(server: &Command, matches: &ArgMatches) -> String {
    let mut text = format!(
        "# Options of \"haul {}\", for --config. Options of the command line have precedence.\n\
         # An option that is commented out has the value shown there; a value in capital letters\n\
         # stands for none.\n",
        server.get_name(),
    );
    let mut headings: Vec<Option<&str>> = Vec::new();
    let options = options(server, matches);
    for option in &options {
        if !headings.contains(&option.get_help_heading()) {
            headings.push(option.get_help_heading());
        }
    }
    for heading in headings {
        write!(text, "\n## {}\n", heading.unwrap_or("Arguments")).ok();
        for option in options.iter().filter(|option| option.get_help_heading() == heading) {
            write!(text, "\n{}{}\n", description(option), line(option, matches)).ok();
        }
    }
    text
}

/// Returns the options that are printed: those that the help has, and those that are given.
fn options<'a>(server: &'a Command, matches: &ArgMatches) -> Vec<&'a Arg> {
    let is_printed = |option: &&Arg| !option.is_hide_set() || is_given(option, matches);
    words::options(server).filter(is_printed).collect()
}

fn is_given(option: &Arg, matches: &ArgMatches) -> bool {
    matches.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine)
}

/// Returns the description of an option as comments.
fn description(option: &Arg) -> String {
    let help = option.get_long_help().or(option.get_help()).map(StyledStr::to_string);
    let help = help.unwrap_or_default();
    let paragraphs: Vec<_> = help.trim().split("\n\n").map(comment).collect();
    let mut text = paragraphs.join("#\n");
    if option.get_action().takes_values() {
        for value in option.get_possible_values() {
            let about = value.get_help().map(StyledStr::to_string).unwrap_or_default();
            text += &comment(&format!("- {}: {about}", value.get_name()));
        }
    }
    text
}

/// Returns a paragraph as lines of comments.
fn comment(paragraph: &str) -> String {
    let mut text = String::new();
    let mut line = "#".to_owned();
    for word in paragraph.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            line.push('\n');
            text += &line;
            "#".clone_into(&mut line);
        }
        line += &format!(" {word}");
    }
    text + &line + "\n"
}

/// Returns the line that sets an option, which is a comment unless the option is given.
fn line(option: &Arg, matches: &ArgMatches) -> String {
    let id = option.get_id().as_str();
    let name = name(option);
    let is_given = is_given(option, matches);
    let values: Vec<String> = if is_given {
        matches.get_raw(id).into_iter().flatten().map(toml).collect()
    } else {
        option.get_default_values().iter().map(|value| toml(value)).collect()
    };
    let mark = if is_given { "" } else { "#" };
    let placeholder = || {
        let names = option.get_value_names().unwrap_or_default();
        let name = names.first().map_or_else(|| id.to_uppercase(), ToString::to_string);
        toml(OsStr::new(&name))
    };
    let has_default = !option.get_default_values().is_empty();
    match (option.get_action(), values.as_slice()) {
        (ArgAction::SetTrue, _) => format!("{mark}{name} = {is_given}"),
        (ArgAction::Append, []) => format!("{mark}{name} = [{}]", placeholder()),
        // An option with a default has one value in most files.
        (ArgAction::Append, [only]) if has_default => format!("{mark}{name} = {only}"),
        (ArgAction::Append, values) => format!("{mark}{name} = [{}]", values.join(", ")),
        (_, []) => format!("{mark}{name} = {}", placeholder()),
        (_, values) => format!("{mark}{name} = {}", values.join(", ")),
    }
}

/// Returns a value in TOML: a number, or a string, whose escapes are those of JSON.
fn toml(value: &OsStr) -> String {
    let text = value.to_string_lossy().into_owned();
    let number = text.parse::<u32>();
    if number.is_ok_and(|number| number.to_string() == text) {
        return text;
    }
    Value::String(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_or_escaped_strings() {
        for (text, expected) in [
            ("4096", "4096"),
            ("064", "\"064\""),
            ("64MiB", "\"64MiB\""),
            ("a\"b\\\n", "\"a\\\"b\\\\\\n\""),
        ] {
            assert_eq!(toml(OsStr::new(text)), expected);
        }
    }

    #[test]
    fn long_descriptions_are_wrapped() {
        let text = comment(&"word ".repeat(50));
        assert!(text.lines().count() == 3 && text.lines().all(|line| line.len() <= WIDTH));
        assert!(text.lines().all(|line| line.starts_with("# word")), "{text}");
    }
}
