//! The target site: it tells each visitor the address it comes from, lists the visits, and refuses whom it is told to refuse.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

/// The visits of the target, and its rules. [`Target::default`] lets everybody in.
#[derive(Debug, Default, Serialize)]
pub(super) struct Target {
    blocked: BTreeSet<IpAddr>,
    /// True if the next proxy exit that comes is blocked from then on; set back to false by that visit.
    block_first_exit: bool,
    /// The requests that each exit has before it is blocked.
    block_after: Option<u32>,
    /// The time until which everybody is blocked.
    blocked_until_ms: Option<i64>,
    throttle: Throttle,
    /// The requests of each address.
    visits: BTreeMap<IpAddr, u32>,
    #[serde(skip)]
    log: VecDeque<Visit>,
}

/// The next requests that are answered 429.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Throttle {
    #[serde(default = "once")]
    times: u32,
    /// The header `Retry-After`, in seconds.
    #[serde(default = "once")]
    retry_after: u32,
}

/// A change of the rules. Omitted rules stay as they are.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Rules {
    clear: bool,
    block: Option<IpAddr>,
    block_first_exit: Option<bool>,
    block_after: Option<u32>,
    block_all_ms: Option<u32>,
    throttle: Option<Throttle>,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    pub(super) peer: SocketAddr,
    pub(super) tls: bool,
    pub(super) host: String,
    pub(super) method: String,
    pub(super) path: String,
}

/// A request that was answered.
#[derive(Debug, Serialize)]
pub(super) struct Visit {
    exit: IpAddr,
    /// The port of the exit, which tells one connection from another.
    connection: u16,
    tls: bool,
    host: String,
    method: String,
    path: String,
    status: u16,
    at_ms: i64,
}

/// The body of an answer.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Page {
    address: IpAddr,
    visits: u32,
    path: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    blocked: bool,
}

/// An answer of the site.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// The header `Retry-After`, in seconds.
    pub(super) retry_after: Option<u32>,
    pub(super) page: Page,
}

const fn once() -> u32 {
    1
}

impl Target {
    pub(super) fn change(&mut self, rules: Rules, now_ms: i64) {
        let Rules { clear, block, block_first_exit, block_after, block_all_ms, throttle } = rules;
        if clear {
            *self = Self::default();
        }
        self.blocked.extend(block);
        self.block_first_exit = block_first_exit.unwrap_or(self.block_first_exit);
        self.block_after = block_after.or(self.block_after);
        self.blocked_until_ms = block_all_ms.map(|ms| now_ms.saturating_add(ms.into())).or(self.blocked_until_ms);
        self.throttle = throttle.unwrap_or(self.throttle);
    }

    /// Answers a request. A block comes before a 429.
    pub(super) fn visit(&mut self, visitor: Visitor, now_ms: i64) -> Answer {
        let Visitor { peer, tls, host, method, path } = visitor;
        let address = peer.ip();
        let visits = self.visits.entry(address).or_default();
        *visits += 1;
        let visits = *visits;
        let is_exit = address != IpAddr::from(Ipv4Addr::LOCALHOST);
        if is_exit && (self.block_first_exit || self.block_after.is_some_and(|most| visits > most)) {
            self.blocked.insert(address);
            self.block_first_exit = false;
        }
        let blocked = self.blocked.contains(&address) || self.blocked_until_ms.is_some_and(|until| now_ms < until);
        let (status, retry_after) = if blocked {
            (StatusCode::FORBIDDEN, None)
        } else if let Some(left) = self.throttle.times.checked_sub(1) {
            self.throttle.times = left;
            (StatusCode::TOO_MANY_REQUESTS, Some(self.throttle.retry_after))
        } else {
            (StatusCode::OK, None)
        };
        let visit =
            Visit { exit: address, connection: peer.port(), tls, host, method, path: path.clone(), status: status.as_u16(), at_ms: now_ms };
        self.note(visit);
        Answer { status, retry_after, page: Page { address, visits, path, blocked } }
    }

    /// The last visits, the oldest first.
    pub(super) fn log(&self) -> &VecDeque<Visit> {
        &self.log
    }

    fn note(&mut self, visit: Visit) {
        const KEPT: usize = 10_000;
        self.log.push_back(visit);
        if self.log.len() > KEPT {
            self.log.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The statuses of visits, each `(last number of the address, time)`, under rules that hold from time 0.
    fn statuses(rules: &str, visits: &[(u8, i64)]) -> Vec<u16> {
        let mut target = Target::default();
        target.change(serde_json::from_str(rules).unwrap(), 0);
        let visit = |(exit, now_ms): &(u8, i64)| {
            let peer = SocketAddr::from(([127, 64, 0, *exit], 9));
            let visitor = Visitor { peer, tls: false, host: "shop.localhost".into(), method: "GET".into(), path: "/".into() };
            target.visit(visitor, *now_ms).status.as_u16()
        };
        visits.iter().map(visit).collect()
    }

    #[test]
    fn a_rule_decides_the_status_of_a_visit() {
        for (rules, visits, expected) in [
            ("{}", &[(1, 0), (1, 0)][..], &[200, 200][..]),
            (r#"{"block":"127.64.0.1"}"#, &[(1, 0), (2, 0), (1, 9)], &[403, 200, 403]),
            (r#"{"block_first_exit":true}"#, &[(1, 0), (2, 0), (1, 9)], &[403, 200, 403]),
            (r#"{"block_after":2}"#, &[(1, 0), (1, 0), (2, 0), (1, 0), (1, 9), (2, 9)], &[200, 200, 200, 403, 403, 200]),
            (r#"{"block_after":0}"#, &[(1, 0), (2, 0)], &[403, 403]),
            (r#"{"block_all_ms":10}"#, &[(1, 0), (2, 9), (1, 10), (2, 10)], &[403, 403, 200, 200]),
            (r#"{"throttle":{}}"#, &[(1, 0), (1, 0)], &[429, 200]),
            (r#"{"throttle":{"times":2,"retry_after":7}}"#, &[(1, 0), (2, 0), (1, 0)], &[429, 429, 200]),
            (r#"{"throttle":{"times":1},"block":"127.64.0.1"}"#, &[(1, 0), (2, 0), (2, 0)], &[403, 429, 200]),
        ] {
            assert_eq!(statuses(rules, visits), expected, "{rules}");
        }
    }

    #[test]
    fn omitted_rules_stay_and_clear_forgets_rules_and_visits() {
        let mut target = Target::default();
        let mut change = |rules: &str| {
            target.change(serde_json::from_str(rules).unwrap(), 5);
            serde_json::to_value(&target).unwrap()
        };
        change(r#"{"block_after":3,"block_all_ms":10}"#);
        let kept = change(r#"{"block":"127.64.0.1"}"#);
        assert_eq!((&kept["block_after"], &kept["blocked_until_ms"]), (&3.into(), &15.into()));
        assert_eq!(change(r#"{"clear":true}"#), serde_json::to_value(Target::default()).unwrap());
    }
}
