//! `haul doctor`: prints the facts that a report of a problem needs, and checks the machine.

mod facts;
mod redact;
mod show;

use haul_tuning::Status;

use crate::args::DoctorArgs;
use crate::output::Output;
use crate::report::{Failure, Result};
use facts::Facts;

pub(crate) fn run(args: &DoctorArgs) -> Result {
    let facts = Facts::collect(&args.dir)?;
    let mut output = Output::new();
    if args.json {
        output.line(show::json(&facts))?;
    } else {
        output.bytes(show::text(&facts).as_bytes())?;
    }
    output.finish()?;
    let has_problem = facts.checks.iter().any(|check| check.status == Status::Problem);
    if has_problem { Err(Failure::reported()) } else { Ok(()) }
}
