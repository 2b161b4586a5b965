//! A reseller's day: a sub-user is made and funded, a static order is placed for it, used, renewed and cancelled.

use std::time::Instant;

use hopline::client::Phase;
use hopline::contract::agent::Proxy;
use hopline::contract::reseller::{
    AdjustSubUserBalance, CancelStaticOrder, CreateStaticOrder, CreateUser, GetCurrentBalance, ListConsumption, ListSubUsers, OrderUnit,
    QueryProducts, RenewStaticOrder, StaticProduct,
};
use hopline::contract::{Api, Decimal, Json, Operation, Secret, StaticOrder};
use hopline::{CallOptions, Client, ClientOptions, drive};
use serde::Deserialize;

use crate::page::{Page, Tone, took};
use crate::sandbox::{Order, Sandbox};
use crate::tidy::Tidy;
use crate::web::{self, Shown};
use crate::{Told, ensure};

/// The funds of the sub-user, in USD.
const FUNDS: i64 = 50;

/// A client with its host, and what its steps cost.
struct Teller {
    client: Client,
    host: Shown,
    page: Page,
    steps: Vec<(&'static str, Instant, Instant)>,
}

/// A proxy of an order, as the sandbox's items show it: the contract leaves their fields open.
#[derive(Deserialize)]
struct Instance {
    ip: String,
    port: i64,
    username: Secret,
    password: Secret,
}

#[derive(Deserialize)]
struct Item {
    instances: Vec<Instance>,
}

pub(crate) fn tell(sandbox: &Sandbox, tidy: &Tidy) -> Told {
    let page = Page::new();
    page.title("hopline: a reseller's day");
    let (username, password) = sandbox.login();
    let options = ClientOptions {
        api: Api::Reseller,
        base_url: sandbox.backend_url().to_owned(),
        username: Some(Secret::new(username)),
        password: Some(Secret::new(password)),
        store: true,
        ..ClientOptions::default()
    };
    let client = Client::new(options, web::entropy()?)?;
    let mut teller = Teller { client, host: Shown::new(&tidy.folder()?, page)?, page, steps: Vec::new() };

    let before = teller.balance()?;
    page.row("log in", format!("by itself, with the first call; the balance is {before:.2} USD"));

    let user = CreateUser { username: "anna".into(), password: Secret::new("demo-password"), ..CreateUser::default() };
    let made = teller.call("make", user, CallOptions::intent("anna"))?;
    let user_id = made.data.id.ok_or("the sub-user was to have a number")?;
    page.row("sub-user", format!("anna, number {user_id}"));
    let funds = AdjustSubUserBalance { user_id, amount: FUNDS.into(), remark: "demo".into() };
    teller.call("fund", funds, CallOptions::intent("anna-funds"))?;
    page.row("fund", format!("{FUNDS} USD from the reseller's own balance"));

    let (product, offered) = teller.choose()?;
    let price = product.price.ok_or("the product was to have a price")?;
    let (name, stock) = (product.name.clone().unwrap_or_default(), product.stock.unwrap_or_default());
    page.row("product", format!("{name}, {price:.2} USD a month, {stock} left; {offered} products have stock"));

    let order = place(&mut teller, &product, user_id)?;
    let order_no = order.order_no.clone();
    let proxy = proxy_of(&order)?;
    let (host, port) = (proxy.host.clone().unwrap_or_default(), proxy.port.unwrap_or_default());
    page.row("proxies", format!("SOCKS5 at {host}:{port}, with a username and a password"));

    let start = Instant::now();
    let visit = web::visit(&sandbox.target_url(), &proxy)?;
    teller.steps.push(("fetch", start, Instant::now()));
    page.toned(Tone::Good, "fetch", format!("the site answers {} to exit {}", visit.status, visit.from));

    let renewal = RenewStaticOrder {
        order_no: Some(order_no.clone()),
        duration: Some(30.into()),
        unit: Some(OrderUnit::Day),
        cycle_times: Some(1.into()),
        ..RenewStaticOrder::default()
    };
    teller.call("renew", renewal, CallOptions::intent("renewal-1"))?;
    page.row("renew", "30 days more, which count as one month");
    teller.call("cancel", CancelStaticOrder { order_no: order_no.clone() }, CallOptions::intent("cancel-1"))?;
    let refusal = web::visit(&sandbox.target_url(), &proxy).err().ok_or("the proxy of a cancelled order was to refuse")?;
    page.row("cancel", "the order is over, and its proxy refuses the password");

    teller.records(&order_no)?;
    teller.summary();
    check(sandbox, &mut teller, &order_no, user_id, price, before)?;
    ensure!(visit.status == 200, "the site was to answer 200");
    ensure!(refusal.to_string().contains("auth"), "the proxy was to refuse the password, but: {refusal}");
    page.toned(Tone::Good, "checked", "one login, one sub-user, one order, two charges; the service's own books say the same");
    page.gap();
    Ok(())
}

/// One address for a month, watched until it can be used.
fn place(teller: &mut Teller, product: &StaticProduct, user_id: i64) -> Told<StaticOrder> {
    let order = CreateStaticOrder {
        pool_id: product.product_id.as_deref().unwrap_or_default().to_owned(),
        user_id,
        ip_count: 1.into(),
        cycle_times: 1.into(),
        duration: 1.into(),
        unit: OrderUnit::Month,
        country_code: product.country_code.clone(),
        city_code: product.city_code.clone(),
        ..CreateStaticOrder::default()
    };
    let start = Instant::now();
    let placed = teller.client.place_order(order, CallOptions::intent("order-1"));
    let reply = drive(&mut teller.client, placed, &mut teller.host)?;
    teller.steps.push(("order", start, Instant::now()));
    ensure!(reply.phase == Phase::Ready, "the order was to be active");
    Ok(reply.order)
}

fn proxy_of(order: &StaticOrder) -> Told<Proxy> {
    let item: Item = order.items.first().ok_or("the list was to show the order")?.read()?;
    let instance = item.instances.into_iter().next().ok_or("the order was to have a proxy")?;
    Ok(Proxy {
        host: Some(instance.ip),
        port: Some(instance.port),
        username: Some(instance.username),
        password: Some(instance.password),
        ..Proxy::default()
    })
}

/// The service's own books, against what was told.
fn check(sandbox: &Sandbox, teller: &mut Teller, order_no: &str, user_id: i64, price: Decimal, before: Decimal) -> Told {
    let books = sandbox.state()?.backend;
    let orders: Vec<&Order> = books.static_orders.iter().filter(|order| order.user_id == user_id).collect();
    let [order] = orders.as_slice() else { return Err("the sub-user was to have one order".into()) };
    ensure!(order.order_no == order_no && order.status == "cancelled", "the order did not end as told");
    let paid: Vec<(&str, Decimal)> = books.entries.iter().map(|entry| (entry.kind.as_str(), entry.amount)).collect();
    let spent = Decimal(-price.0);
    ensure!(paid == [("adjustment", FUNDS.into()), ("purchase", spent), ("renewal", spent)], "the books have other entries: {paid:?}");
    let after = teller.balance()?;
    ensure!(before.0 - after.0 == Decimal::from(FUNDS).0, "the reseller's balance fell by another amount than {FUNDS} USD");
    Ok(())
}

impl Teller {
    /// Calls an operation and keeps how long it took.
    fn call<O: Operation>(&mut self, name: &'static str, operation: O, options: CallOptions) -> Told<hopline::client::Reply<O::Output>> {
        let start = Instant::now();
        let ticket = self.client.start(operation, options);
        let reply = drive(&mut self.client, ticket, &mut self.host)?;
        self.steps.push((name, start, Instant::now()));
        Ok(reply)
    }

    fn balance(&mut self) -> Told<Decimal> {
        #[derive(Deserialize)]
        struct Balance {
            balance: Decimal,
        }
        Ok(self.call("balance", GetCurrentBalance {}, CallOptions::default())?.raw.read::<Balance>()?.balance)
    }

    /// The cheapest product that has stock and needs no project, and how many have stock.
    fn choose(&mut self) -> Told<(StaticProduct, usize)> {
        let products = self.call("products", QueryProducts::default(), CallOptions::default())?.data.items;
        let has_stock = |product: &&StaticProduct| product.stock.is_some_and(|stock| stock > Decimal::from(0));
        let offered = products.iter().filter(has_stock).count();
        let plain = products.iter().filter(has_stock).filter(|product| !product.needs_project_id());
        Ok((plain.min_by_key(|product| product.price).cloned().ok_or("no product has stock")?, offered))
    }

    /// Shows the service's records of the sub-user, and the client's own.
    fn records(&mut self, order_no: &str) -> Told {
        let users = self.call("sub-users", ListSubUsers::default(), CallOptions::default())?.data.items;
        ensure!(users.len() == 1, "the reseller was to have one sub-user");
        let of_order = ListConsumption { order_no: Some(order_no.to_owned()), ..ListConsumption::default() };
        let items: Vec<Json> = self.call("records", of_order, CallOptions::default())?.data.items;
        #[derive(Deserialize)]
        struct Entry {
            r#type: String,
            amount: Decimal,
        }
        self.page.gap();
        self.page.faint(&format!("{:<24}{:<12}{:>12}", "the service's records", "kind", "USD"));
        for item in items.iter().rev() {
            let Entry { r#type, amount } = item.read()?;
            self.page.line(format!("{order_no:<24}{:<12}{amount:>12.2}", r#type));
        }
        self.page.gap();
        self.page.faint(&format!("{:<24}{:<24}", "the client's records", "operation"));
        let asked = self.client.saved(None);
        for saved in drive(&mut self.client, asked, &mut self.host)?.entries {
            self.page.line(format!("{:<24}{:<24}accepted", saved.intent.unwrap_or_default(), saved.operation));
        }
        Ok(())
    }

    fn summary(&self) {
        self.page.gap();
        self.page.faint(&format!("{:<11}{:>8}", "step", "time"));
        for (name, start, end) in &self.steps {
            self.page.line(format!("{name:<11}{:>8}", took(*end - *start)));
        }
        self.page.gap();
    }
}
