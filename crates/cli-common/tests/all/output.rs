//! Tests what is printed to stdout, and what to stderr.

use std::io::Write;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;
use haul_cli_common::generate::{completions, man};
use haul_cli_common::output::{Output, print_line, print_summary};
use haul_cli_common::progress::{Amount, Progress, ShowProgress};
use haul_cli_common::report::{Failure, exit_code};
use haul_testing::{Finished, child_test};

const PRINTS: &str = "HAUL_TEST_PRINTS";

/// Runs in the other process. Returns at once if the test runner calls it as a test.
#[test]
fn child_that_prints() {
    if std::env::var_os(PRINTS).is_none() {
        return;
    }
    let mut output = Output::default();
    // Ends the line on which the harness printed the name of the test.
    output.bytes(b"\n").unwrap();
    output.line(format_args!("a {}", "line")).unwrap();
    output.send().unwrap();
    output.write_all(b"bytes\n").unwrap();
    output.flush().unwrap();
    output.line("the end").unwrap();
    output.finish().unwrap();
    print_line("a whole result").unwrap();
    print_summary(true, "{\"files\":2}", "unused").unwrap();
    print_summary(false, "unused", "2 files").unwrap();
    assert_eq!(exit_code(Err(Failure::new("it failed"))), ExitCode::FAILURE);
    assert_eq!(exit_code(Err(Failure::reported())), ExitCode::FAILURE);
    let mut program = Command::new("prog").subcommand(Command::new("act"));
    completions(&mut program, Shell::Bash).unwrap();
    man(program, None).unwrap();

    let all = Amount { things: 2, bytes: 20 };
    let progress = Progress::new(ShowProgress::True, "file", all);
    progress.add(10);
    progress.print_message("a note");
    progress.set(all);
    assert_eq!(progress.finish().amount, all);
    let hidden = Progress::search(ShowProgress::False);
    hidden.add(5);
    assert_eq!(hidden.finish().amount, Amount { things: 1, bytes: 5 });
}

#[test]
fn results_are_printed_to_stdout_and_messages_to_stderr() {
    let mut child = child_test("output::child_that_prints");
    let finished = Finished(child.env(PRINTS, "yes").output().unwrap()).code(0);
    let text = finished.text();
    let results = "\na line\nbytes\nthe end\na whole result\n{\"files\":2}\n_prog() {\n";
    assert!(text.contains(results), "{text}");
    assert!(text.contains("complete -F _prog") && text.contains(".TH prog 1"), "{text}");
    let stderr = finished.stderr();
    let messages: Vec<_> = stderr.lines().filter(|line| line.starts_with("haul: ")).collect();
    assert_eq!(messages[..3], ["haul: 2 files", "haul: it failed", "haul: a note"]);
    let last = "haul: 100 %  2 of 2 files, 20 B of 20 B, ";
    assert!(messages.len() == 4 && messages[3].starts_with(last), "{messages:?}");
}
