//! A session's whole life: bought, used, blocked, rotated, used again, ended.

use std::time::{Duration, Instant};

use hopline::client::{Phase, Seen, Verdict};
use hopline::contract::agent::{
    CreateSession, GetBalance, ListProducts, Product, ProductFilter, RotateReason, RotateSession, SessionType, TerminateSession,
};
use hopline::contract::{Decimal, Secret};
use hopline::{CallOptions, Client, ClientOptions, drive};
use serde::Deserialize;

use crate::page::{Page, Tone, took};
use crate::sandbox::Sandbox;
use crate::tidy::Tidy;
use crate::web::{self, Shown};
use crate::{Told, ensure};

/// The intent of every purchase here.
pub(crate) const INTENT: &str = "demo";

/// A client with its host, and what its steps cost.
struct Teller {
    client: Client,
    host: Shown,
    page: Page,
    balance: Decimal,
    steps: Vec<Step>,
}

struct Step {
    name: &'static str,
    time: Duration,
    cost: Decimal,
    balance: Decimal,
}

pub(crate) fn tell(sandbox: &Sandbox, tidy: &Tidy) -> Told {
    let page = Page::new();
    page.title("hopline: a session's whole life");
    let mut teller = Teller::new(sandbox, tidy, page)?;
    sandbox.block_first_exit()?;
    let before = teller.balance;
    page.row("balance", format!("{before:.2} USD"));

    let start = Instant::now();
    let (request, price) = teller.choose()?;
    let bought = teller.client.open_session(request, CallOptions::intent(INTENT));
    let open = drive(&mut teller.client, bought, &mut teller.host)?;
    ensure!(open.phase == Phase::Ready, "the session is {} where it was to be active", open.session.status);
    let (id, mut proxy) = (open.session_id, open.session.proxy.unwrap_or_default());
    let place = (proxy.host.as_deref().unwrap_or_default(), proxy.port.unwrap_or_default());
    page.row("proxy", format!("SOCKS5 at {}:{}, with a username and a password", place.0, place.1));
    teller.done("buy 1 GB", start)?;

    let start = Instant::now();
    let first = web::visit(&sandbox.target_url(), &proxy)?;
    page.toned(Tone::Bad, "fetch", format!("the site answers {} to exit {}", first.status, first.from));
    let seen = Seen::Status(first.status);
    teller.done("fetch", start)?;
    let now = hopline::client::Host::now(&mut teller.host);
    let Some(Verdict::Rotate(reason)) = teller.client.observe(&id, seen, now) else {
        return Err(format!("a {} was to be a reason to rotate", first.status).into());
    };
    page.row("observe", format!("a block: rotate, with the reason {reason}"));
    ensure!(reason == RotateReason::Http403, "the reason was to be http_403");

    let start = Instant::now();
    let rotate = RotateSession { session_id: id.clone(), include_credentials: Some(true), reason: Some(reason) };
    let rotated = teller.client.start(rotate, CallOptions::default());
    proxy = drive(&mut teller.client, rotated, &mut teller.host)?.data.proxy.unwrap_or_default();
    page.row("rotate", "the session has another exit and another password");
    teller.done("rotate", start)?;

    let start = Instant::now();
    let second = web::visit(&sandbox.target_url(), &proxy)?;
    page.toned(Tone::Good, "fetch", format!("the site answers {} to exit {}", second.status, second.from));
    teller.done("fetch", start)?;

    let start = Instant::now();
    let ended = teller.client.start(TerminateSession { session_id: id.clone() }, CallOptions::default());
    drive(&mut teller.client, ended, &mut teller.host)?;
    let refusal = web::visit(&sandbox.target_url(), &proxy).err().ok_or("the proxy of an ended session was to refuse")?;
    page.row("terminate", "the session is over, and its proxy refuses the password");
    teller.done("terminate", start)?;

    teller.summary();
    let state = sandbox.state()?;
    let charged: Vec<_> =
        state.charges.iter().map(|charge| (charge.operation.as_str(), charge.session_id.as_str(), charge.amount)).collect();
    ensure!(charged == [("create_session", id.as_str(), price)], "the sandbox has other charges than the one of {price} USD");
    ensure!(
        state.balance == teller.balance && before.0 - state.balance.0 == price.0,
        "the balance fell by another amount than {price} USD"
    );
    let [session] = state.sessions.as_slice() else { return Err("the sandbox has more sessions than one".into()) };
    ensure!(session.session_id == id && session.status == "terminated" && session.rotations == 1, "the session did not end as told");
    ensure!((first.status, second.status) == (403, 200), "the site was to answer 403 and then 200");
    ensure!(first.from != second.from && session.exit == second.from, "the rotation was to change the exit");
    ensure!(refusal.to_string().contains("auth"), "the proxy was to refuse the password, but: {refusal}");
    page.toned(Tone::Good, "checked", "one session, one charge, two exits; the service's own books say the same");
    page.gap();
    Ok(())
}

impl Teller {
    fn new(sandbox: &Sandbox, tidy: &Tidy, page: Page) -> Told<Self> {
        let options = ClientOptions {
            base_url: sandbox.agent_url().to_owned(),
            api_key: Some(Secret::new(sandbox.api_key())),
            store: true,
            ..ClientOptions::default()
        };
        let client = Client::new(options, web::entropy()?)?;
        let host = Shown::new(&tidy.folder()?, page)?;
        let mut teller = Teller { client, host, page, balance: Decimal::default(), steps: Vec::new() };
        teller.balance = teller.read_balance()?;
        Ok(teller)
    }

    fn read_balance(&mut self) -> Told<Decimal> {
        #[derive(Deserialize)]
        struct Balance {
            balance: Decimal,
        }
        let read = self.client.start(GetBalance {}, CallOptions::default());
        Ok(drive(&mut self.client, read, &mut self.host)?.raw.read::<Balance>()?.balance)
    }

    /// A request for 1 GB of the cheapest dynamic product, and its price.
    fn choose(&mut self) -> Told<(CreateSession, Decimal)> {
        let (cheapest, offered) = cheapest(&mut self.client, &mut self.host)?;
        let Product { product_no, price, unit, .. } = &cheapest;
        self.page.row("cheapest", format!("{product_no} at {price:.2} USD a {unit}, of {offered} dynamic products"));
        Ok((purchase(&cheapest), *price))
    }

    /// A step is over: what did it cost?
    fn done(&mut self, name: &'static str, start: Instant) -> Told {
        let time = start.elapsed();
        let balance = self.read_balance()?;
        self.steps.push(Step { name, time, cost: Decimal(self.balance.0 - balance.0), balance });
        self.balance = balance;
        Ok(())
    }

    fn summary(&self) {
        self.page.gap();
        self.page.faint(&format!("{:<11}{:>8}{:>12}{:>14}", "step", "time", "cost USD", "balance USD"));
        for Step { name, time, cost, balance } in &self.steps {
            self.page.line(format!("{name:<11}{:>8}{cost:>12.2}{balance:>14.2}", took(*time)));
        }
        self.page.gap();
    }
}

/// The cheapest dynamic product that can be bought, and how many there are.
pub(crate) fn cheapest(client: &mut Client, host: &mut Shown) -> Told<(Product, usize)> {
    let wanted = ListProducts { r#type: Some(ProductFilter::Dynamic), limit: Some(100), ..ListProducts::default() };
    let listed = client.start(wanted, CallOptions::default());
    let products = drive(client, listed, host)?.data.items;
    let offered = products.iter().filter(|product| product.available).count();
    let cheapest = products.into_iter().filter(|product| product.available).min_by_key(|product| product.price);
    Ok((cheapest.ok_or("no dynamic product is available")?, offered))
}

/// 1 GB of a dynamic product.
pub(crate) fn purchase(product: &Product) -> CreateSession {
    CreateSession {
        session_type: SessionType::Dynamic,
        product_no: product.product_no.clone(),
        quantity: Some(1.into()),
        ..CreateSession::default()
    }
}
