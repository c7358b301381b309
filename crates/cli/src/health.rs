//! `haul health`: asks a server whether it is well, for health checks of containers and scripts.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::admin_client::{AdminAddress, Question};
use crate::args::HealthArgs;
use crate::output::print_line;
use crate::report::{Failure, Result};

/// Fails unless the server answers with 200.
pub(crate) fn run(args: &HealthArgs) -> Result {
    let address = AdminAddress::parse(&args.url, "/health")?;
    let cannot = || format!("{} is not healthy", args.url);
    let question = Question {
        method: Method::GET,
        credentials: None,
        timeout: args.timeout,
        is_insecure: args.insecure,
    };
    let (status, text) = address.ask(&question, &cannot)?;
    let is_healthy = status == StatusCode::OK;
    if args.json {
        let lines: Vec<_> = text.lines().collect();
        print_line(json!({ "healthy": is_healthy, "status": status.as_u16(), "lines": lines }))?;
    } else if is_healthy {
        print_line(text.trim_end())?;
    }
    match is_healthy {
        true => Ok(()),
        false if args.json => Err(Failure::reported()),
        false => {
            Err(Failure::new(format!("{}: {}: {}", cannot(), status.as_u16(), text.trim_end())))
        }
    }
}
