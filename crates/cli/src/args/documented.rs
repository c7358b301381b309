//! Tests that every command line in the documentation and in the help can be parsed.

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use haul_testing::docs::{command_lines, haul_commands, pages};

use super::Cli;

/// Panics unless all command lines can be parsed; returns their number.
fn check(from: &str, lines: impl IntoIterator<Item = String>) -> usize {
    let mut count = 0;
    for line in lines {
        for words in haul_commands(&line) {
            count += 1;
            if let Err(error) = Cli::try_parse_from(&words) {
                let is_help = [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion];
                assert!(is_help.contains(&error.kind()), "{from}: {line}\n{words:?}\n{error}");
            }
        }
    }
    count
}

#[test]
fn command_lines_in_the_documentation_parse() {
    for (page, text) in pages() {
        let count = check(&page.display().to_string(), command_lines(&text));
        let least = match page.file_name().and_then(|name| name.to_str()) {
            Some("tour.md") => 20,
            Some("files.md") => 3,
            Some("relay.md") => 4,
            Some("relay-http.md" | "network-bench.md") => 2,
            _ => 0,
        };
        assert!(count >= least, "{}: {count} command lines", page.display());
    }
}

#[test]
fn examples_in_the_help_parse() {
    fn below(command: &clap::Command) -> usize {
        let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        let examples = help.split("Exit codes:").next().unwrap_or_default();
        // An explanation follows some examples after two spaces.
        let lines = examples.lines().map(|line| line.trim_start());
        let lines = lines.map(|line| line.split("  ").next().unwrap_or(line).to_owned());
        let here = check(command.get_name(), lines);
        assert!(here > 0 || command.has_subcommands(), "{} has none", command.get_name());
        here + command.get_subcommands().map(below).sum::<usize>()
    }
    assert!(below(&Cli::command()) > 80);
}
