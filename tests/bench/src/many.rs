//! Many sessions in one client: what one of them takes of memory, and whether an event takes longer beside many.

use cap::Cap;
use hopline::client::CallOptions;

use crate::rounds::{Beside, Contender, Row, Scale, rounds};
use crate::service::Service;
use crate::spaced;

#[global_allocator]
static ALLOCATED: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

/// The live bytes.
pub(crate) fn allocated() -> usize {
    ALLOCATED.allocated()
}

/// The live bytes for each of so many, beyond those before.
pub(crate) fn each(before: usize, many: u32) -> f64 {
    allocated().saturating_sub(before) as f64 / f64::from(many)
}

pub(crate) fn memory(scale: Scale) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |work: String, figure: f64, goal| rows.push(Row { work, figures: vec![figure], unit: "B", beside: None, goal });
    for named in [false, true] {
        let whose = if named { ", with an intent" } else { "" };
        for many in [1_000, 10_000, 100_000].map(|many| scale.many(many)) {
            let before = allocated();
            let mut service = Service::waiting(many, named);
            let of = format!("of {}{whose}", spaced(many));
            row(format!("memory of a waiting session, {of}"), each(before, many), Some(512.0));

            service.pass(60_000);
            service.drain();
            assert_eq!(service.sends, 2 * many, "each was bought and read once");
            row(format!("memory of a waiting session that was read, {of}"), each(before, many), Some(512.0));

            service.status = "active";
            service.pass(60_000);
            let (completed, _) = service.drain();
            assert_eq!(completed.len(), many as usize, "each is ready");
            completed.iter().for_each(|command| drop(service.client.take_answer(*command)));
            drop(completed);
            row(format!("memory of a session that is held, {of}"), each(before, many), None);
        }
    }
    rows
}

/// The same event beside few sessions and beside many.
pub(crate) fn events(scale: Scale) -> Vec<Row> {
    let sizes = [100, 10_000, 100_000].map(|many| scale.many(many));
    let mut small: Vec<Service> = sizes.iter().map(|many| Service::waiting(*many, true)).collect();
    let mut reads: Vec<Service> = sizes.iter().map(|many| Service::waiting(*many, true)).collect();
    let mut rows =
        compare(scale, "a small call", "waiting", sizes, small.iter_mut().map(|service| Box::new(|| small_call(service)) as _).collect());
    rows.extend(compare(
        scale,
        "a read of a waiting session",
        "waiting",
        sizes,
        reads.iter_mut().map(|service| Box::new(|| next_read(service)) as _).collect(),
    ));
    rows
}

pub(crate) fn compare(scale: Scale, what: &str, how: &str, sizes: [u32; 3], mut contenders: Vec<Contender<'_>>) -> Vec<Row> {
    let times = rounds(scale, &mut contenders);
    let row = |(times_of, many): (&Vec<f64>, u32)| Row {
        work: format!("{what}, beside {} {how} sessions", spaced(many)),
        figures: times_of.clone(),
        unit: "µs",
        beside: Some(Beside { what: format!("beside {}", spaced(sizes[0])), figures: times[0].clone() }),
        goal: Some(1.3),
    };
    times.iter().zip(sizes).skip(1).map(row).collect()
}

fn small_call(service: &mut Service) -> u32 {
    let command = service.client.start_json("get_balance", "{}", CallOptions::default());
    assert_eq!(service.drain().0, [command]);
    service.client.take_answer(command).expect("it has completed").expect("it was answered");
    1
}

/// Lets time pass until the next session is to be read.
fn next_read(service: &mut Service) -> u32 {
    let before = service.sends;
    let (_, until) = service.drain();
    service.pass(until.expect("sessions are waited for") - service.now.monotonic);
    service.drain();
    service.sends - before
}
