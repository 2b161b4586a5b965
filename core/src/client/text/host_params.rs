//! The members of a JSON object that a host gave, each read when it is needed. Types of their own would be read by code that is written out
//! for each of them, which the wasm would carry.

use std::borrow::Cow;

use crate::json::text_of;
use crate::policy::Error;
use crate::wire::members;

/// The given values of an operation.
pub(crate) struct HostParams<'a> {
    operation: &'static str,
    all: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> HostParams<'a> {
    /// Reads an object that was given as `field`.
    pub(crate) fn read(operation: &'static str, field: &str, json: &'a str) -> Result<Self, Error> {
        let all = members(json).map_err(|_| Error::invalid(operation, field, "must be a JSON object"))?;
        Ok(HostParams { operation, all })
    }

    /// A member, unless it is null.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.all.iter().find(|(known, _)| known == name).map(|(_, json)| *json).filter(|json| *json != "null")
    }

    /// A member that is a text.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Error> {
        let refuse = || self.refuse(name, "must be a string");
        self.get(name).map(|json| text_of(json).map(Cow::into_owned).ok_or_else(refuse)).transpose()
    }

    /// A member that is an object itself; an empty one where it is left out.
    pub(crate) fn object(&self, name: &str) -> Result<Self, Error> {
        HostParams::read(self.operation, name, self.all.iter().find(|(known, _)| known == name).map_or("{}", |(_, json)| *json))
    }

    /// All of them, in their order.
    pub(crate) fn into_all(self) -> Vec<(Cow<'a, str>, &'a str)> {
        self.all
    }

    /// Why a member is refused.
    pub(crate) fn refuse(&self, name: &str, rule: &str) -> Error {
        Error::invalid(self.operation, name, rule)
    }
}
