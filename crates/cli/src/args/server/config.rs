//! Defines the arguments that read the options of a server from a file, or print such a file.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct ConfigArgs {
    /// Read options from FILE, in TOML, under their names without dashes: cache = "64MiB"
    ///
    /// An option without a value is set by NAME = true, a repeatable one by NAME = ["a", "b"], and
    /// DIR by dir = "...". The command line has precedence: an option given there replaces all its
    /// values in FILE. An unknown name is an error. FILE is read once, at the start.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print a file for --config with the options of this command line, and exit
    ///
    /// All other options are in it as comments, with their descriptions and defaults. Together with
    /// --config, the options of that file are printed, too.
    #[arg(long)]
    pub(crate) print_config: bool,
}
