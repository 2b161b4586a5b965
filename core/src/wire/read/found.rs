//! The members of an answer's outermost object that the engine reads, as they are written.

/// The names of these members.
pub(crate) const NAMES: [&str; 11] = [
    "session_id",
    "order_id",
    "orderId",
    "order_no",
    "orderNo",
    "id",
    "status",
    "session_type",
    "estimated_charge_usd",
    "backend_ready",
    "next_cursor",
];

/// The members in the order of [`NAMES`]; a null member counts as absent.
pub(crate) type FactMembers<'a> = [Option<&'a str>; NAMES.len()];

/// The members, while they are looked for.
#[derive(Debug, Default)]
pub(super) struct FactSearch<'a> {
    members: FactMembers<'a>,
    seen: [bool; NAMES.len()],
    twice: bool,
}

impl<'a> FactSearch<'a> {
    /// Takes in a member, whatever its name.
    pub(super) fn note(&mut self, name: &str, json: &'a str) {
        let Some(at) = NAMES.iter().position(|known| *known == name) else { return };
        if let (Some(member), Some(seen)) = (self.members.get_mut(at), self.seen.get_mut(at)) {
            self.twice |= std::mem::replace(seen, true);
            *member = Some(json).filter(|json| *json != "null");
        }
    }

    /// The members that were found. If one of them came twice, all count as absent, since the right one can't be known.
    pub(super) fn members(self) -> FactMembers<'a> {
        if self.twice { FactMembers::default() } else { self.members }
    }
}
