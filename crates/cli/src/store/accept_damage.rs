//! `haul store accept-damage`: records that the loss of unknown objects in damaged regions is
//! accepted.

use haul_file_store::Store;

use crate::open_store::damage_line;
use crate::output::Output;
use crate::report::{OrFail, Result};
use crate::units::Count;

pub(super) fn run(store: &Store) -> Result {
    let accepted = store.accept_damage().or_fail(|| "cannot accept the damage".to_owned())?;
    let mut output = Output::new();
    for damage in &accepted {
        output.line(damage_line(damage))?;
    }
    let regions = Count(accepted.len() as u64, "damaged region");
    output.line(format_args!("accepted the loss of unknown objects in {regions}"))?;
    output.finish()
}
