//! Parses and renders lifecycle documents.

use std::time::{Duration, UNIX_EPOCH};

use haul_file_store::{Expiry, Lifecycle, LifecycleRule, NoncurrentExpiry};
use serde_json::{Value, json};

use crate::error::Error;

use super::document::{lifecycle_from_document, lifecycle_to_json, lifecycle_to_xml};
use super::*;

fn days(days: u32) -> Expiry {
    Expiry::After(DAY * days)
}

fn code(error: Error) -> String {
    match error {
        Error::Lifecycle { code, .. } => code,
        other => panic!("{other:?}"),
    }
}

/// Parses a document with one enabled rule that has this body.
fn one(body: &str) -> Result<LifecycleRule, String> {
    let xml = format!(
        "<LifecycleConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Rule>\
         <ID>id</ID><Status>Enabled</Status>{body}</Rule></LifecycleConfiguration>"
    );
    let parsed = lifecycle_from_document(&xml).map_err(code)?;
    Ok(parsed.rules.into_iter().next().unwrap())
}

const EXPIRE: &str = "<Expiration><Days>3</Days></Expiration>";
const ABORT: &str = "<AbortIncompleteMultipartUpload><DaysAfterInitiation>7</DaysAfterInitiation>\
                     </AbortIncompleteMultipartUpload>";
const NONCURRENT: &str = "<NoncurrentVersionExpiration><NewerNoncurrentVersions>3\
                          </NewerNoncurrentVersions><NoncurrentDays>30</NoncurrentDays>\
                          </NoncurrentVersionExpiration>";
const MARKERS: &str = "<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>\
                       </Expiration>";
const TAG: &str = "<Filter><Tag><Key>k</Key><Value>v</Value></Tag></Filter>";
const ALL: &str = "<Filter></Filter>";

#[test]
fn forms_of_a_filter_survive_a_round_trip() {
    for (form, prefix, sizes) in [
        ("<Prefix>a/&amp;</Prefix>", "a/&", (None, None)),
        ("<Prefix></Prefix>", "", (None, None)),
        ("<Filter></Filter>", "", (None, None)),
        ("<Filter><Prefix></Prefix></Filter>", "", (None, None)),
        ("<Filter><Prefix>a</Prefix></Filter>", "a", (None, None)),
        ("<Filter><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan></Filter>", "", (Some(5), None)),
        (
            "<Filter><And><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan>\
             <ObjectSizeLessThan>9</ObjectSizeLessThan><Prefix>a</Prefix></And></Filter>",
            "a",
            (Some(5), Some(9)),
        ),
        ("<Filter><Tag><Key>k @</Key><Value>v</Value></Tag></Filter>", "", (None, None)),
        (
            "<Filter><And><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan><Prefix>a</Prefix>\
             <Tag><Key>k</Key><Value></Value></Tag><Tag><Key>l</Key><Value>=</Value></Tag></And>\
             </Filter>",
            "a",
            (Some(5), None),
        ),
    ] {
        let rule = one(&format!("{form}{EXPIRE}")).unwrap();
        assert_eq!(rule.prefix, prefix, "{form}");
        assert_eq!((rule.bytes_greater_than, rule.bytes_less_than), sizes, "{form}");
        assert_eq!((rule.expire, rule.round_up_to), (Some(days(3)), DAY));
        let lifecycle = Lifecycle { rules: vec![rule] };
        let xml = lifecycle_to_xml(&lifecycle);
        assert!(xml.contains(form), "{form} is not in {xml}");
        assert_eq!(lifecycle_from_document(&xml).unwrap(), lifecycle);
        let json = lifecycle_to_json(&lifecycle).to_string();
        assert_eq!(lifecycle_from_document(&json).unwrap(), lifecycle, "{json}");
    }
    for form in ["", "<Prefix>a</Prefix>", "<Tag><Key>k</Key><Value>v</Value></Tag>"] {
        let rule = format!("<Filter><And>{form}</And></Filter>{EXPIRE}");
        assert!(one(&rule).unwrap_err().contains("MalformedXML"), "{form}");
    }
}

/// A rule with a misinterpreted filter would apply to the whole bucket.
#[test]
fn texts_are_those_of_xml() {
    let rule = "<s:LifecycleConfiguration xmlns:s=\"http://x/\"><s:Rule><s:ID>a</s:ID>\
                <s:Status>\n Enabled \n</s:Status><s:Filter><s:Prefix>t<![CDATA[mp/&]]> <!-- a -->\
                </s:Prefix></s:Filter><s:Expiration><s:Days>\n3\n</s:Days></s:Expiration></s:Rule>\
                </s:LifecycleConfiguration>";
    let lifecycle = lifecycle_from_document(rule).unwrap();
    assert_eq!(lifecycle.rules[0].prefix, "tmp/& ");
    assert!(lifecycle.rules[0].enabled);
    assert_eq!(lifecycle.rules[0].expire, Some(days(3)));
    for (text, prefix) in [(r"a\rb", "a\rb"), (r"\u00e4 <&", "\u{e4} <&")] {
        let json = format!(
            r#"{{"Rules":[{{"Prefix":"{text}","Status":"Enabled","Expiration":{{"Days":1}}}}]}}"#
        );
        let lifecycle = lifecycle_from_document(&json).unwrap();
        assert_eq!(lifecycle.rules[0].prefix, prefix);
        assert_eq!(lifecycle_from_document(&lifecycle_to_xml(&lifecycle)).unwrap(), lifecycle);
    }
}

#[test]
fn rules_for_versions_survive_a_round_trip() {
    for (actions, number, expire_markers) in [
        (format!("{MARKERS}{NONCURRENT}"), Some(3), true),
        (
            NONCURRENT.replace("<NewerNoncurrentVersions>3</NewerNoncurrentVersions>", ""),
            Some(0),
            false,
        ),
        (MARKERS.to_owned(), None, true),
    ] {
        let rule = one(&format!("{ALL}{actions}")).unwrap();
        let after = DAY * 30;
        let expected = number.map(|newer_versions| NoncurrentExpiry { after, newer_versions });
        assert_eq!((rule.expire, rule.expire_noncurrent), (None, expected));
        assert_eq!(rule.expire_markers, expire_markers);
        let lifecycle = Lifecycle { rules: vec![rule] };
        assert_eq!(lifecycle_from_document(&lifecycle_to_xml(&lifecycle)).unwrap(), lifecycle);
        let json = lifecycle_to_json(&lifecycle).to_string();
        assert_eq!(lifecycle_from_document(&json).unwrap(), lifecycle, "{json}");
    }
}

#[test]
fn json_has_the_form_of_the_aws_cli() {
    let given = json!({ "Rules": [
        {
            "ID": "a", "Status": "Disabled", "Filter": { "Prefix": "<logs>" },
            "Expiration": { "Days": 30 },
            "AbortIncompleteMultipartUpload": { "DaysAfterInitiation": 7 },
        },
        { "ID": "b", "Status": "Enabled", "Prefix": "",
          "Expiration": { "Date": "1970-01-02T00:00:00.000Z" } },
    ] });
    let lifecycle = lifecycle_from_document(&given.to_string()).unwrap();
    let [a, b] = &lifecycle.rules[..] else { panic!("{lifecycle:?}") };
    assert_eq!((a.enabled, a.prefix.as_str()), (false, "<logs>"));
    assert_eq!((a.expire, a.abort_uploads_after), (Some(days(30)), Some(DAY * 7)));
    assert_eq!(b.expire, Some(Expiry::At(UNIX_EPOCH + DAY)));
    assert_eq!(lifecycle_to_json(&lifecycle), given);
    for malformed in ["{", "{}", "{\"Rules\": 7}", "{\"Rules\": [{\"a b\": 1}]}", "", "<a>"] {
        let error = lifecycle_from_document(malformed).unwrap_err();
        assert_eq!(code(error), "MalformedXML", "{malformed}");
    }
    let none: Value = json!({ "Rules": [] });
    assert_eq!(code(lifecycle_from_document(&none.to_string()).unwrap_err()), "MalformedXML");
}

#[test]
fn invalid_rules_have_the_error_codes_of_s3() {
    let date = |date: &str| format!("{ALL}<Expiration><Date>{date}</Date></Expiration>");
    let long = "x".repeat(1025);
    for (body, code) in [
        (ALL.to_owned(), "InvalidRequest"),
        (EXPIRE.to_owned(), "MalformedXML"),
        (format!("{ALL}<Prefix>a</Prefix>{EXPIRE}"), "MalformedXML"),
        (format!("{ALL}<Unknown>a</Unknown>{EXPIRE}"), "MalformedXML"),
        (format!("{ALL}<Expiration></Expiration>"), "MalformedXML"),
        (format!("{ALL}<Expiration><Days>0</Days></Expiration>"), "InvalidArgument"),
        (format!("{ALL}<Expiration><Days>-1</Days></Expiration>"), "InvalidArgument"),
        (
            format!(
                "{ALL}<Expiration><Days>1</Days><Date>2026-01-01T00:00:00Z</Date></Expiration>"
            ),
            "MalformedXML",
        ),
        (date("2026-01-01T00:00:01Z"), "InvalidArgument"),
        (date("2026-01-01T00:00:00+01:00"), "InvalidArgument"),
        (date("tomorrow"), "MalformedXML"),
        (date("9999-12-31T01:00:00-23:00"), "InvalidArgument"),
        (format!("<Filter><Tag><Key>k</Key></Tag></Filter>{EXPIRE}"), "MalformedXML"),
        (format!("{ALL}{}", ABORT.replace('7', "0")), "InvalidArgument"),
        (
            format!("<Filter><ObjectSizeLessThan>5</ObjectSizeLessThan></Filter>{ABORT}"),
            "InvalidRequest",
        ),
        (
            format!(
                "<Filter><Prefix>a</Prefix><ObjectSizeLessThan>5</ObjectSizeLessThan></Filter>\
                 {EXPIRE}"
            ),
            "MalformedXML",
        ),
        (
            format!(
                "<Filter><And><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan>\
                 <ObjectSizeLessThan>5</ObjectSizeLessThan></And></Filter>{EXPIRE}"
            ),
            "InvalidRequest",
        ),
        (format!("<Prefix>{long}</Prefix>{EXPIRE}"), "InvalidRequest"),
        (format!("{TAG}{ABORT}"), "InvalidRequest"),
        (format!("{TAG}{MARKERS}"), "InvalidRequest"),
        (format!("{}{EXPIRE}", TAG.replace("<Tag>", "<Prefix>a</Prefix><Tag>")), "MalformedXML"),
        (format!("{}{EXPIRE}", TAG.replace('k', "")), "InvalidTag"),
        (
            format!(
                "<Filter><And><Tag><Key>k</Key><Value>v</Value></Tag><Tag><Key>k</Key><Value>w\
                 </Value></Tag></And></Filter>{EXPIRE}"
            ),
            "InvalidTag",
        ),
        (
            format!(
                "{ALL}<Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition>"
            ),
            "NotImplemented",
        ),
        (
            format!(
                "{ALL}<Transition><Date>2026-01-01T00:00:01Z</Date><StorageClass>GLACIER\
                 </StorageClass></Transition>"
            ),
            "InvalidArgument",
        ),
    ] {
        assert_eq!(one(&body), Err(code.to_owned()), "{body}");
    }
    assert!(one(&format!("{ALL}{ABORT}")).is_ok());
}

#[test]
fn invalid_rules_for_versions_are_refused() {
    for (body, code) in [
        (
            format!(
                "{ALL}<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>\
                 <Days>1</Days></Expiration>"
            ),
            "MalformedXML",
        ),
        (
            format!(
                "{ALL}<Expiration><ExpiredObjectDeleteMarker>false</ExpiredObjectDeleteMarker>\
                 </Expiration>"
            ),
            "InvalidRequest",
        ),
        (
            format!("{ALL}{}", NONCURRENT.replace("<NoncurrentDays>30", "<NoncurrentDays>0")),
            "InvalidArgument",
        ),
        (format!("{ALL}{}", NONCURRENT.replace("Versions>3", "Versions>0")), "InvalidArgument"),
        (format!("{ALL}{}", NONCURRENT.replace("Versions>3", "Versions>101")), "InvalidArgument"),
        (
            format!("{ALL}{}", NONCURRENT.replace("<NoncurrentDays>30</NoncurrentDays>", "")),
            "InvalidArgument",
        ),
    ] {
        assert_eq!(one(&body), Err(code.to_owned()), "{body}");
    }
}

#[test]
fn ids_and_the_number_of_rules_are_checked() {
    let document = |rules: &[(&str, &str)]| {
        let rules: Vec<Value> = rules
            .iter()
            .map(|(id, status)| {
                let (filter, expiration) = (json!({}), json!({ "Days": 1 }));
                json!({ "ID": id, "Status": status, "Filter": filter, "Expiration": expiration })
            })
            .collect();
        lifecycle_from_document(&json!({ "Rules": rules }).to_string())
    };
    let code = |rules: &[(&str, &str)]| code(document(rules).unwrap_err());
    assert_eq!(code(&[("a", "Enabled"), ("a", "Enabled")]), "InvalidArgument");
    assert_eq!(code(&[(&"a".repeat(256), "Enabled")]), "InvalidArgument");
    assert_eq!(code(&[("a", "enabled")]), "MalformedXML");
    let without = document(&[("", "Enabled"), ("", "Enabled")]).unwrap().rules;
    assert!(without[0].id != without[1].id && without[0].id.len() == 16);
    let ids: Vec<String> = (0..1001).map(|number| number.to_string()).collect();
    let many: Vec<_> = ids.iter().map(|id| (id.as_str(), "Enabled")).collect();
    assert_eq!(code(&many), "InvalidRequest");
    assert_eq!(document(&many[..1000]).unwrap().rules.len(), 1000);
}

#[test]
fn rules_set_without_s3_are_shown_in_days() {
    let rule = LifecycleRule {
        id: "seconds".to_owned(),
        enabled: true,
        prefix: "a".to_owned(),
        bytes_less_than: Some(7),
        expire: Some(Expiry::After(Duration::from_secs(1))),
        ..LifecycleRule::default()
    };
    let shown = lifecycle_to_json(&Lifecycle { rules: vec![rule] });
    let filter = json!({ "And": { "Prefix": "a", "ObjectSizeLessThan": 7 } });
    assert_eq!(shown["Rules"][0]["Filter"], filter);
    assert_eq!(shown["Rules"][0]["Expiration"], json!({ "Days": 1 }));
}
