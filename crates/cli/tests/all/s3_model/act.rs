//! The requests of the test that change objects.

use super::Run;
use super::client::{
    Field, assert_error, check_object, element, elements, is_missing, target, text,
};
use super::model::{Content, Deletion, Found, Lock, NULL, Retention, Versioning};

/// Returns the fields of a PUT of an object.
pub(super) fn fields_of(content: &Content) -> Vec<Field<'static>> {
    let mut fields = vec![("x-amz-meta-m", content.meta.clone())];
    fields.extend(content.tag.as_ref().map(|value| ("x-amz-tagging", format!("t={value}"))));
    fields.extend(lock_fields(content.lock));
    fields
}

fn lock_fields(lock: Lock) -> Vec<Field<'static>> {
    let mut fields = Vec::new();
    if let Some(retention) = lock.retention {
        fields.push(("x-amz-object-lock-mode", retention.mode.name().to_owned()));
        fields.push(("x-amz-object-lock-retain-until-date", retention.until()));
    }
    let hold = |is_on| if is_on { "ON" } else { "OFF" };
    fields.extend(lock.hold.map(|is_on| ("x-amz-object-lock-legal-hold", hold(is_on).to_owned())));
    fields
}

/// Returns the body of a request that sets a legal hold.
pub(super) fn hold_document(is_on: bool) -> String {
    let status = if is_on { "ON" } else { "OFF" };
    format!("<LegalHold><Status>{status}</Status></LegalHold>")
}

fn retention_document(retention: Option<Retention>) -> String {
    let content = retention.map(|it| {
        let (mode, until) = (it.mode.name(), it.until());
        format!("<Mode>{mode}</Mode><RetainUntilDate>{until}</RetainUntilDate>")
    });
    format!("<Retention>{}</Retention>", content.unwrap_or_default())
}

fn bypass_fields(bypass: bool) -> Vec<Field<'static>> {
    let field = ("x-amz-bypass-governance-retention", "true".to_owned());
    if bypass { vec![field] } else { Vec::new() }
}

impl Run {
    /// Stores an object, in some cases with a condition.
    pub(super) fn put(&mut self, bucket: usize, key: &str) {
        let content = self.content(bucket);
        let current = self.buckets[bucket].current(key).map(|current| current.etag.clone());
        let mut fields = fields_of(&content);
        let refused = match self.random.below(8) {
            0 => {
                fields.push(("if-none-match", "*".to_owned()));
                current.is_some().then_some((412, "PreconditionFailed"))
            }
            1 => {
                fields.push(("if-match", format!("\"{:032}\"", 7)));
                Some(match current {
                    Some(_) => (412, "PreconditionFailed"),
                    None => (404, "NoSuchKey"),
                })
            }
            2 if current.is_some() => {
                fields.push(("if-match", current.unwrap()));
                None
            }
            3 if !self.buckets[bucket].has_lock => {
                fields.push(("x-amz-object-lock-legal-hold", "ON".to_owned()));
                Some((400, "InvalidRequest"))
            }
            _ => None,
        };
        let target = target(self.buckets[bucket].name, key, None, "");
        let stored = self.client.send(("PUT", &target), &fields, &content.bytes);
        let about = format!("PUT {target} {fields:?}");
        if let Some((status, code)) = refused {
            return assert_error(&stored, status, code, &about);
        }
        assert_eq!(stored.status, 200, "{about}: {}", text(&stored));
        let etag = stored.field("etag").unwrap().to_owned();
        self.stored(bucket, key, stored.field("x-amz-version-id"), Content { etag, ..content });
    }

    /// Applies a write to the model, whose response had this version ID.
    pub(super) fn stored(&mut self, bucket: usize, key: &str, id: Option<&str>, content: Content) {
        let bucket = &mut self.buckets[bucket];
        assert_eq!(id.is_some(), bucket.versioning == Versioning::Enabled, "{id:?}");
        bucket.add(key, id.unwrap_or(NULL), Some(content));
    }

    /// Reads a part of an object.
    pub(super) fn read_range(&mut self, bucket: usize, key: &str) {
        let bucket = &self.buckets[bucket];
        let Some(current) = bucket.current(key).filter(|it| !it.bytes.is_empty()) else { return };
        let first = self.random.index(current.bytes.len());
        let last = first + self.random.index(current.bytes.len() - first);
        let fields = [("range", format!("bytes={first}-{last}"))];
        let target = target(bucket.name, key, None, "");
        let found = self.client.send(("GET", &target), &fields, b"");
        assert_eq!(found.status, 206, "{target} {fields:?}");
        assert!(found.body == current.bytes[first..=last], "{target} {fields:?}");
    }

    /// Deletes the current object.
    pub(super) fn delete(&mut self, bucket: usize, key: &str) {
        let bucket = &mut self.buckets[bucket];
        let target = target(bucket.name, key, None, "");
        let deleted = self.client.send(("DELETE", &target), &[], b"");
        assert_eq!(deleted.status, 204, "DELETE {target}: {}", text(&deleted));
        let id = deleted.field("x-amz-version-id");
        let has_marker = bucket.versioning != Versioning::Off;
        assert_eq!(id.is_some(), has_marker, "DELETE {target}");
        let marker = deleted.field("x-amz-delete-marker");
        assert_eq!(marker, has_marker.then_some("true"), "DELETE {target}");
        match id {
            Some(id) => bucket.add(key, id, None),
            None => bucket.remove(key),
        }
    }

    /// Deletes a version.
    pub(super) fn delete_version(&mut self, bucket: usize, key: &str) {
        let id = self.choose_version(bucket, key).unwrap_or_else(|| NULL.to_owned());
        let bypass = self.random.below(2) == 0;
        let bucket = &mut self.buckets[bucket];
        let target = target(bucket.name, key, Some(&id), "");
        let deleted = self.client.send(("DELETE", &target), &bypass_fields(bypass), b"");
        let about = format!("DELETE {target}, bypass: {bypass}");
        let outcome = bucket.delete_version(key, &id, bypass);
        let has_versions = bucket.versioning != Versioning::Off;
        match outcome {
            Deletion::Locked => return assert_error(&deleted, 403, "AccessDenied", &about),
            Deletion::Missing if !has_versions && id != NULL => {
                return assert_error(&deleted, 404, "NoSuchVersion", &about);
            }
            Deletion::Deleted { .. } | Deletion::Missing => {}
        }
        assert_eq!(deleted.status, 204, "{about}: {}", text(&deleted));
        let is_marker = outcome == Deletion::Deleted { is_marker: true };
        let marker = deleted.field("x-amz-delete-marker");
        assert_eq!(marker, is_marker.then_some("true"), "{about}");
        let shown = has_versions.then_some(id.as_str());
        assert_eq!(deleted.field("x-amz-version-id"), shown, "{about}");
    }

    /// Deletes objects and versions of several keys by one request.
    pub(super) fn delete_many(&mut self, bucket: usize) {
        let keys: Vec<_> = super::KEYS.into_iter().filter(|_| self.random.below(3) == 0).collect();
        let chosen = keys.into_iter().map(|key| (key, self.choose_version(bucket, key)));
        let mut chosen: Vec<_> = chosen.collect();
        chosen.push(("absent", None));
        let bypass = self.random.below(2) == 0;
        let objects = chosen.iter().map(|(key, id)| {
            let key = key.replace('&', "&amp;").replace('<', "&lt;");
            let id = id.as_ref().map(|id| format!("<VersionId>{id}</VersionId>"));
            format!("<Object><Key>{key}</Key>{}</Object>", id.unwrap_or_default())
        });
        let body = format!("<Delete>{}</Delete>", objects.collect::<String>());
        let bucket = &mut self.buckets[bucket];
        let target = format!("/{}?delete", bucket.name);
        let reply = self.client.send(("POST", &target), &bypass_fields(bypass), body.as_bytes());
        assert_eq!(reply.status, 200, "{body}: {}", text(&reply));
        let mut deleted = elements(text(&reply), "Deleted").into_iter();
        let mut errors = elements(text(&reply), "Error").into_iter();
        for (key, id) in &chosen {
            let about = format!("{key} {id:?} of {body}");
            let has_versions = bucket.versioning != Versioning::Off;
            let outcome = id.as_ref().map(|id| bucket.delete_version(key, id, bypass));
            let refused = match &outcome {
                Some(Deletion::Locked) => Some("AccessDenied"),
                // A bucket without versions has no version with such an ID.
                Some(_) if !has_versions && id.as_deref() != Some(NULL) => Some("NoSuchVersion"),
                _ => None,
            };
            if let Some(code) = refused {
                let error = errors.next().unwrap_or_else(|| panic!("no error: {about}"));
                assert_eq!(element(&error, "Code").as_deref(), Some(code), "{about}");
                continue;
            }
            let entry = deleted.next().unwrap_or_else(|| panic!("{about}: {}", text(&reply)));
            assert_eq!(element(&entry, "VersionId"), *id, "{about}");
            let marker = element(&entry, "DeleteMarkerVersionId");
            let is_marker = match &outcome {
                Some(outcome) => *outcome == Deletion::Deleted { is_marker: true },
                None => has_versions,
            };
            assert_eq!(marker.is_some(), is_marker, "{about}: {entry}");
            match (marker, id) {
                (Some(marker), None) => bucket.add(key, &marker, None),
                (None, None) => bucket.remove(key),
                (marker, Some(id)) => assert!(marker.is_none_or(|marker| marker == *id)),
            }
        }
        assert_eq!((deleted.next(), errors.next()), (None, None), "{body}");
    }

    /// Copies an object or a version, in some cases with other metadata.
    pub(super) fn copy(&mut self, to: usize, to_key: &str) {
        let (from, from_key) = self.choose();
        let id = self.choose_version(from, from_key);
        let replaces = self.random.below(2) == 0;
        let given = self.content(to);
        let source = target(self.buckets[from].name, from_key, id.as_deref(), "");
        let mut fields = vec![("x-amz-copy-source", source)];
        fields.extend(lock_fields(given.lock));
        if replaces {
            fields.push(("x-amz-metadata-directive", "REPLACE".to_owned()));
            fields.push(("x-amz-meta-m", given.meta.clone()));
        }
        let target = target(self.buckets[to].name, to_key, None, "");
        let copied = self.client.send(("PUT", &target), &fields, b"");
        let about = format!("PUT {target} {fields:?}");
        if !replaces && id.is_none() && (from, from_key) == (to, to_key) {
            return assert_error(&copied, 400, "InvalidRequest", &about);
        }
        let found = self.buckets[from].find(from_key, id.as_deref());
        if let Found::Marker(_) = found {
            return assert_error(&copied, 400, "InvalidRequest", &about);
        }
        if is_missing(&copied, &found, &about) {
            return;
        }
        let Found::Object(source_id, content) = found else { unreachable!("it is not missing") };
        assert_eq!(copied.status, 200, "{about}: {}", text(&copied));
        let meta = if replaces { given.meta } else { content.meta.clone() };
        let etag = element(text(&copied), "ETag").unwrap();
        let shown = (self.buckets[from].versioning != Versioning::Off).then_some(source_id);
        assert_eq!(copied.field("x-amz-copy-source-version-id"), shown, "{about}");
        let content = Content { etag, meta, lock: given.lock, ..content.clone() };
        self.stored(to, to_key, copied.field("x-amz-version-id"), content);
    }

    /// Replaces or removes the tags of an object or version.
    pub(super) fn tag(&mut self, bucket: usize, key: &str) {
        let id = self.choose_version(bucket, key);
        let tag = (self.random.below(3) > 0).then(|| self.random.below(100).to_string());
        let target = target(self.buckets[bucket].name, key, id.as_deref(), "tagging");
        let (method, body, status) = match &tag {
            Some(value) => {
                let tag = format!("<Tag><Key>t</Key><Value>{value}</Value></Tag>");
                ("PUT", format!("<Tagging><TagSet>{tag}</TagSet></Tagging>"), 200)
            }
            None => ("DELETE", String::new(), 204),
        };
        let reply = self.client.send((method, &target), &[], body.as_bytes());
        let about = format!("{method} {target}");
        let found = self.buckets[bucket].find(key, id.as_deref());
        if is_missing(&reply, &found, &about) {
            return;
        }
        assert_eq!(reply.status, status, "{about}: {}", text(&reply));
        self.buckets[bucket].content_mut(key, id.as_deref()).tag = tag;
        check_object(&self.client, &self.buckets[bucket], (key, id.as_deref()), "HEAD");
    }

    /// Replaces or removes the retention of an object or version.
    pub(super) fn retain(&mut self, bucket: usize, key: &str) {
        let id = self.choose_version(bucket, key);
        let bypass = self.random.below(2) == 0;
        let new = (self.random.below(4) > 0).then(|| self.retention());
        let body = retention_document(new);
        self.change_lock((bucket, key, id.as_deref()), "retention", (&body, bypass), |lock| {
            let is_allowed = lock.allows(new, bypass);
            if is_allowed {
                lock.retention = new;
            }
            is_allowed
        });
    }

    /// Sets or lifts the legal hold of an object or version.
    pub(super) fn hold(&mut self, bucket: usize, key: &str) {
        let id = self.choose_version(bucket, key);
        let is_on = self.random.below(3) == 0;
        let body = hold_document(is_on);
        self.change_lock((bucket, key, id.as_deref()), "legal-hold", (&body, false), |lock| {
            lock.hold = Some(is_on);
            true
        });
    }

    fn change_lock(
        &mut self,
        (bucket, key, id): (usize, &str, Option<&str>),
        subresource: &str,
        (body, bypass): (&str, bool),
        change: impl FnOnce(&mut Lock) -> bool,
    ) {
        let bucket = &mut self.buckets[bucket];
        let target = target(bucket.name, key, id, subresource);
        let fields = bypass_fields(bypass);
        let reply = self.client.send(("PUT", &target), &fields, body.as_bytes());
        let about = format!("PUT {target} {body} {fields:?}");
        if !bucket.has_lock {
            return assert_error(&reply, 400, "InvalidRequest", &about);
        }
        if is_missing(&reply, &bucket.find(key, id), &about) {
            return;
        }
        match change(&mut bucket.content_mut(key, id).lock) {
            true => assert_eq!(reply.status, 200, "{about}: {}", text(&reply)),
            false => assert_error(&reply, 403, "AccessDenied", &about),
        }
        check_object(&self.client, bucket, (key, id), "HEAD");
    }
}
