//! The whole life of an account: its budget, prices, a session that is bought for no more than it was quoted, used, moved to
//! another exit when a site blocks it, and ended; and what all of it cost. Killed at any moment and started again, it goes on
//! with the same purchase, which the folder `hopline-records` remembers. The example `ureq` sends its requests.
//!
//!     HOPLINE_BASE_URL=… HOPLINE_API_KEY=… cargo run --example account

use std::error::Error;

use hopline::client::{Host, OpenSession, Outputs, Phase, Position, Seen, SessionReply, Ticket, Verdict};
use hopline::contract::agent::{
    CreateSession, GetAccount, GetBalance, GetBudget, GetSessionHealth, ListProducts, ListTransactions, Product, ProductFilter,
    ReportSessionEvent, RotateSession, SessionType, TerminateSession,
};
use hopline::policy::quote;
use hopline::{CallOptions, Client, ClientOptions, drive};
use ureq_example::{Ureq, entropy, intent, options};

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

impl Account {
    /// The session of this job: the one that an earlier run bought, or may have bought, before one is chosen and bought. A
    /// product that is chosen anew may be another one, and one intent stands for one request.
    fn session(&mut self) -> Result<SessionReply, Box<dyn Error>> {
        let options = CallOptions::default();
        let earlier = Ticket::<Option<OpenSession>>::of(self.0.resume_intent(&intent(), options.clone()));
        if let Some(earlier) = self.wait(earlier)? {
            return Ok(earlier);
        }
        let products = self.products()?;
        let cheapest = products.iter().filter(|product| product.available).min_by_key(|product| product.price);
        let quoted = quote(cheapest.ok_or("no dynamic product is available; try again later")?, "0.5".parse()?)?;
        println!("{} {} of {} cost {} {}", quoted.quantity, quoted.unit, quoted.product_no, quoted.total, quoted.currency);
        let wanted = CreateSession {
            session_type: SessionType::Dynamic,
            product_no: quoted.product_no,
            quantity: Some(quoted.quantity),
            ..CreateSession::default()
        };
        let bought = CallOptions { intent: Some(intent()), max_unit_price: Some(quoted.unit_price), ..options };
        let bought = self.0.open_session(wanted, bought);
        Ok(self.wait(bought)?)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // All clients of this folder together buy for no more than that in a UTC day. The account's own `daily_limit_usd` holds everywhere.
    let options = ClientOptions { daily_cap_usd: Some(50.into()), ..options()? };
    let mut account = Account(Client::new(options, entropy()?)?, Ureq::new("hopline-records")?);

    let read = account.0.start(GetAccount {}, CallOptions::default());
    println!("account {}", account.wait(read)?.api_key_prefix.as_deref().unwrap_or("without a prefix"));
    let read = account.0.start(GetBudget {}, CallOptions::default());
    println!("its budget is {}", account.wait(read)?.raw.text());

    let open = account.session()?;
    let session_id = open.session_id;
    println!("{session_id} is {:?}", open.phase);
    if open.phase != Phase::Ready {
        return Err(format!("{session_id} is {} and can't be used; look at it before buying again", open.session.status).into());
    }

    // Tell what was met, and do as advised. The contract does not document the members of an event, so these are our own.
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
    println!("the balance is now {}", account.wait(read)?.raw.text());
    let read = account.0.start(ListTransactions {}, CallOptions::default());
    println!("transactions: {}", account.wait(read)?.raw.text());
    Ok(())
}
