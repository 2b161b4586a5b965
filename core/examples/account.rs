//! The whole life of an account: limits, prices, a session that is bought for no more than it was quoted, used, moved to
//! another exit when a site blocks it, and ended; a top-up, and what all of it cost. The example `ureq` sends its requests and
//! keeps its records, so it goes on with the same purchase and the same order when it is killed and started again.
//!
//!     HOPLINE_BASE_URL=… HOPLINE_API_KEY=… cargo run --example account

use std::error::Error;

use hopline::client::{Host, Outputs, Phase, Position, Seen, Ticket, Until, Verdict};
use hopline::contract::agent::{
    CreateRecharge, CreateSession, GetAccount, GetBalance, GetBudget, GetSessionHealth, ListProducts, ListTransactions, Product,
    ProductFilter, ReportSessionEvent, RotateSession, SessionType, TerminateSession, UpdateBudget,
};
use hopline::contract::{Decimal, Patch};
use hopline::policy::quote;
use hopline::{CallOptions, Client, ClientOptions, drive};
use serde::Deserialize;
use ureq_example::{Ureq, entropy, options};

#[path = "ureq.rs"]
#[allow(dead_code, reason = "it is a program of its own; only its transport and its store are used here")]
mod ureq_example;

/// A client and what sends for it.
struct Account(Client, Ureq);

impl Account {
    /// Waits for what was started.
    fn wait<O: Outputs>(&mut self, ticket: Ticket<O>) -> Result<O::Output, hopline::Error> {
        drive(&mut self.0, ticket, &mut self.1)
    }

    /// Every dynamic product that can be bought now, page by page.
    fn products(&mut self) -> Result<Vec<Product>, hopline::Error> {
        let (mut products, mut next) = (Vec::new(), Some(Position::start("list_products")?));
        while let Some(position) = next {
            let page = ListProducts { r#type: Some(ProductFilter::Dynamic), cursor: position.cursor.clone(), ..ListProducts::default() };
            let page = self.0.start(page, CallOptions::default());
            let page = self.wait(page)?;
            products.extend(page.data.items);
            // A list that never ends is left after 1000 pages, and one that comes back to an earlier page at once.
            let turn = position.turn(&page.facts);
            next = turn.position.filter(|_| turn.end.is_none());
        }
        Ok(products)
    }
}

/// What the service answers about a balance. Its members are not shown in the contract, so a program reads its own.
#[derive(Deserialize)]
struct Balance {
    balance: Decimal,
}

fn main() -> Result<(), Box<dyn Error>> {
    // This client buys for no more than that in a UTC day.
    let options = ClientOptions { daily_cap_usd: Some(50.into()), ..options()? };
    let mut account = Account(Client::new(options, entropy()?)?, Ureq::new("hopline-records")?);
    let records = account.1.folder.records()?;
    for (record, why) in account.0.restore(records).refused {
        eprintln!("left {record} alone: {why}");
    }

    let read = account.0.start(GetAccount {}, CallOptions::default());
    println!("account {}", account.wait(read)?.api_key_prefix.as_deref().unwrap_or("without a prefix"));
    // The account's own limits hold for all of its clients: what is left out stays, and null is sent as null.
    let limits = UpdateBudget { daily_limit_usd: Patch::Set(100.into()), key_limit_usd: Patch::Null, ..UpdateBudget::default() };
    let set = account.0.start(limits, CallOptions::default());
    account.wait(set)?;
    let read = account.0.start(GetBudget {}, CallOptions::default());
    println!("its budget is {}", account.wait(read)?.raw.text());

    let products = account.products()?;
    let cheapest = products.iter().filter(|product| product.available).min_by_key(|product| product.price);
    let quoted = quote(cheapest.ok_or("no dynamic product is available; try again later")?, "0.5".parse()?)?;
    println!("{} {} of {} cost {} {}", quoted.quantity, quoted.unit, quoted.product_no, quoted.total, quoted.currency);

    // The intent is our own name for this purchase: whoever starts it again gets the same session.
    let wanted = CreateSession {
        session_type: SessionType::Dynamic,
        product_no: quoted.product_no,
        quantity: Some(quoted.quantity),
        ..CreateSession::default()
    };
    let limited = CallOptions { credentials: true, max_unit_price: Some(quoted.unit_price), ..CallOptions::intent("job-17") };
    let bought = account.0.open_session(wanted, limited);
    let open = account.wait(bought)?;
    let session_id = open.session_id;
    println!("{session_id} is {:?}", open.phase);

    // Tell what was met, and do as advised. The members of an event are not shown in the contract, so these are our own.
    let event = r#"{"status":403,"latency_ms":120,"target":"shop.example"}"#.parse()?;
    let told = account.0.start(ReportSessionEvent { session_id: session_id.clone(), event }, CallOptions::default());
    account.wait(told)?;
    let now = account.1.now();
    if let Some(Verdict::Rotate(reason)) = account.0.observe(&session_id, Seen::Status(403), now) {
        let rotate = RotateSession { session_id: session_id.clone(), reason: Some(reason), ..RotateSession::default() };
        let rotated = account.0.start(rotate, CallOptions::default());
        println!("it has another exit and is {}", account.wait(rotated)?.status);
    }
    let read = account.0.start(GetSessionHealth { session_id: session_id.clone() }, CallOptions::default());
    println!("its health is {}", account.wait(read)?.raw.text());
    let ended = account.0.start(TerminateSession { session_id }, CallOptions::default());
    account.wait(ended)?;

    let read = account.0.start(GetBalance {}, CallOptions::default());
    let Balance { balance } = account.wait(read)?.raw.read()?;
    let wanted = CreateRecharge { amount_usd: Some(20.into()), ..CreateRecharge::default() };
    let ordered = account.0.start(wanted, CallOptions::intent("top-up-17"));
    let order = account.wait(ordered)?;
    println!("pay {} for the order {}", order.amount_usdt.ok_or("the order has no amount")?, order.order_id);
    let topped_up = Until { at: "/balance".into(), at_least: Some(Decimal(balance.0 + Decimal::from(20).0)), ..Until::default() };
    let watched = CallOptions { until: Some(topped_up), deadline_ms: Some(600_000), ..CallOptions::default() };
    let read = account.0.start(GetBalance {}, watched);
    if account.wait(read)?.phase != Some(Phase::Ready) {
        return Err(format!("the order {} is not paid yet; the balance says when it is", order.order_id).into());
    }
    println!("the top-up is there");
    let read = account.0.start(ListTransactions {}, CallOptions::default());
    println!("transactions: {}", account.wait(read)?.raw.text());
    Ok(())
}
