//! Defines findings: risks, avoidable delays and notes about a machine, with their remedies.

use crate::setting::Setting;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration risks the loss of data.
    Danger,
    /// The configuration causes avoidable delays.
    Slow,
    /// The finding is information without a clear disadvantage.
    Note,
}

/// The remedy of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Settings that are safe to change at run time; `haul tune --apply` changes them.
    Settings(Vec<Setting>),
    /// A command or an instruction for an administrator, who must judge its other effects.
    ByHand(String),
}

/// A risk, an avoidable delay or a note about the machine, with a remedy if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name of the kind of finding, such as `access times`; in JSON, underscores replace its
    /// spaces.
    pub name: &'static str,
    /// The subject of the finding: a mount point, a disk, a control group, `memory` or `kernel`.
    pub about: String,
    /// The severity.
    pub severity: Severity,
    /// The description of the finding in one or more sentences.
    pub text: String,
    /// The remedy, if any.
    pub remedy: Option<Remedy>,
    /// The document that explains the finding, if any.
    pub source: Option<&'static str>,
}

impl Finding {
    pub(crate) fn new(
        name: &'static str,
        about: &str,
        severity: Severity,
        text: impl Into<String>,
    ) -> Self {
        let (about, text) = (about.to_owned(), text.into());
        Self { name, about, severity, text, remedy: None, source: None }
    }

    pub(crate) fn set(mut self, settings: Vec<Setting>) -> Self {
        self.remedy = (!settings.is_empty()).then_some(Remedy::Settings(settings));
        self
    }

    pub(crate) fn by_hand(mut self, command: impl Into<String>) -> Self {
        self.remedy = Some(Remedy::ByHand(command.into()));
        self
    }

    pub(crate) fn source(mut self, source: &'static str) -> Self {
        self.source = Some(source);
        self
    }
}
