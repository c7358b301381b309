//! `haul completions` and `haul man`: made from the table of arguments.

use std::path::Path;
use std::{fs, io};

use clap::builder::Resettable;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Cli;
use crate::output::Output;
use crate::report::{OrFail, Result};

/// Prints the completions for `shell`.
pub(crate) fn completions(shell: Shell) -> Result {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "haul", &mut text);
    print(&text)
}

/// Writes the pages of all commands into `dir`, or prints the first one.
pub(crate) fn man(dir: Option<&Path>) -> Result {
    let mut haul = Cli::command().disable_help_subcommand(true);
    haul.build();
    match dir {
        Some(dir) => write_pages(&haul, dir)
            .or_fail(|| format!("cannot write the manual pages into {}", dir.display())),
        None => print(&page(&haul).or_fail(|| "cannot make the manual page".to_owned())?.1),
    }
}

fn write_pages(command: &Command, dir: &Path) -> io::Result<()> {
    let (name, page) = page(command)?;
    fs::write(dir.join(name), page)?;
    command.get_subcommands().try_for_each(|command| write_pages(command, dir))
}

/// The name and the text of a command's page.
fn page(command: &Command) -> io::Result<(String, Vec<u8>)> {
    let examples = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(command.clone().after_long_help(Resettable::Reset))
        .source(concat!("haul ", env!("CARGO_PKG_VERSION")));
    let mut page = Vec::new();
    man.render(&mut page)?;
    page.extend_from_slice(preformatted(&examples).as_bytes());
    Ok((man.get_filename(), page))
}

/// Paragraphs that begin with a title as sections whose lines stay as they are.
fn preformatted(text: &str) -> String {
    let mut roff = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_suffix(':').filter(|_| !line.starts_with(' ')) {
            roff += &format!(".SH {}\n.nf\n", title.to_uppercase());
            continue;
        }
        // Of a blank line before the next title nothing is needed.
        if !line.is_empty() || lines.peek().is_some_and(|next| next.starts_with(' ')) {
            let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
            roff += &format!("\\&{line}\n");
        }
    }
    roff + ".fi\n"
}

fn print(text: &[u8]) -> Result {
    let mut output = Output::new();
    output.bytes(text)?;
    output.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_says_what_program_it_is_of() {
        let mut haul = Cli::command();
        haul.build();
        let import = haul.find_subcommand("store").unwrap().find_subcommand("import").unwrap();
        let (name, page) = page(import).unwrap();
        assert_eq!(name, "haul-store-import.1");
        let source = concat!("\"haul ", env!("CARGO_PKG_VERSION"), "\"");
        assert!(String::from_utf8(page).unwrap().contains(source));
    }

    #[test]
    fn examples_keep_their_lines_in_the_manual() {
        let text = "Examples:\n  haul a-b 'c'\n\n  d\n\nExit codes:\n  0  well";
        let roff = ".SH EXAMPLES\n.nf\n\\&  haul a\\-b \\(aqc\\(aq\n\\&\n\\&  d\n\
                    .SH EXIT CODES\n.nf\n\\&  0  well\n.fi\n";
        assert_eq!(preformatted(text), roff);
    }
}
