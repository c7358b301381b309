//! Makes the event of a change.

use std::sync::Arc;

use haul_file_store::{BucketSettings, Event, EventFields, LifecycleAction, LifecycleEvents};

use crate::acl::owner::ADMINISTRATOR;
use crate::events::fields::{
    ADDRESS, BUCKET_OWNER, FIELDS_BYTES, LISTENING, NAME, REQUEST, SIZE, USER,
};
use crate::events::requester::Requester;
use crate::events::target::{EventTargets, LISTENERS};
use crate::settings::notification::name::EventName;
use crate::settings::parsed::notification;
use crate::settings::{NOTIFICATION, OWNER};

/// Returns the event of a change to a key; `None` if no rule of its bucket selects it. A malformed
/// configuration selects none, and a target that the server does not have gets none.
pub(crate) fn event(
    targets: &EventTargets,
    bucket: &str,
    settings: &BucketSettings,
    name: EventName,
    key: &str,
    requester: Option<&Requester>,
) -> Option<Event> {
    let mut event = Event::default();
    if let Some(listening) = targets.listeners().select(bucket, name, key) {
        event.queues.push(LISTENERS.into());
        event.fields.add(LISTENING, listening);
    }
    // Most buckets have no notifications: they cost only this test.
    let configuration = match settings.get(NOTIFICATION) {
        Some(_) => notification(settings).ok().flatten(),
        None => None,
    };
    let rules = configuration.iter().flat_map(|configuration| &configuration.rules);
    for rule in rules.filter(|rule| rule.selects(name, key)) {
        let Some(target) = targets.find(&rule.target) else {
            targets.lost().count(&rule.target, bucket, key);
            continue;
        };
        if !event.queues.contains(target.name()) {
            if event.fields == EventFields::default() {
                event.fields = EventFields::with_capacity(FIELDS_BYTES);
            }
            event.queues.push(target.name().clone());
            event.fields.add(target.rule_field(), &rule.id);
        }
    }
    if event.queues.is_empty() {
        return None;
    }
    describe(&mut event.fields, settings, name, requester);
    Some(event)
}

fn describe(
    fields: &mut EventFields,
    settings: &BucketSettings,
    name: EventName,
    requester: Option<&Requester>,
) {
    fields.add(NAME, name.as_str());
    if let Some(owner) = settings.get(OWNER) {
        fields.add(BUCKET_OWNER, owner);
    }
    let Some(requester) = requester else { return };
    fields.add(USER, requester.user.as_deref().unwrap_or(ADMINISTRATOR));
    fields.add(REQUEST, str::from_utf8(&requester.request_id).unwrap_or_default());
    if let Some(peer) = requester.peer {
        fields.add(ADDRESS, peer);
    }
}

/// Sets the length that clients see, where the stored one may be another.
pub(crate) fn set_size(event: &mut Option<Event>, bytes: u64) {
    if let Some(event) = event {
        event.fields.add(SIZE, bytes);
    }
}

impl EventTargets {
    /// Returns the maker of events for [`haul_file_store::Options::lifecycle_events`].
    #[must_use]
    pub fn lifecycle_events(self: &Arc<Self>) -> LifecycleEvents {
        let targets = Arc::clone(self);
        LifecycleEvents::new(move |bucket, settings, action, key| {
            let name = match action {
                LifecycleAction::ExpireObject | LifecycleAction::ExpireVersion(_) => {
                    EventName::Expired
                }
                LifecycleAction::CreateMarker => EventName::ExpiryMarkerCreated,
                LifecycleAction::AbortUpload => return None,
            };
            event(&targets, bucket, settings, name, key, None)
        })
    }
}
