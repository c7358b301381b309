//! The part of the table below `haul bench duplicates`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use haul_bench::duplicates::{Corpus, Sizes};

use super::bench::ReportArgs;
use crate::units::parse_bytes;

#[derive(Debug, Args)]
pub(crate) struct BenchDuplicatesArgs {
    /// The directory to make the files in; some GiB must be free there
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// What to search: small, middle, somewhere, big, reflinks, spinning, spinning-fresh,
    /// spinning-medium, paths
    ///
    /// small: many files of up to 16 KiB. middle, somewhere: big files of one length which differ
    /// in a sixteenth in the middle, or in one page. big: big files, each twice. reflinks: a big
    /// file and its copies on btrfs. spinning: small files on a simulated spinning disk, in a tree
    /// that was in use for long; spinning-fresh: in one that was just written; spinning-medium: in
    /// an old one again, but of 64 KiB to 1 MiB. paths: a million short files, for the memory
    /// needed. These last take long or need root.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "small,middle,somewhere,big")]
    pub(crate) corpus: Vec<Corpus>,
    /// How many small files there are
    #[arg(long, value_name = "N", default_value_t = Sizes::default().small_files)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(2..=10_000_000))]
    pub(crate) files: usize,
    /// How many there are on the spinning disk; of medium ones a tenth
    #[arg(long, value_name = "N", default_value_t = Sizes::default().spinning_files)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(2..=100_000))]
    pub(crate) spinning_files: usize,
    /// How many files "paths" has
    #[arg(long, value_name = "N", default_value_t = Sizes::default().paths)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(2..=10_000_000))]
    pub(crate) paths: usize,
    /// How much the big files of a corpus are together
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_bytes)]
    pub(crate) big: u64,
    /// How often each tool is measured, in turn with the others
    #[arg(long, value_name = "N", default_value = "5")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) rounds: usize,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::bench::{BenchArgs, BenchCommand};
    use super::*;
    use crate::args::{Cli, Command};

    fn parsed(arguments: &[&str]) -> Result<BenchDuplicatesArgs, String> {
        let words = ["haul", "bench", "duplicates", "--dir", "d"];
        let cli = Cli::try_parse_from(words.iter().chain(arguments)).map_err(|e| e.to_string())?;
        let Command::Bench(BenchArgs { command: BenchCommand::Duplicates(args) }) = cli.command
        else {
            panic!("not duplicates")
        };
        Ok(args)
    }

    #[test]
    fn defaults_are_those_of_the_library_and_mistakes_are_explained() {
        let args = parsed(&[]).unwrap();
        assert_eq!((args.big, args.files), (Sizes::default().big_bytes, 60_000));
        assert_eq!(args.corpus.first(), Some(&Corpus::Small));
        let args = parsed(&["--corpus", "big,spinning"]).unwrap();
        assert_eq!(args.corpus, [Corpus::Big, Corpus::Spinning]);
        for (arguments, why) in [(["--corpus", "huge"], "spinning"), (["--files", "1"], "2..=")] {
            let said = parsed(&arguments).unwrap_err();
            assert!(said.contains(why), "{arguments:?}: {said}");
        }
    }
}
