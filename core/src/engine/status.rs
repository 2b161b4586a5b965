//! The statuses of sessions and orders: what each means for waiting, and for changes of a session.

use super::answer::Phase;

/// The status of a session that this client has ended. The service does not have this word.
pub(crate) const TERMINATED: &str = "terminated";

/// The ways in which a status ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    /// Not at all.
    No,
    /// Until it is renewed, which only a static session can be.
    UntilRenewed,
    /// For good.
    ForGood,
}

/// A status of a session.
struct SessionRow {
    status: &'static str,
    phase: Phase,
    over: Over,
    /// False if the service is known to refuse a rotation.
    rotates: bool,
    /// False if the service is known to refuse a renewal.
    renews: bool,
}

/// The statuses of sessions. NOT DOCUMENTED: any other status. Waiting goes on then, and an event reports it.
const SESSIONS: [SessionRow; 4] = [
    SessionRow { status: "creating", phase: Phase::Pending, over: Over::No, rotates: false, renews: false },
    SessionRow { status: "active", phase: Phase::Ready, over: Over::No, rotates: true, renews: true },
    SessionRow { status: "expired", phase: Phase::Ended, over: Over::UntilRenewed, rotates: false, renews: true },
    SessionRow { status: TERMINATED, phase: Phase::Ended, over: Over::ForGood, rotates: true, renews: true },
];

/// The statuses of static orders. NOT DOCUMENTED: any other status.
const ORDERS: [(&str, Phase); 2] = [("processing", Phase::Pending), ("active", Phase::Ready)];

fn session(status: Option<&str>) -> Option<&'static SessionRow> {
    SESSIONS.iter().find(|row| Some(row.status) == status)
}

/// The meaning of a session's status for waiting. The caller's own `ends` count for more than the contract's words.
pub(crate) fn phase_of(status: Option<&str>, ends: &[String]) -> Phase {
    if ends_by(status, ends) { Phase::Ended } else { session(status).map_or(Phase::Unknown, |row| row.phase) }
}

/// The meaning of an order's status for waiting.
pub(super) fn phase_of_order(status: Option<&str>, ends: &[String]) -> Phase {
    let known = ORDERS.iter().find(|(known, _)| Some(*known) == status);
    if ends_by(status, ends) { Phase::Ended } else { known.map_or(Phase::Unknown, |(_, phase)| *phase) }
}

fn ends_by(status: Option<&str>, ends: &[String]) -> bool {
    status.is_some_and(|status| ends.iter().any(|end| end.eq_ignore_ascii_case(status)))
}

/// Returns true if a session can never be usable again: a static one that has expired can still be renewed.
pub(crate) fn is_over_for_good(status: Option<&str>, session_type: Option<&str>) -> bool {
    session(status).is_some_and(|row| match row.over {
        Over::No => false,
        Over::UntilRenewed => session_type == Some("dynamic"),
        Over::ForGood => true,
    })
}

/// Returns true if a session is over, but could be renewed if it were static.
pub(crate) fn is_over_until_renewed(status: Option<&str>) -> bool {
    session(status).is_some_and(|row| row.over == Over::UntilRenewed)
}

/// Returns true if the service is known to refuse a rotation of a session with that status.
pub(crate) fn refuses_rotation(status: &str) -> bool {
    session(Some(status)).is_some_and(|row| !row.rotates)
}

/// Returns true if the service is known to refuse a renewal of a session with that status.
pub(crate) fn refuses_renewal(status: &str) -> bool {
    session(Some(status)).is_some_and(|row| !row.renews)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::agent::SessionStatus;
    use crate::contract::reseller::StaticOrderStatus;
    use crate::contract::{Shape, Shaped};

    fn words(shape: Shape) -> Vec<&'static str> {
        if let Shape::Word(list) = shape { list.words.iter().map(|word| word.word).collect() } else { Vec::new() }
    }

    #[test]
    fn each_status_of_the_contract_has_its_meaning_here() {
        let ours = |status: &&str| *status != TERMINATED;
        assert_eq!(words(SessionStatus::SHAPE), SESSIONS.iter().map(|row| row.status).filter(ours).collect::<Vec<_>>());
        assert_eq!(words(StaticOrderStatus::SHAPE), ORDERS.map(|(status, _)| status));
    }

    #[test]
    fn only_the_statuses_of_the_contract_and_of_the_caller_mean_something() {
        let phases =
            ["creating", "active", "expired", "terminated", "odd", "failed"].map(|status| phase_of(Some(status), &["failed".to_owned()]));
        assert_eq!(phases, [Phase::Pending, Phase::Ready, Phase::Ended, Phase::Ended, Phase::Unknown, Phase::Ended]);
        assert_eq!(phase_of(None, &[]), Phase::Unknown);
        // The caller's list counts for more than the contract's.
        assert_eq!(phase_of(Some("active"), &["active".to_owned()]), Phase::Ended);
        let phases = ["processing", "active", "odd", "Failed"].map(|status| phase_of_order(Some(status), &["failed".to_owned()]));
        assert_eq!(phases, [Phase::Pending, Phase::Ready, Phase::Unknown, Phase::Ended]);
    }

    #[test]
    fn a_static_session_that_has_expired_can_be_renewed() {
        for (status, dynamic, fixed) in
            [("active", false, false), ("expired", true, false), ("terminated", true, true), ("odd", false, false)]
        {
            let over = |kind| is_over_for_good(Some(status), Some(kind));
            assert_eq!((over("dynamic"), over("static")), (dynamic, fixed), "{status}");
        }
        assert_eq!(["creating", "active", "expired", "odd"].map(refuses_rotation), [true, false, true, false]);
        assert_eq!(["creating", "active", "expired", "odd"].map(refuses_renewal), [true, false, false, false]);
        assert!(is_over_until_renewed(Some("expired")) && !is_over_until_renewed(Some(TERMINATED)));
    }
}
