//! That each command line the pages and the help show is one of the table.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use super::Cli;

/// The words of each simple command of a line of a shell, without redirections and comments.
fn commands(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let (mut quote, mut to_file) = (None, false);
    let mut chars = line.chars().peekable();
    loop {
        let next = chars.next();
        let c = next.unwrap_or('\n');
        if quote.is_some() && next.is_some() {
            match c {
                c if quote == Some(c) => quote = None,
                c => word.get_or_insert_default().push(c),
            }
            continue;
        }
        match c {
            '\'' | '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            c if !c.is_whitespace() && !"|&;()<>".contains(c) => {
                if c == '#' && word.is_none() {
                    chars.by_ref().for_each(drop);
                } else {
                    word.get_or_insert_default().push(c);
                }
            }
            c => {
                let is_number = |word: &String| word.bytes().all(|byte| byte.is_ascii_digit());
                let descriptor = "<>".contains(c) && word.as_ref().is_some_and(is_number);
                let ended = word.take();
                let is_file = std::mem::take(&mut to_file) && ended.is_some();
                words.extend(ended.filter(|_| !descriptor && !is_file));
                match c {
                    '<' | '>' => {
                        chars.next_if(|c| "&>".contains(*c));
                        chars.next_if_eq(&' ');
                        to_file = true;
                    }
                    '|' | '&' | ';' | '(' | ')' | '\n' => all.push(std::mem::take(&mut words)),
                    _ => {}
                }
            }
        }
        if next.is_none() {
            all.retain(|words| !words.is_empty());
            return all;
        }
    }
}

/// What is given to `haul` by each command of a line, with the name before it.
fn lines_of_haul(line: &str) -> Vec<Vec<String>> {
    let ours = |words: Vec<String>| {
        let before = |word: &&String| {
            ["sudo", "until", "while", "if"].contains(&word.as_str()) || word.contains('=')
        };
        let skip = words.iter().take_while(before).count();
        let is_ours = |word: &String| word == "haul" || word.ends_with("/haul");
        words.get(skip).is_some_and(is_ours).then(|| words[skip..].to_vec())
    };
    commands(line).into_iter().filter_map(ours).collect()
}

/// The command lines in the blocks of a page; where some have a prompt, those.
fn shown(page: &str) -> Vec<String> {
    let blocks = page.split("```").skip(1).step_by(2);
    blocks
        .flat_map(|block| {
            let joined = block.replace("\\\n", " ");
            let has_prompt = joined.lines().any(|line| line.starts_with("$ "));
            let of = |line: &str| match line.strip_prefix("$ ") {
                None if has_prompt => None,
                line_or_not => Some(line_or_not.unwrap_or(line).to_owned()),
            };
            joined.lines().filter_map(of).collect::<Vec<_>>()
        })
        .collect()
}

/// Fails unless the lines are in the table; how many there were.
fn check(from: &str, lines: impl IntoIterator<Item = String>) -> usize {
    let mut count = 0;
    for line in lines {
        for words in lines_of_haul(&line) {
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
fn every_command_line_of_the_pages_is_in_the_table() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|end| end == "md");
    let mut pages: Vec<_> = docs.filter(is_page).collect();
    pages.push(root.join("README.md"));
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let count = check(&page.display().to_string(), shown(&text));
        let least = match page.file_name().and_then(|name| name.to_str()) {
            Some("README.md") => 20,
            Some("files.md") => 3,
            Some("relay.md") => 4,
            Some("relay-http.md" | "network-bench.md") => 2,
            _ => 0,
        };
        assert!(count >= least, "{}: {count} command lines", page.display());
    }
}

#[test]
fn every_example_of_the_help_is_in_the_table() {
    fn below(command: &clap::Command) -> usize {
        let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        let examples = help.split("Exit codes:").next().unwrap_or_default();
        // What it is for stands behind some, after two blanks.
        let lines = examples.lines().map(|line| line.trim_start());
        let lines = lines.map(|line| line.split("  ").next().unwrap_or(line).to_owned());
        let here = check(command.get_name(), lines);
        assert!(here > 0 || command.has_subcommands(), "{} has none", command.get_name());
        here + command.get_subcommands().map(below).sum::<usize>()
    }
    assert!(below(&Cli::command()) > 80);
}

#[test]
fn lines_are_taken_apart_as_a_shell_does() {
    let line =
        "a 2>&1 | sudo X=1 ./haul log d 'x | y' > f -0 && (echo \"b;c\"; haul x) & # haul no";
    let found = lines_of_haul(line);
    assert_eq!(found, [vec!["./haul", "log", "d", "x | y", "-0"], vec!["haul", "x"]]);
    let page = "haul no\n```\nhaul a \\\n  --b\n```\nno\n```\n$ haul c\nhaul no\n```\n";
    let found: Vec<_> = shown(page).iter().flat_map(|line| lines_of_haul(line)).collect();
    assert_eq!(found, [vec!["haul", "a", "--b"], vec!["haul", "c"]]);
}
