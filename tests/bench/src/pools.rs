//! A pool with many sessions at hand: what one of them takes of memory, and whether lending one takes longer beside many.

use hopline::contract::agent::SessionType;
use hopline::contract::pools::{AcquireLease, OpenPool};

use crate::many::{allocated, compare, each};
use crate::rounds::{Row, Scale};
use crate::service::Service;
use crate::spaced;

/// A client with a pool of so many sessions, each of which is ready.
fn ready(sessions: u32) -> (Service, u32) {
    let mut service = Service::new(None);
    (service.status, service.with_proxies) = ("active", true);
    let open = OpenPool {
        name: "shop".into(),
        size: sessions,
        keep_ready: Some(sessions),
        session_type: SessionType::Dynamic,
        product_no: "dynamic-world".into(),
        daily_cap_usd: "1000000000".parse().ok(),
        expected_charge_usd: "1".parse().ok(),
        ..OpenPool::default()
    };
    let ticket = service.client.open_pool(open);
    let mut opened = None;
    for _ in 0..10_000_000 {
        let (_, until) = service.drain();
        opened = opened.or_else(|| service.client.take(ticket).map(|opened| opened.expect("can be opened").pool));
        let pool = opened.expect("is open at once");
        if bought_all(&service, sessions) && service.client.status(pool).is_some_and(|status| status.ready == sessions) {
            return (service, pool);
        }
        service.pass(until.map_or(1000, |until| (until - service.now.monotonic).clamp(1, 1000)));
    }
    panic!("the pool never has its sessions");
}

/// So often as sessions were bought, or more: how the pool is costs a look at each session.
fn bought_all(service: &Service, sessions: u32) -> bool {
    service.sends >= sessions
}

pub(crate) fn pools(scale: Scale) -> Vec<Row> {
    let mut rows = Vec::new();
    for many in [1_000, 10_000, 100_000].map(|many| scale.many(many)) {
        let before = allocated();
        let (service, _) = ready(many);
        let work = format!("memory of a ready session of a pool, of {}", spaced(many));
        rows.push(Row { work, figures: vec![each(before, many)], unit: "B", beside: None, goal: Some(512.0) });
        drop(service);
    }
    let sizes = [1_000, 100_000, 1_000_000].map(|many| scale.many(many));
    let mut pools: Vec<(Service, u32)> = sizes.iter().map(|many| ready(*many)).collect();
    let work = "a lease: acquired, a good answer observed, given back";
    let contenders = pools.iter_mut().map(|(service, pool)| Box::new(|| lease(service, *pool)) as _).collect();
    rows.extend(compare(scale, work, "ready", sizes, contenders));
    rows
}

fn lease(service: &mut Service, pool: u32) -> u32 {
    let command = service.client.acquire(AcquireLease { pool, ..AcquireLease::default() }).command;
    assert_eq!(service.drain().0, [command]);
    let lease = service.client.lease_of(command).expect("a session is free");
    service.client.take_answer(command).expect("it has completed").expect("it was granted");
    service.client.observe_lease(&lease, hopline::client::Seen::Status(200), None, service.now).expect("the lease is valid");
    assert!(service.client.give_back(&lease, service.now));
    service.drain();
    1
}
