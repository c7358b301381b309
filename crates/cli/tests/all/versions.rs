//! Tests the commands of `haul store` in a bucket with versions.

use serde_json::{Value, json};

use crate::helper::TestDir;

#[test]
fn versions_are_listed_and_read_by_their_ids() {
    let place = TestDir::new();
    place.run(&["store", "mb", "b-1"]).code(0);
    let versioning = |more: &[&str]| {
        place.run(&[&["store", "versioning", "b-1"], more].concat()).code(0).text().to_owned()
    };
    assert_eq!(versioning(&[]), "off\n");
    assert_eq!(versioning(&["enable"]), "");
    for content in ["first", "second"] {
        place.run_with(&["store", "put", "b-1/key"], content.as_bytes()).code(0);
    }
    place.run(&["store", "rm", "b-1/key"]).code(0);
    let listed = place.run(&["store", "ls", "--versions", "--json", "b-1"]).code(0);
    let lines: Vec<Value> =
        listed.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| lines.iter().map(|line| line[name].clone()).collect::<Vec<_>>();
    assert_eq!(of("bytes"), [0, 6, 5]);
    assert_eq!(of("latest"), [true, false, false]);
    assert_eq!(of("delete_marker"), [true, false, false]);
    let ids: Vec<&str> = lines.iter().map(|line| line["version"].as_str().unwrap()).collect();
    let plain = place.run(&["store", "ls", "--versions", "b-1/k"]).code(0);
    let expected: String = ids.iter().map(|id| format!("{id}  key\n")).collect();
    assert_eq!(plain.text(), expected);
    let long = place.run(&["store", "ls", "--versions", "--long", "b-1"]).code(0);
    assert!(long.text().starts_with("       deleted  "), "{}", long.text());
    let get = |id: &str| place.run(&["store", "get", "b-1/key", "--version-id", id]);
    assert_eq!(get(ids[2]).code(0).text(), "first");
    get(ids[0]).code(1).stderr_contains(&["is a delete marker"]);
    get("0000000000000007").code(1).stderr_contains(&["does not exist"]);
    get("x").code(2).stderr_contains(&["16 hexadecimal digits"]);
    place.run(&["store", "rb", "b-1"]).code(1).stderr_contains(&["is not empty"]);
    let state: Value = serde_json::from_str(&versioning(&["suspend", "--json"])).unwrap();
    let expected = json!({ "bucket": "b-1", "versioning": "suspended", "object_lock": false });
    assert_eq!(state, expected);
}
