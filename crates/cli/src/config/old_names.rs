//! The names that options had before all servers used the same ones. They are accepted, with a note.

use std::ffi::OsString;

/// An option that has another name now.
struct Renamed {
    server: &'static str,
    old: &'static str,
    new: &'static str,
}

const fn renamed(server: &'static str, old: &'static str, new: &'static str) -> Renamed {
    Renamed { server, old, new }
}

const RENAMED: [Renamed; 12] = [
    renamed("serve", "refresh", "poll-every"),
    renamed("files", "public", "plain-http"),
    renamed("files", "peer-connections", "connections-per-client"),
    renamed("files", "peer-rate", "rate-per-client"),
    renamed("files", "peer-burst", "burst-per-client"),
    renamed("relay", "max-connections", "connections"),
    renamed("relay", "peer-connections", "connections-per-client"),
    renamed("relay", "peer-rate", "rate-per-client"),
    renamed("relay", "peer-burst", "burst-per-client"),
    renamed("relay", "keep-alive-time", "idle-time"),
    renamed("relay", "proxy-time", "head-time"),
    renamed("relay", "tls-time", "head-time"),
];

/// Returns the name that the option `old` of a server has now, if it is another one.
pub(super) fn new_name(server: &str, old: &str) -> Option<&'static str> {
    RENAMED.iter().find(|option| option.server == server && option.old == old).map(|o| o.new)
}

/// Returns what the user should know of an old name.
pub(super) fn note(old: &str, new: &str) -> String {
    format!("note: the option {old} is now {new}")
}

/// Replaces the old names of options in a command line. Returns a note for each.
pub(super) fn replace(arguments: &mut [OsString]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut words = arguments.iter_mut().skip(1);
    let is_server =
        |word: &str| RENAMED.iter().map(|option| option.server).find(|server| *server == word);
    // Before the command, there are only options without values.
    let Some(server) = words.find(|word| !is_option(word)) else { return notes };
    let Some(server) = server.to_str().and_then(is_server) else { return notes };
    for word in words.take_while(|word| *word != "--") {
        let Some(text) = word.to_str().and_then(|text| text.strip_prefix("--")) else { continue };
        let (old, value) = text.split_at(text.find('=').unwrap_or(text.len()));
        if let Some(new) = new_name(server, old) {
            notes.push(note(&format!("--{old}"), &format!("--{new}")));
            *word = format!("--{new}{value}").into();
        }
    }
    notes
}

fn is_option(word: &OsString) -> bool {
    word.as_encoded_bytes().starts_with(b"-")
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;
    use crate::args::command;

    fn replaced(line: &str) -> (String, Vec<String>) {
        let mut words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let notes = replace(&mut words);
        (words.join(" ".as_ref()).into_string().unwrap(), notes)
    }

    #[test]
    fn old_names_are_replaced_with_a_note() {
        let (line, notes) = replaced("haul -v relay --peer-rate=5/s --tls-time 2s --to a:1");
        assert_eq!(line, "haul -v relay --rate-per-client=5/s --head-time 2s --to a:1");
        let expected = [
            "note: the option --peer-rate is now --rate-per-client",
            "note: the option --tls-time is now --head-time",
        ];
        assert_eq!(notes, expected);
    }

    #[test]
    fn other_commands_values_and_words_after_the_options_stay() {
        for line in [
            "haul",
            "haul --version",
            "haul sum --public",
            "haul serve --peer-rate=5/s",
            "haul files -- --public",
            "haul relay --via=--tls-time",
        ] {
            assert_eq!(replaced(line), (line.to_owned(), Vec::new()));
        }
    }

    #[test]
    fn new_names_exist_and_old_ones_do_not() {
        let command = command();
        let has = |server: &str, name: &str| {
            let server: &Command = command.find_subcommand(server).unwrap();
            server.get_arguments().any(|option| option.get_long() == Some(name))
        };
        for Renamed { server, old, new } in RENAMED {
            assert!(has(server, new) && !has(server, old), "{server} --{old}");
        }
    }
}
