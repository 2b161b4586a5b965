//! The shortest whole program. Killed at any moment and started again, it goes on with the same purchase; run again after its end, it buys the
//! next one, for no more than 20 USD a day. `machine` is the host that Hopline leaves to a program.

mod machine;
use machine::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("say which page to fetch")?;
    let mut account = Account::open("hopline-records", 20)?;
    let product = Some(Cheapest { max_unit_price: Some(5.into()), ..Cheapest::of(&SessionType::Dynamic) });
    let options = CallOptions { product, if_ended: Some(IfEnded::Buy), use_with: Some("ureq".into()), ..CallOptions::intent("prices") };
    let session = account.open_session(CreateSession { quantity: Some("0.5".parse()?), ..Default::default() }, options)?;
    let page = through(&session)?.get(&url).call()?;
    println!("{} for {} USD", page.status().as_u16(), session.charged_usd.unwrap_or_default());
    account.terminate(session)
}
