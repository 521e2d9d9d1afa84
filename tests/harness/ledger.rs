//! The ledger as the command line and `.workfs/events` show it, and what must hold for any of it.

use std::collections::BTreeMap;

use serde_json::Value;

/// One event.
#[derive(Clone, Debug)]
pub struct Event(pub Value);

impl Event {
    /// A text field, or nothing.
    pub fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_default()
    }

    /// What happened.
    pub fn name(&self) -> &str {
        self.text("event")
    }

    /// To which record.
    pub fn id(&self) -> &str {
        self.text("id")
    }

    /// Its place.
    pub fn g(&self) -> u64 {
        self.0["g"].as_u64().unwrap_or_else(|| panic!("no g: {}", self.0))
    }

    /// The record's versions before and after.
    pub fn versions(&self) -> (Option<u64>, Option<u64>) {
        (self.0["version_before"].as_u64(), self.0["version_after"].as_u64())
    }
}

/// All events, in their order.
#[derive(Clone, Debug)]
pub struct Ledger(pub Vec<Event>);

impl Ledger {
    /// Takes lines of JSON, and checks that none is missing.
    #[track_caller]
    pub fn of(lines: impl IntoIterator<Item = Value>) -> Ledger {
        let events: Vec<Event> = lines.into_iter().map(Event).collect();
        for (nth, event) in events.iter().enumerate() {
            assert_eq!(event.g(), nth as u64 + 1, "g is not dense at {}", event.0);
        }
        Ledger(events)
    }

    /// The events of one record.
    pub fn of_record(&self, id: &str) -> Vec<&Event> {
        self.0.iter().filter(|event| event.id() == id).collect()
    }

    /// The names of one record's events.
    pub fn names(&self, id: &str) -> Vec<&str> {
        self.of_record(id).into_iter().map(Event::name).collect()
    }

    /// How often something happened to each record.
    pub fn counts(&self, name: &str) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for event in self.0.iter().filter(|event| event.name() == name) {
            *counts.entry(event.id()).or_default() += 1;
        }
        counts
    }

    /// The last place.
    pub fn last_g(&self) -> u64 {
        self.0.last().map_or(0, Event::g)
    }

    /// The events after `g`.
    pub fn after(&self, g: u64) -> Vec<&Event> {
        self.0.iter().filter(|event| event.g() > g).collect()
    }

    /// Each record's versions go on where the event before left them.
    #[track_caller]
    pub fn versions_are_linked(&self) {
        let mut at: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for event in &self.0 {
            let (before, after) = event.versions();
            let known = at.get(&(event.text("workspace"), event.id())).copied();
            if let (Some(known), Some(before)) = (known, before) {
                assert_eq!(known, before, "not made from the version before: {}", event.0);
            }
            if let Some(after) = after {
                assert!(after >= before.unwrap_or(0), "versions go back: {}", event.0);
                at.insert((event.text("workspace"), event.id()), after);
            }
        }
    }
}
