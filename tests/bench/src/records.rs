//! A purchase with an intent, beside the records of others in the same store.

use std::thread;

use hopline_store::{Error, Folder, Memory, Put, Store};

use crate::rounds::{Beside, Contender, Row, Scale, rounds};
use crate::service::Service;
use crate::spaced;

pub(crate) fn purchase(scale: Scale) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let folders = tempfile::tempdir()?;
    let folder = |number: usize| Folder::open(folders.path().join(number.to_string())).map(|store| Box::new(store) as Box<dyn Store>);
    let memory = |_| Ok(Box::new(Memory::new()) as Box<dyn Store>);
    let (folder, memory) = (beside_records(scale, "a folder", folder)?, beside_records(scale, "memory", memory)?);
    Ok(folder.into_iter().chain(memory).collect())
}

fn beside_records(scale: Scale, place: &str, open: impl Fn(usize) -> Result<Box<dyn Store>, Error>) -> Result<Vec<Row>, Error> {
    let sizes = [0, 10_000, 100_000].map(|many| scale.many(many));
    let mut services = Vec::new();
    for (number, size) in sizes.into_iter().enumerate() {
        let store = open(number)?;
        fill(&*store, size)?;
        let mut service = Service::new(Some(store));
        service.status = "active";
        services.push(service);
    }
    let mut contenders: Vec<Contender<'_>> = services.iter_mut().map(|service| Box::new(move || buy(service)) as Contender<'_>).collect();
    let times = rounds(scale, &mut contenders);
    let row = |(own, many): (&Vec<f64>, u32)| Row {
        work: format!("a purchase with an intent, beside {} records in {place}", spaced(many)),
        figures: own.clone(),
        unit: "µs",
        beside: Some(Beside { what: "beside 0".to_owned(), figures: times[0].clone() }),
        goal: Some(1.3),
    };
    Ok(times.iter().zip(sizes).skip(1).map(row).collect())
}

fn buy(service: &mut Service) -> u32 {
    let command = service.open(Some(format!("bought-{}", service.sends)));
    let mut completed = service.drain().0;
    if completed.is_empty() {
        // The session is read some time after its purchase.
        service.pass(60_000);
        completed = service.drain().0;
    }
    assert_eq!(completed, [command]);
    service.client.take_answer(command).expect("it has completed").expect("it was bought");
    1
}

/// Puts so many records, many at once: most of the time is the disk's.
fn fill(store: &dyn Store, size: u32) -> Result<(), Error> {
    const THREADS: u32 = 32;
    let data = [b'x'; 600];
    let put = |number| store.put(&name(number), &data, &Put { new: true, release: true, ..Put::default() }).map(drop);
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|first| scope.spawn(move || (first..size).step_by(THREADS as usize).try_for_each(put))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(Error::Failed("a thread ended".to_owned()))))
    })
}

/// A name that is spread as a hash is.
fn name(number: u32) -> String {
    let spread = u64::from(number).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("5e.r{spread:016x}{number:016x}")
}
