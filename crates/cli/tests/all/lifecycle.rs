//! Tests `haul store lifecycle`.

use serde_json::{Value, json};

use crate::helper::TestDir;

/// Rules by which all keys below `tmp/` have expired.
fn past() -> Value {
    json!({ "Rules": [{
        "ID": "past",
        "Status": "Enabled",
        "Filter": { "Prefix": "tmp/" },
        "Expiration": { "Date": "2017-09-27T00:00:00.000Z" },
    }] })
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A store with two buckets, one of which has three objects.
fn store() -> TestDir {
    let place = TestDir::new();
    place.run(&["store", "mb", "b-1"]).code(0);
    place.run(&["store", "mb", "b-2"]).code(0);
    for key in ["keep", "tmp/1", "tmp/2"] {
        place.run_with(&["store", "put", &format!("b-1/{key}")], b"12345").code(0);
    }
    place
}

#[test]
fn rules_are_set_shown_and_removed() {
    let place = store();
    let lifecycle = |arguments: &[&str]| place.run(&[&["store", "lifecycle"], arguments].concat());
    lifecycle(&["show", "b-1"]).code(1).stderr_contains(&["b-1 has no lifecycle rules"]);
    place.write("rules.json", past().to_string());
    lifecycle(&["set", "b-1", "rules.json"]).code(0);
    let shown = lifecycle(&["show", "b-1"]).code(0);
    let expected =
        "past: expire objects on 2017-09-27T00:00:00.000Z; keys that begin with \"tmp/\"";
    assert_eq!(shown.text().trim_end(), expected);
    let json: Value =
        serde_json::from_str(lifecycle(&["show", "--json", "b-1"]).code(0).text()).unwrap();
    assert_eq!(json, past());
    let xml = lifecycle(&["show", "--xml", "b-1"]).code(0).text().to_owned();
    place.run_with(&["store", "lifecycle", "set", "b-2"], xml.as_bytes()).code(0);
    assert_eq!(lifecycle(&["show", "--xml", "b-2"]).code(0).text(), xml);
    lifecycle(&["remove", "b-1"]).code(0);
    lifecycle(&["show", "b-1"]).code(1);
    lifecycle(&["show", "b-2"]).code(0);
}

#[test]
fn invalid_rules_are_refused_with_the_reason() {
    let place = store();
    let mut rules = past();
    rules["Rules"][0]["Expiration"] = json!({ "Days": 0 });
    place.write("days.json", rules.to_string());
    rules["Rules"][0]["Expiration"] = json!({ "Days": 1 });
    rules["Rules"][0]["Transitions"] = json!([{ "Days": 1, "StorageClass": "GLACIER" }]);
    place.write("transition.json", rules.to_string());
    place.write("other.json", "[]");
    for (file, why) in [
        ("days.json", "must be a positive integer"),
        ("transition.json", "Transitions are not implemented"),
        ("other.json", "not a lifecycle configuration"),
    ] {
        let set = place.run(&["store", "lifecycle", "set", "b-1", file]);
        set.code(2).stderr_contains(&[file, why]);
    }
    let missing = place.run(&["store", "lifecycle", "set", "b-1", "missing.json"]);
    missing.code(3).stderr_contains(&["missing.json"]);
    place.write("rules.json", past().to_string());
    let absent = place.run(&["store", "lifecycle", "set", "absent", "rules.json"]);
    absent.code(1).stderr_contains(&["absent"]);
}

#[test]
fn run_deletes_what_the_dry_run_lists() {
    let place = store();
    let run = |arguments: &[&str]| place.run(&[&["store", "lifecycle", "run"], arguments].concat());
    assert_eq!(run(&[]).code(0).text(), "", "no bucket has rules");
    place.write("rules.json", past().to_string());
    place.run(&["store", "lifecycle", "set", "b-1", "rules.json"]).code(0);
    let planned = run(&["--dry-run"]).code(0).text().to_owned();
    let planned: Vec<&str> = planned.lines().collect();
    assert!(planned[0].starts_with("b-1/tmp/1: 5 B, modified 2"), "{planned:?}");
    assert!(planned[1].ends_with("rule past"), "{planned:?}");
    assert_eq!(planned[2], "b-1: would delete 2 objects (10 B), would abort 0 uploads");
    let planned = lines(run(&["-n", "--json", "b-1"]).code(0).text());
    assert_eq!((&planned[0]["key"], &planned[0]["rule"]), (&json!("tmp/1"), &json!("past")));
    assert_eq!((planned.len(), &planned[2]["expired_bytes"]), (3, &json!(10)));
    assert_eq!(place.run(&["store", "ls", "-r", "b-1"]).code(0).text().lines().count(), 3);

    let done = run(&["b-1"]).code(0);
    assert_eq!(done.text(), "b-1: deleted 2 objects (10 B), aborted 0 uploads\n");
    assert_eq!(place.run(&["store", "ls", "-r", "b-1"]).code(0).text(), "keep\n");
    let again = lines(run(&["--json"]).code(0).text());
    assert_eq!((again.len(), &again[0]["expired_objects"]), (1, &json!(0)));
    run(&["absent"]).code(1).stderr_contains(&["absent", "does not exist"]);
}
