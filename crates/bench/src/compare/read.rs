//! Reads the ratios of a report in JSON: of one benchmark, or of `haul bench all`.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde_json::Value as Json;

use super::Stated;

/// The ratios of a run, which is one report or several. The name of a ratio begins with the name of
/// its benchmark.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunFile {
    pub(super) ratios: BTreeMap<String, Stated>,
}

impl FromStr for RunFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let json: Json =
            serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
        let reports = match &json["reports"] {
            Json::Array(reports) => reports.as_slice(),
            _ => std::slice::from_ref(&json),
        };
        let ratios: BTreeMap<_, _> = reports.iter().flat_map(ratios).collect();
        match ratios.is_empty() {
            true => Err("it has no ratios: it is no report of haul bench --json".to_owned()),
            false => Ok(Self { ratios }),
        }
    }
}

fn ratios(report: &Json) -> Vec<(String, Stated)> {
    let bench = report["bench"].as_str().unwrap_or_default();
    let stated = |ratio: &Json| {
        let interval = ratio["low"].as_f64().zip(ratio["high"].as_f64());
        Some(Stated { value: ratio["value"].as_f64()?, interval })
    };
    let ratios = report["ratios"].as_object().into_iter().flatten();
    ratios.filter_map(|(name, it)| Some((format!("{bench}.{name}"), stated(it)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_several_benchmarks_are_read() {
        let one = r#"{"bench": "b", "ratios": {"r": {"value": 2, "low": 1, "high": 3}}}"#;
        let run: RunFile = format!("{{\"reports\": [{one}]}}").parse().unwrap();
        assert_eq!(run, one.parse().unwrap());
        assert_eq!(run.ratios["b.r"], Stated { value: 2.0, interval: Some((1.0, 3.0)) });
        for text in ["", "{}", "[]", r#"{"bench": "b", "ratios": {"r": {"value": "2"}}}"#] {
            assert!(text.parse::<RunFile>().is_err(), "{text}");
        }
    }
}
