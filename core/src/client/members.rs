//! The members of a JSON object that a host gave, each read when it is needed. Types of their own would be read by code that is written out
//! for each of them, which the wasm would carry.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::policy::Error;
use crate::wire::members;

/// What was given to an operation.
pub(super) struct Members<'a> {
    operation: &'static str,
    all: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Members<'a> {
    /// Reads an object that was given as `field`.
    pub(super) fn read(operation: &'static str, field: &str, json: &'a str) -> Result<Self, Error> {
        let all = members(json).map_err(|_| Error::invalid(operation, field, "must be a JSON object"))?;
        Ok(Members { operation, all })
    }

    /// A member, unless it is null.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.all.iter().find(|(known, _)| known == name).map(|(_, raw)| *raw).filter(|raw| raw.get() != "null")
    }

    /// A member that is a text.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Error> {
        let text = self.get(name).map(|raw| serde_json::from_str(raw.get())).transpose();
        text.map_err(|_| self.refuse(name, "must be a string"))
    }

    /// A member that is an object itself; an empty one where it is left out.
    pub(super) fn object(&self, name: &str) -> Result<Self, Error> {
        Members::read(self.operation, name, self.all.iter().find(|(known, _)| known == name).map_or("{}", |(_, raw)| raw.get()))
    }

    /// All of them, in their order.
    pub(super) fn into_all(self) -> Vec<(Cow<'a, str>, &'a RawValue)> {
        self.all
    }

    /// Why a member is refused.
    pub(super) fn refuse(&self, name: &str, rule: &str) -> Error {
        Error::invalid(self.operation, name, rule)
    }
}
