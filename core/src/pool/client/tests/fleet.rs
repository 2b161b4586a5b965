//! Several clients of one pool on one store, and the service that they share.

use super::*;

struct Fleet {
    hosts: Vec<Host>,
    pools: Vec<u32>,
    made: u8,
}

impl Fleet {
    /// Clients that have opened the pool, one after the other.
    fn new(clients: usize, open: &OpenPool) -> Fleet {
        let mut fleet = Fleet { hosts: Vec::new(), pools: Vec::new(), made: 0 };
        (0..clients).for_each(|_| fleet.begin(Some(100), open));
        fleet
    }

    /// Another client opens the pool.
    fn begin(&mut self, cap: Option<i64>, open: &OpenPool) {
        self.made += 1;
        let seed = std::array::from_fn(|at| self.made.wrapping_mul(31).wrapping_add(at as u8 * 7));
        let mut host = Host { number: u32::from(self.made), ..Host::seeded(cap, seed) };
        if let Some(first) = self.hosts.first() {
            host.now = first.now;
        }
        self.hosts.push(host);
        let at = self.hosts.len() - 1;
        let ticket = self.hosts[at].client.open_pool(open.clone());
        self.pass(1000);
        let opened = self.hosts[at].client.take(ticket).expect("has completed").expect("can be opened");
        self.pools.push(opened.pool);
    }

    /// A client is gone, and its claims with it.
    fn dies(&mut self, at: usize) {
        assert!(at > 0, "the first one keeps what all share");
        let number = self.hosts[at].number;
        self.turn(0, |host| host.disk.call_of(number, StoreCall::Release { names: None }, host.now.unix, host.now.monotonic));
        self.hosts.remove(at);
        self.pools.remove(at);
    }

    /// What all clients share is with this one.
    fn turn<T>(&mut self, at: usize, act: impl FnOnce(&mut Host) -> T) -> T {
        let swap = |hosts: &mut [Host]| {
            let (first, rest) = hosts.split_first_mut().expect("there is one");
            if let Some(host) = at.checked_sub(1).map(|at| &mut rest[at]) {
                std::mem::swap(&mut first.disk, &mut host.disk);
                std::mem::swap(&mut first.sessions, &mut host.sessions);
                std::mem::swap(&mut first.bought, &mut host.bought);
                std::mem::swap(&mut first.log, &mut host.log);
            }
        };
        swap(&mut self.hosts);
        let done = act(&mut self.hosts[at]);
        swap(&mut self.hosts);
        done
    }

    fn pass(&mut self, ms: Millis) {
        let until = self.hosts[0].now.monotonic + ms;
        loop {
            let next = (0..self.hosts.len()).filter_map(|at| self.turn(at, Host::go_on)).min();
            let now = self.hosts[0].now.monotonic;
            if now >= until {
                return;
            }
            let next = next.filter(|next| *next <= until).unwrap_or(until).max(now + 1);
            self.hosts.iter_mut().for_each(|host| host.wait_until(next));
        }
    }

    fn each(&mut self, change: impl Fn(&mut Host)) {
        self.hosts.iter_mut().for_each(change);
    }

    fn acquire_for(&mut self, at: usize, timeout_ms: Millis) -> CommandId {
        let pool = self.pools[at];
        self.hosts[at].acquire_for(pool, timeout_ms)
    }

    fn bought(&self) -> usize {
        self.hosts[0].bought
    }

    fn hold(&self, at: usize) -> Option<&'static str> {
        self.hosts[at].status(self.pools[at]).hold.map(|hold| hold.reason.as_str())
    }
}

const HOUR: Millis = 3_600_000;

fn of_size(size: u32) -> OpenPool {
    OpenPool { size, ..shop() }
}

#[test]
fn what_a_person_says_takes_effect_while_a_trial_goes_on() {
    let mut fleet = Fleet::new(2, &of_size(4));
    fleet.each(|host| host.slow = true);
    fleet.acquire_for(0, HOUR);
    fleet.pass(10_000);
    assert_eq!(fleet.bought(), 1);
    let pool = fleet.pools[1];
    let paused = fleet.hosts[1].client.start_json("pause_pool", &format!(r#"{{"pool":{pool}}}"#), CallOptions::default());
    fleet.pass(5000);
    assert!(fleet.hosts[1].client.take_answer(paused).is_some_and(|paused| paused.is_ok()), "is paused within 5 s");
    fleet.pass(5000);
    assert_eq!([0, 1].map(|at| fleet.hold(at)), [Some("paused"); 2]);
    fleet.pass(HOUR);
    assert_eq!(fleet.bought(), 1);
}

#[test]
fn one_is_bought_first_by_all_clients_and_then_eight_at_once() {
    let mut fleet = Fleet::new(3, &of_size(40));
    fleet.each(|host| host.slow = true);
    let waits: Vec<CommandId> = (0..36).map(|which| fleet.acquire_for(which % 3, HOUR)).collect();
    fleet.pass(20_000);
    assert_eq!(fleet.bought(), 1);
    fleet.hosts[0].sessions[0].0 = "active";
    fleet.pass(20_000);
    assert_eq!(fleet.bought(), 25, "eight more by each");
    fleet.hosts[0].sessions.iter_mut().for_each(|session| session.0 = "active");
    fleet.each(|host| host.slow = false);
    fleet.pass(60_000);
    assert_eq!(fleet.bought(), 36);
    assert!(waits.iter().enumerate().all(|(which, command)| !fleet.hosts[which % 3].client.is_pending(*command)));
}

#[test]
fn sessions_that_never_become_ready_are_bought_ever_less_often() {
    let mut fleet = Fleet::new(2, &of_size(8));
    fleet.each(|host| host.slow = true);
    for which in 0..8 {
        fleet.acquire_for(which % 2, 24 * HOUR);
    }
    fleet.pass(290_000);
    assert_eq!((fleet.bought(), fleet.hold(1)), (1, None));
    fleet.pass(20_000);
    assert_eq!((fleet.bought(), fleet.hold(1)), (1, Some("not_ready")));
    // One a minute later, and one two minutes after that one was not ready in five, and one four minutes later.
    fleet.pass(1_500_000);
    assert_eq!(fleet.bought(), 4);
}

#[test]
fn a_key_that_may_buy_and_not_read_buys_two_at_most() {
    let mut fleet = Fleet::new(2, &of_size(8));
    fleet.each(|host| host.reads_fail = true);
    for which in 0..8 {
        fleet.acquire_for(which % 2, 24 * HOUR);
    }
    fleet.pass(60_000);
    assert_eq!(fleet.hold(1), Some("not_ready"));
    fleet.pass(HOUR);
    assert!(fleet.bought() <= 2, "{}", fleet.bought());
    // Once they can be read, all get theirs.
    fleet.each(|host| host.reads_fail = false);
    fleet.pass(300_000);
    assert_eq!((fleet.bought(), fleet.hold(0)), (8, None));
}

#[test]
fn a_trial_goes_on_with_another_client_where_its_own_is_gone() {
    let mut fleet = Fleet::new(2, &of_size(4));
    fleet.each(|host| host.slow = true);
    fleet.acquire_for(1, HOUR);
    fleet.pass(10_000);
    let waits = fleet.acquire_for(0, HOUR);
    fleet.pass(10_000);
    assert_eq!(fleet.bought(), 1);
    // What it has bought is found by the other one, which buys nothing beside it.
    fleet.dies(1);
    fleet.hosts[0].sessions[0].0 = "active";
    fleet.pass(60_000);
    assert_eq!((fleet.bought(), fleet.hosts[0].lease_of(waits).is_ok()), (1, true));
}

#[test]
fn a_limit_of_one_client_is_no_hold_of_another() {
    let mut fleet = Fleet::new(1, &of_size(8));
    fleet.begin(Some(100), &OpenPool { daily_cap_usd: "1".parse().ok(), ..of_size(8) });
    let small: Vec<CommandId> = (0..3).map(|_| fleet.acquire_for(1, 2 * HOUR)).collect();
    fleet.pass(60_000);
    assert_eq!([0, 1].map(|at| fleet.hold(at)), [None, Some("cap")]);
    let large: Vec<CommandId> = (0..4).map(|_| fleet.acquire_for(0, 60_000)).collect();
    fleet.pass(60_000);
    assert!(large.into_iter().all(|command| fleet.hosts[0].lease_of(command).is_ok()));
    assert_eq!(small.iter().filter(|command| fleet.hosts[1].client.is_pending(**command)).count(), 2);
}

#[test]
fn a_code_that_nobody_knows_stops_nothing_for_long() {
    for (status, code) in [(503, "MAINTENANCE"), (429, "TOO_MANY_PURCHASES"), (409, "COUNTRY_OUT_OF_STOCK")] {
        let mut fleet = Fleet::new(2, &of_size(4));
        fleet.each(|host| host.answer = Some((status, refused(code).1)));
        fleet.acquire_for(0, 1000);
        fleet.pass(20_000);
        fleet.each(|host| host.answer = None);
        let waits = fleet.acquire_for(1, HOUR);
        fleet.pass(900_000);
        assert!(fleet.hosts[1].lease_of(waits).is_ok(), "{code} {:?}", fleet.hold(1));
    }
}

#[test]
fn sessions_that_do_not_live_are_counted_by_all_clients_and_through_restarts() {
    let mut fleet = Fleet::new(1, &of_size(4));
    for _ in 0..72 {
        fleet.begin(Some(100), &of_size(4));
        let mut lease = None;
        for _ in 0..10 {
            let command = fleet.acquire_for(1, 29_000);
            fleet.pass(25_000);
            // Whatever there is is over after 25 s.
            lease = if fleet.hosts[1].client.is_pending(command) { lease } else { fleet.hosts[1].lease_of(command).ok().or(lease) };
            fleet.hosts[0].sessions.iter_mut().for_each(|session| session.0 = "terminated");
            let Some(held) = &lease else { continue };
            let now = fleet.hosts[1].now;
            fleet.hosts[1].see(held, Seen::Status(407));
            fleet.hosts[1].client.give_back(held, now);
            fleet.pass(4000);
        }
        fleet.dies(1);
    }
    assert!(fleet.bought() <= 20, "{}", fleet.bought());
}

#[test]
fn sessions_that_fail_one_after_the_other_are_not_replaced_for_long() {
    let open = OpenPool { replace: Some(PoolReplace::Failing), ..of_size(2) };
    let mut fleet = Fleet::new(1, &open);
    let pool = fleet.pools[0];
    // All exits are blocked for one target, and nothing else is asked for.
    for _ in 0..120 {
        let target = Some("shop".to_owned());
        let command =
            fleet.hosts[0].client.acquire(AcquireLease { pool, target, timeout_ms: Some(14_000), ..AcquireLease::default() }).command;
        fleet.pass(15_000);
        let Ok(lease) = fleet.hosts[0].lease_of(command) else { continue };
        fleet.hosts[0].see(&lease, Seen::Status(403));
        let now = fleet.hosts[0].now;
        fleet.hosts[0].client.give_back(&lease, now);
    }
    assert!(fleet.bought() <= 5, "{}", fleet.bought());
}

#[test]
fn who_waits_for_a_purchase_takes_over_what_others_give_back_meanwhile() {
    let mut fleet = Fleet::new(2, &of_size(4));
    let first = fleet.acquire_for(0, HOUR);
    fleet.pass(5000);
    fleet.each(|host| host.slow = true);
    let waits = fleet.acquire_for(1, HOUR);
    fleet.pass(5000);
    assert_eq!((fleet.bought(), fleet.hosts[1].client.is_pending(waits)), (2, true));
    let lease = fleet.turn(0, |host| host.lease_of(first)).expect("is lent");
    let (pool, now) = (fleet.pools[0], fleet.hosts[0].now);
    fleet.hosts[0].client.give_back(&lease, now);
    fleet.hosts[0].close(pool);
    fleet.pass(4000);
    assert_eq!((fleet.bought(), fleet.hosts[1].client.is_pending(waits)), (2, false));
}
