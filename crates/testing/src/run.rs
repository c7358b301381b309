//! Runs a program, and checks its exit code and its output.

use std::process::{Command, Output};

/// A finished run of a program.
#[derive(Debug)]
pub struct Finished(pub Output);

impl Finished {
    /// Returns the bytes of stdout.
    #[must_use]
    pub fn stdout(&self) -> &[u8] {
        &self.0.stdout
    }

    /// Returns stdout as text.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.0.stdout).unwrap()
    }

    /// Returns the lines of stdout.
    #[must_use]
    pub fn lines(&self) -> Vec<&str> {
        self.text().lines().collect()
    }

    /// Returns stderr as text.
    #[must_use]
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    /// Checks the exit code and that the program did not panic.
    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        let stderr = self.stderr();
        assert_eq!(self.0.status.code(), Some(code), "{stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        self
    }

    /// Checks that stderr contains all of `words`.
    #[track_caller]
    pub fn stderr_contains(self, words: &[&str]) -> Self {
        let stderr = self.stderr();
        for word in words {
            assert!(stderr.contains(word), "missing: {word}\n{stderr}");
        }
        self
    }
}

/// Runs a program and returns its trimmed stdout.
///
/// # Errors
/// Fails if the program cannot be started, or with its stderr if its exit status is not 0.
pub fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("cannot start {name}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}
