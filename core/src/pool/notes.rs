//! The notes of a pool of a session, in the session's record, for whoever takes it over: it is true as long as the session has its exit.

use super::targets::SavedRest;
use crate::contract::{Json, json_of, stored};

/// The longest data of callers, in bytes of JSON.
pub(crate) const MOST_DATA: usize = 4096;

#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub(crate) struct SessionNotes {
    /// The generation of its exit.
    pub(crate) generation: u32,
    /// What was held against it.
    pub(crate) rests: Vec<SavedRest>,
    /// True if it is to be changed.
    pub(crate) due: bool,
    /// The callers' data.
    pub(crate) data: Option<Json>,
}
stored!(SessionNotes { generation, rests, due, data });

impl SessionNotes {
    /// Notes that can't be read are none.
    pub(crate) fn read(text: &str) -> Option<SessionNotes> {
        crate::json::read_json(text).ok()
    }

    /// Returns true if nothing is noted of the exit but its generation.
    pub(crate) fn is_empty(&self) -> bool {
        self.rests.is_empty() && !self.due && self.data.is_none()
    }

    /// None, where there is nothing to note.
    pub(crate) fn text(&self) -> Option<String> {
        (self.generation > 1 || !self.is_empty()).then(|| json_of(self))
    }
}

/// Why these data of callers can't be kept.
pub(crate) fn refusal(data: &str) -> Option<String> {
    // The notes have them two levels deeper, and are to be read.
    let is_object = crate::json::read_json::<Json>(&format!("[[{data}]]")).is_ok() && data.trim_start().starts_with('{');
    match data.len() {
        _ if !is_object => Some("must be an object of JSON".to_owned()),
        length if length > MOST_DATA => Some(format!("must be at most {MOST_DATA} bytes of JSON, and is {length}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_were_written_and_there_are_none_of_an_exit_like_any_other() {
        assert_eq!(SessionNotes { generation: 1, ..SessionNotes::default() }.text(), None);
        let notes = SessionNotes { generation: 3, due: true, data: Some(Json::checked(r#"{"a":[1]}"#)), ..SessionNotes::default() };
        assert_eq!(SessionNotes::read(&notes.text().expect("says something")), Some(notes));
        assert_eq!(["", "[]", "nonsense"].map(SessionNotes::read), [const { None }; 3]);
    }

    #[test]
    fn data_are_an_object_of_json_and_not_too_long() {
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(MOST_DATA));
        for (data, expected) in [
            ("{}", None),
            (r#" {"a":{"b":null}}"#, None),
            ("[]", Some("must be an object of JSON")),
            ("{", Some("must be an object of JSON")),
            (long.as_str(), Some("must be at most 4096 bytes of JSON, and is 4104")),
        ] {
            assert_eq!(refusal(data).as_deref(), expected, "{data}");
        }
    }
}
