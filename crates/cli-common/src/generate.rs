//! Generates manual pages and shell completions from the definition of a command line.

use std::path::Path;
use std::{fs, io};

use clap::Command;
use clap::builder::Resettable;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::output::Output;
use crate::report::{OrFail, Result};

/// Prints the shell completions for `shell`.
///
/// # Errors
/// Fails if stdout cannot be written.
pub fn completions(program: &mut Command, shell: Shell) -> Result {
    let mut text = Vec::new();
    let name = program.get_name().to_owned();
    clap_complete::generate(shell, program, name, &mut text);
    print(&text)
}

/// Writes the manual pages of the program and all its subcommands to `dir`; without `dir`, prints
/// the manual page of the program.
///
/// # Errors
/// Fails if the pages cannot be written.
pub fn man(program: Command, dir: Option<&Path>) -> Result {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    match dir {
        Some(dir) => write_pages(&program, dir)
            .or_not_start(|| format!("cannot write manual pages to {}", dir.display())),
        None => print(&page(&program).or_fail(|| "cannot create the manual page".to_owned())?.1),
    }
}

fn write_pages(command: &Command, dir: &Path) -> io::Result<()> {
    let (name, page) = page(command)?;
    fs::write(dir.join(name), page)?;
    command.get_subcommands().try_for_each(|command| write_pages(command, dir))
}

/// Returns the file name and the text of the manual page of a command.
fn page(command: &Command) -> io::Result<(String, Vec<u8>)> {
    let examples = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(command.clone().after_long_help(Resettable::Reset))
        .source(concat!("haul ", env!("CARGO_PKG_VERSION")));
    let mut page = Vec::new();
    man.render(&mut page)?;
    page.extend_from_slice(preformatted(&examples).as_bytes());
    Ok((man.get_filename(), page))
}

/// Formats the text as roff. Each line that ends with a colon and is not indented becomes the title
/// of a section. All other lines are shown unchanged, with their indentation.
fn preformatted(text: &str) -> String {
    let mut roff = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_suffix(':').filter(|_| !line.starts_with(' ')) {
            roff += &format!(".SH {}\n.nf\n", title.to_uppercase());
            continue;
        }
        // An empty line before a title is dropped: roff leaves space before each section itself.
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
    fn pages_name_their_program() {
        let store = Command::new("store").subcommand(Command::new("import"));
        let mut haul = Command::new("haul").subcommand(store);
        haul.build();
        let import = haul.find_subcommand("store").unwrap().find_subcommand("import").unwrap();
        let (name, page) = page(import).unwrap();
        assert_eq!(name, "haul-store-import.1");
        let source = concat!("\"haul ", env!("CARGO_PKG_VERSION"), "\"");
        assert!(String::from_utf8(page).unwrap().contains(source));
    }

    #[test]
    fn each_subcommand_has_a_manual_page() {
        let program = || Command::new("haul").subcommand(Command::new("store"));
        let dir = haul_testing::disk_dir();
        man(program(), Some(dir.path())).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["haul-store.1", "haul.1"]);
        let missing = dir.path().join("missing");
        let failure = man(program(), Some(&missing)).unwrap_err();
        assert!(failure.text().is_some_and(|text| text.contains(missing.to_str().unwrap())));
    }

    #[test]
    fn examples_stay_preformatted_in_the_manual() {
        let text = "Examples:\n  haul a-b 'c'\n\n  d\n\nExit codes:\n  0  well";
        let roff = ".SH EXAMPLES\n.nf\n\\&  haul a\\-b \\(aqc\\(aq\n\\&\n\\&  d\n\
                    .SH EXIT CODES\n.nf\n\\&  0  well\n.fi\n";
        assert_eq!(preformatted(text), roff);
    }
}
