//! Tests the help, the manual pages and the shell completions.

use crate::helper::TestDir;

#[test]
fn each_command_has_a_manual_page() {
    let place = TestDir::new();
    std::fs::create_dir(place.path("man1")).unwrap();
    place.run(&["man", "man1"]).code(0);
    for name in [
        "haul",
        "haul-serve",
        "haul-files",
        "haul-keys",
        "haul-keys-create",
        "haul-store",
        "haul-store-import",
        "haul-store-lifecycle",
        "haul-store-lifecycle-run",
        "haul-store-verify",
        "haul-cache-warm",
        "haul-probe",
        "haul-tune",
        "haul-dups-remove",
        "haul-wal",
        "haul-wal-copy",
    ] {
        let page = std::fs::read_to_string(place.path(format!("man1/{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".SH EXAMPLES"), "{name}");
    }
    let page = place.run(&["man"]).code(0);
    assert!(page.text().contains(".SH EXIT CODES"));
    place.run(&["man", "nowhere"]).code(3).stderr_contains(&["nowhere"]);
}

#[test]
fn each_shell_has_completions() {
    let place = TestDir::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.run(&["completions", shell]).code(0);
        assert!(script.text().contains("skip-existing"), "{shell}");
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    let place = TestDir::new();
    let help = place.run(&["--help"]).code(0);
    for words in ["Examples:", "Exit codes:", "haul serve", "haul store import"] {
        assert!(help.text().contains(words), "{}", help.text());
    }
    let help = place.run(&["store", "import", "--help"]).code(0);
    for words in ["--skip-existing", "Examples:", "[default: ./haul-data]"] {
        assert!(help.text().contains(words), "{}", help.text());
    }
}
