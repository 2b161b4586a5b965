//! The requests for names, each of which is claimed once for all of its requests.

use std::collections::VecDeque;

use crate::client::requests::NameRequest;
use crate::collections::Map;
use crate::state::{CommandId, Name};

/// All requests, by name, in the order in which they came.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct NameRequests(Map<Name, VecDeque<NameRequest>>);

impl NameRequests {
    pub(crate) fn push(&mut self, name: &Name, request: NameRequest) {
        self.0.get_or_insert_with(name.clone(), VecDeque::new).push_back(request);
    }

    pub(crate) fn are_for(&self, name: &Name) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn iter(&self, name: &Name) -> impl Iterator<Item = &NameRequest> {
        self.0.get(name).into_iter().flatten()
    }

    /// Takes the next one.
    pub(crate) fn next(&mut self, name: &Name) -> Option<NameRequest> {
        self.remove_at(name, 0)
    }

    /// Takes that of a command.
    pub(crate) fn remove(&mut self, name: &Name, command: CommandId) -> Option<NameRequest> {
        let at = self.iter(name).position(|request| request.command == Some(command))?;
        self.remove_at(name, at)
    }

    pub(crate) fn take_all(&mut self, name: &Name) -> VecDeque<NameRequest> {
        self.0.remove(name).unwrap_or_default()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    fn remove_at(&mut self, name: &Name, at: usize) -> Option<NameRequest> {
        let requests = self.0.get_mut(name)?;
        let request = requests.remove(at);
        if requests.is_empty() {
            self.0.remove(name);
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::requests::RequestKind;

    #[test]
    fn requests_are_taken_in_their_order_and_nothing_stays_of_a_name_without_any() {
        let mut requests = NameRequests::default();
        let [one, other] = ["1", "2"].map(|of| Name::from(format!("5e.r{of}")));
        for (name, command) in [(&one, 1), (&other, 2), (&one, 3), (&one, 4), (&one, 5)] {
            requests.push(name, NameRequest::new(Some(CommandId(command)), RequestKind::DropDoubt));
        }
        let number = |request: Option<NameRequest>| request.and_then(|request| request.command).map(|command| command.0);
        assert_eq!(number(requests.next(&one)), Some(1));
        assert_eq!(number(requests.remove(&one, CommandId(4))), Some(4));
        assert_eq!(number(requests.remove(&one, CommandId(4))), None);
        assert_eq!(number(requests.remove(&one, CommandId(2))), None, "it is of another name");
        assert_eq!(number(requests.next(&one)), Some(3));
        assert_eq!((number(requests.next(&one)), number(requests.next(&one)), requests.are_for(&one)), (Some(5), None, false));
        assert_eq!((requests.are_for(&other), requests.take_all(&other).len(), requests.len()), (true, 1, 0));
    }
}
