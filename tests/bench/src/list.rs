//! A list of 100 products: the whole call beside serde_json, which reads the same bytes into the same types.

use hopline::client::{CallOptions, Client, ClientOptions, Now, Outcome, Step};
use hopline::contract::Secret;
use hopline::contract::agent::{ListProducts, ProductList};
use serde::Deserialize;

use crate::rounds::{Beside, Contender, Row, Scale, rounds};

/// The list that all hosts read.
const BODY: &[u8] = include_bytes!("../products.json");

#[derive(Deserialize)]
struct Envelope {
    data: ProductList,
}

pub(crate) fn list(scale: Scale) -> Vec<Row> {
    let options =
        ClientOptions { base_url: "https://api.example/v1".into(), api_key: Some(Secret::new("key")), ..ClientOptions::default() };
    let mut client = Client::new(options, [7; 16]).expect("the options are sound");
    let mut contenders: Vec<Contender<'_>> = vec![
        Box::new(|| {
            assert_eq!(call(&mut client).items.len(), 100);
            1
        }),
        Box::new(|| {
            let read: Envelope = serde_json::from_slice(BODY).expect("it fits");
            assert_eq!(read.data.items.len(), 100);
            1
        }),
    ];
    let times = rounds(scale, &mut contenders);
    vec![Row {
        work: "a list of 100, the whole call".to_owned(),
        figures: times[0].clone(),
        unit: "µs",
        beside: Some(Beside { what: "serde_json into the same types".to_owned(), figures: times[1].clone() }),
        goal: None,
    }]
}

fn call(client: &mut Client) -> ProductList {
    let now = Now { unix: 1_700_000_000_000, monotonic: 0 };
    let ticket = client.start(ListProducts::default(), CallOptions::default());
    loop {
        match client.poll(now) {
            Step::Send { id, .. } => {
                let answer = Outcome::Response { status: 200, headers: &[], body: BODY, truncated: false };
                client.resolve(id, answer, now).expect("each step is answered once");
            }
            Step::Completed { .. } => return client.take(ticket).expect("it has completed").expect("it was answered").data,
            Step::Store { .. } | Step::Notify(_) | Step::Wait { .. } => {}
        }
    }
}
