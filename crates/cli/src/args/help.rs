//! Groups the commands by purpose in the output of `haul --help`.

use clap::Command;
use clap::builder::Styles;

const GROUPS: [(&str, &[&str]); 5] = [
    ("Object storage", &["serve", "store", "keys", "import-s3", "health", "events"]),
    ("Network services", &["files", "relay"]),
    ("Files", &["dups", "sum", "patch", "log", "wal"]),
    ("Disks and page cache", &["probe", "doctor", "tune", "cache", "bench"]),
    ("Setup", &["completions", "man"]),
];

const NAME_WIDTH: usize = 13;

/// Groups the commands in the help of `command`.
pub(super) fn grouped(command: Command) -> Command {
    let template = template(&command);
    command.help_template(template)
}

fn template(command: &Command) -> String {
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = "{before-help}{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        text += &format!("\n{header}{title}:{header:#}\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text += &format!("  {literal}{name:NAME_WIDTH$}{literal:#}{about}\n");
        }
    }
    text + &format!("\n{header}Options:{header:#}\n{{options}}{{after-help}}")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn help_has_no_markup() {
        fn check(command: &mut Command) {
            let help = command.render_long_help().to_string();
            assert!(!help.contains('`') && !help.contains("\\["), "{help}");
            command.get_subcommands_mut().for_each(check);
        }
        check(&mut Cli::command());
    }

    #[test]
    fn each_command_is_listed_once_and_fits_a_line() {
        let command = Cli::command();
        let mut listed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut defined: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        listed.sort_unstable();
        defined.sort_unstable();
        assert_eq!(listed, defined);
        for command in command.get_subcommands() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(about.len() + NAME_WIDTH + 2 <= 80, "{about}");
        }
    }
}
