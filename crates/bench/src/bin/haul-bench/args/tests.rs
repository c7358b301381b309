//! Tests how options are parsed: the command lines of the documentation and of the help, messages
//! for wrong values.

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use haul_testing::docs::{command_lines, haul_commands, pages};

use super::Cli;

/// Panics unless all `haul bench` commands in `lines` are accepted; returns the number of commands.
fn check(from: &str, lines: impl IntoIterator<Item = String>) -> usize {
    let mut count = 0;
    for line in lines {
        let commands = haul_commands(&line).into_iter();
        for words in commands.filter(|words| words.get(1).is_some_and(|word| word == "bench")) {
            count += 1;
            if let Err(error) = Cli::try_parse_from(&words[1..]) {
                let is_help = [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion];
                assert!(is_help.contains(&error.kind()), "{from}: {line}\n{words:?}\n{error}");
            }
        }
    }
    count
}

#[test]
fn command_lines_of_the_pages_are_accepted() {
    let count = |(path, text): (std::path::PathBuf, String)| {
        check(&path.display().to_string(), command_lines(&text))
    };
    assert!(pages().into_iter().map(count).sum::<usize>() > 20);
}

#[test]
fn every_command_has_examples_and_they_are_accepted() {
    fn below(command: &clap::Command) -> usize {
        let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("Examples:"), "{} has no examples", command.get_name());
        let lines = help.lines().map(|line| line.trim_start().to_owned());
        let here = check(command.get_name(), lines);
        assert!(here > 0, "{} has no examples", command.get_name());
        here + command.get_subcommands().map(below).sum::<usize>()
    }
    assert!(below(&Cli::command()) > 30);
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn wrong_options_name_the_expected_values() {
    for (line, expected) in [
        ("app-cache --dir d --memory 1MiB", "64MiB"),
        ("random-read --dir d --size 5000B", "4KiB"),
        ("sequential-read --dir d --advice often", "sequential"),
        ("relay --dir d --only all", "messages"),
        ("serve --dir d --seconds 500ms", "whole seconds"),
        ("random-write --drive seagate", "none"),
        ("write-modes --dir d --modes sync", "recycled+fdatasync"),
        ("write-modes --dir d --virtual-disk zfs", "ext4-nojournal"),
        ("read-order --longest 3KiB", "power of two"),
        ("write-modes --dir d --protected-cache", "--virtual-disk"),
        ("duplicates --dir d --corpus huge", "spinning"),
    ] {
        let words = ["haul-bench"].into_iter().chain(line.split(' '));
        let message = Cli::try_parse_from(words).unwrap_err().to_string();
        assert!(message.contains(expected), "{line}: {message}");
    }
}
