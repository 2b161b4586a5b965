//! The reseller contract on users, orders and money, as a client meets it: the service keeps each rule, and the client has to carry the
//! request there and the answer or the refusal back.

use hopline::contract::agent::RegisterAccount;
use hopline::contract::reseller::*;
use hopline::contract::{Api, Decimal, Operation, Secret};
use hopline::{CallOptions, ClientOptions, Effect, Kind};
use hopline_sandbox::Login;
use serde_json::{Value, json};

use crate::probe::{Http, Live, Probe};

/// A user with a login at the backend.
struct User(Probe);

impl User {
    fn new(live: &Live, username: &str, password: &str) -> Self {
        let options = ClientOptions {
            api: Api::Reseller,
            base_url: live.running.ready().backend_url.clone(),
            username: Some(Secret::new(username)),
            password: Some(Secret::new(password)),
            ..ClientOptions::default()
        };
        User(Probe::new(Http::Ureq, options))
    }

    /// The sandbox's reseller.
    fn reseller(live: &Live) -> Self {
        let ready = live.running.ready();
        Self::new(live, &ready.username, &ready.password)
    }

    /// Another reseller: whoever opens an account is one.
    fn other(live: &Live) -> Self {
        let mut agent = Probe::new(Http::Ureq, live.options());
        let ticket = agent.client.start(RegisterAccount { name: "other".to_owned(), ..RegisterAccount::default() }, CallOptions::default());
        agent.drive(ticket).expect("an account");
        let Login { username, password, .. } = live.running.with_service(|service, _| service.logins().pop()).expect("a login");
        Self::new(live, &username, &password)
    }

    /// The data of what must be done.
    fn done<O: Operation>(&mut self, request: O) -> Value {
        let ticket = self.0.client.start(request, CallOptions::default());
        let reply = self.0.drive(ticket).unwrap_or_else(|error| panic!("{error}"));
        serde_json::from_str(reply.raw.text()).expect("JSON")
    }

    /// The status of what the service must refuse, without an effect.
    fn refused<O: Operation>(&mut self, request: O) -> u16 {
        let ticket = self.0.client.start(request, CallOptions::default());
        let Err(error) = self.0.drive(ticket) else { panic!("{} was to be refused", O::ENDPOINT.name) };
        assert_eq!((error.kind, error.effect, error.attempts), (Kind::Refused, Effect::None, 1), "{error}");
        error.status.expect("a status")
    }

    /// The status with which the login is refused that a call needs.
    fn refused_at_login(&mut self) -> u16 {
        let ticket = self.0.client.start(GetCurrentBalance {}, CallOptions::default());
        let Err(error) = self.0.drive(ticket) else { panic!("the login was to be refused") };
        assert_eq!(error.cause.as_ref().map(|cause| cause.operation), Some("login"), "{error}");
        error.status.expect("a status")
    }

    /// A new sub-user with a balance.
    fn create(&mut self, username: &str, balance: i64) -> i64 {
        let user = CreateUser { balance: Some(Decimal::from(balance)), ..named(username) };
        self.done(user)["id"].as_i64().expect("a number")
    }

    /// A sub-user as the list has it, a deleted one too.
    fn user(&mut self, id: i64) -> Value {
        let users = self.done(ListSubUsers { include_deleted: Some(true), page_size: Some(100), ..ListSubUsers::default() });
        users["items"].as_array().expect("a list").iter().find(|user| user["id"] == id).expect("a user").clone()
    }

    /// Places a static order and gives it as the list has it.
    fn place(&mut self, order: CreateStaticOrder) -> Value {
        let number = self.done(order)["orderNo"].as_str().expect("a number").to_owned();
        self.order(&number)
    }

    fn order(&mut self, number: &str) -> Value {
        self.done(ListStaticOrders { search: Some(number.to_owned()), ..ListStaticOrders::default() })["items"][0].take()
    }
}

fn named(username: &str) -> CreateUser {
    CreateUser { username: username.to_owned(), password: Secret::new("secret-1"), ..CreateUser::default() }
}

/// One address for 30 days, priced by the service.
fn order(user_id: i64) -> CreateStaticOrder {
    CreateStaticOrder {
        pool_id: "static-us".to_owned(),
        user_id,
        ip_count: 1.into(),
        cycle_times: 1.into(),
        duration: 30.into(),
        unit: OrderUnit::Day,
        ..CreateStaticOrder::default()
    }
}

fn number(order: &Value) -> String {
    order["order_no"].as_str().expect("a number").to_owned()
}

#[test]
fn only_a_direct_subordinate_is_managed() {
    let live = Live::new();
    let (mut own, mut other) = (User::reseller(&live), User::other(&live));
    let (ann, bob) = (own.create("ann", 0), other.create("bob", 0));
    let before = other.user(bob);
    for stranger in [bob, 7] {
        assert_eq!(own.refused(AdjustSubUserBalance { user_id: stranger, amount: Decimal::from(1), remark: "a gift".to_owned() }), 403);
        let edit = EditSubUserAccount { user_id: stranger, password: Some(Secret::new("secret-2")), ..EditSubUserAccount::default() };
        assert_eq!(own.refused(edit), 403);
        assert_eq!(own.refused(SetSubUserStatus { user_id: stranger, status: SubUserSwitch::Disabled }), 403);
        assert_eq!(own.refused(DeleteSubUser { user_id: stranger }), 403);
    }
    assert_eq!(other.user(bob), before);
    own.done(SetSubUserStatus { user_id: ann, status: SubUserSwitch::Disabled });
    own.done(DeleteSubUser { user_id: ann });
    assert_eq!(own.user(ann)["status"], "deleted");
}

#[test]
fn a_balance_is_never_below_0_after_a_deduction() {
    let live = Live::new();
    let mut own = User::reseller(&live);
    let ann = own.create("ann", 5);
    let by = |amount| AdjustSubUserBalance { user_id: ann, amount: Decimal::from(amount), remark: "moved".to_owned() };
    assert_eq!((own.refused(by(-6)), own.user(ann)["balance"].as_f64()), (400, Some(5.0)));
    own.done(by(-5));
    assert_eq!((own.refused(by(-1)), own.user(ann)["balance"].as_f64()), (400, Some(0.0)));
}

#[test]
fn a_name_is_one_users_only() {
    let live = Live::new();
    let (mut own, mut other) = (User::reseller(&live), User::other(&live));
    let (_, bob) = (own.create("ann", 0), own.create("bob", 0));
    assert_eq!((own.refused(named("ann")), other.refused(named("ann"))), (422, 422));
    let taken = EditSubUserAccount { user_id: bob, username: Some("ann".to_owned()), ..EditSubUserAccount::default() };
    assert_eq!((own.refused(taken), own.user(bob)["username"].clone()), (422, json!("bob")));
}

#[test]
fn an_edit_changes_the_login_and_nothing_else() {
    let live = Live::new();
    let mut own = User::reseller(&live);
    let ann = own.create("ann", 5);
    let before = own.user(ann);
    let edit = EditSubUserAccount { user_id: ann, username: Some("anna".to_owned()), password: Some(Secret::new("secret-2")) };
    own.done(edit);
    let mut after = own.user(ann);
    assert_eq!(after["username"].take(), "anna");
    after["username"] = json!("ann");
    after["updated_at"] = before["updated_at"].clone();
    assert_eq!(after, before);
    User::new(&live, "anna", "secret-2").done(GetCurrentBalance {});
    assert_eq!(User::new(&live, "ann", "secret-1").refused_at_login(), 401);
}

#[test]
fn a_disabled_user_is_refused_until_it_is_active_again() {
    let live = Live::new();
    let mut own = User::reseller(&live);
    let ann = own.create("ann", 0);
    own.done(SetSubUserStatus { user_id: ann, status: SubUserSwitch::Disabled });
    assert_eq!(User::new(&live, "ann", "secret-1").refused_at_login(), 403);
    own.done(SetSubUserStatus { user_id: ann, status: SubUserSwitch::Active });
    User::new(&live, "ann", "secret-1").done(GetCurrentBalance {});
}

#[test]
fn a_deleted_user_keeps_its_data() {
    let live = Live::new();
    let mut own = User::reseller(&live);
    let ann = own.create("ann", 15);
    let placed = own.place(order(ann));
    let before = own.user(ann);
    own.done(DeleteSubUser { user_id: ann });
    let mut after = own.user(ann);
    assert_eq!(after["status"].take(), "deleted");
    after["status"] = before["status"].clone();
    after["updated_at"] = before["updated_at"].clone();
    assert_eq!((after, own.order(&number(&placed))), (before, placed));
    assert_eq!(own.refused(DeleteSubUser { user_id: ann }), 404);
}

#[test]
fn a_shared_products_order_names_one_of_its_projects() {
    let live = Live::new();
    let mut own = User::reseller(&live);
    let ann = own.create("ann", 50);
    let shared = |project: Option<&str>| CreateStaticOrder {
        pool_id: "static-shared-us".to_owned(),
        project_id: project.map(str::to_owned),
        ..order(ann)
    };
    assert_eq!((own.refused(shared(None)), own.refused(shared(Some("other")))), (400, 400));
    assert_eq!(own.place(shared(Some("shop")))["project_id"], "shop");
}

#[test]
fn a_renewal_of_thirty_days_is_one_month_for_all_instances() {
    let live = Live::new();
    let mut own = User::reseller(&live);
    let ann = own.create("ann", 90);
    for (duration, unit) in [(30, OrderUnit::Day), (1, OrderUnit::Month)] {
        let placed = own.place(CreateStaticOrder { ip_count: 2.into(), ..order(ann) });
        let order_no = Some(number(&placed));
        let renewed = own.done(RenewStaticOrder {
            order_no,
            duration: Some(duration.into()),
            unit: Some(unit),
            cycle_times: Some(1.into()),
            ..RenewStaticOrder::default()
        });
        // Two addresses for a month each.
        assert_eq!((renewed["total_amount"].as_f64(), renewed["renewed"].as_array().map(Vec::len)), (Some(20.0), Some(2)));
        let after = own.order(&number(&placed));
        for instance in 0..2 {
            let ends = |order: &Value| order["instances"][instance]["expires_at"].as_str().expect("a time").to_owned();
            assert!(ends(&after) > ends(&placed), "{after}");
        }
    }
}

#[test]
fn a_reseller_orders_for_its_direct_subordinates_only() {
    let live = Live::new();
    let (mut own, mut other) = (User::reseller(&live), User::other(&live));
    let bob = other.create("bob", 0);
    assert_eq!((own.refused(order(bob)), own.refused(order(7))), (403, 403));
    let ann = own.create("ann", 15);
    assert_eq!(own.place(order(ann))["user_id"], ann);
}

#[test]
fn a_price_of_0_is_the_backends_to_fill() {
    let live = Live::new();
    let mut own = User::reseller(&live);
    let ann = own.create("ann", 50);
    let filled = own.place(order(ann));
    let own_price = Decimal::from(10);
    let said = own.place(CreateStaticOrder { unit_price: own_price, total_amount: own_price, ..order(ann) });
    let prices = |order: &Value| [order["unit_price"].as_f64(), order["total_amount"].as_f64()];
    assert_eq!((prices(&filled), prices(&said)), ([Some(10.0); 2], [Some(10.0); 2]));
    assert_eq!(own.user(ann)["balance"].as_f64(), Some(30.0));
}

#[test]
fn an_ordinary_user_sees_the_recycle_bin_when_it_asks() {
    let live = Live::new();
    let mut own = User::reseller(&live);
    let ann = own.create("ann", 50);
    let placed = own.place(order(ann));
    own.done(CancelStaticOrder { order_no: number(&placed) });
    let mut user = User::new(&live, "ann", "secret-1");
    assert_eq!(user.done(ListStaticOrders::default())["items"], json!([]));
    let asked = user.done(ListStaticOrders { show_recycle_bin: Some(true), ..ListStaticOrders::default() });
    assert_eq!((&asked["items"][0]["order_no"], &asked["items"][0]["status"]), (&placed["order_no"], &json!("cancelled")));
}

#[test]
fn cancelling_releases_the_order() {
    let live = Live::new();
    let mut own = User::reseller(&live);
    let ann = own.create("ann", 50);
    let placed = own.place(order(ann));
    let proxy = |name: &str| placed["instances"][0][name].as_str().expect("a text").to_owned();
    let (username, password) = (proxy("username"), proxy("password"));
    let is_usable = || live.running.with_service(|service, now| service.exit_of(&username, &password, now).is_some());
    assert!(is_usable());
    own.done(CancelStaticOrder { order_no: number(&placed) });
    assert!(!is_usable());
    assert_eq!(own.refused(CancelStaticOrder { order_no: number(&placed) }), 422);
}

#[test]
fn traffic_is_read_of_oneself_and_of_direct_subordinates() {
    let live = Live::new();
    let (mut own, mut other) = (User::reseller(&live), User::other(&live));
    let (ann, bob) = (own.create("ann", 50), other.create("bob", 0));
    let me = i64::from(live.running.with_service(|service, _| service.logins()[0].id));
    let product = || "dynamic-us".to_owned();
    own.done(CreateDynamicOrder {
        pool_id: Some(product()),
        traffic_amount: Some(Decimal::from(2)),
        user_id: Some(ann),
        ..CreateDynamicOrder::default()
    });
    let mut left = |user_id| own.done(GetRemainingFlow { user_id, product_no: product() })["remaining_gb"].as_f64();
    assert_eq!((left(ann), left(me)), (Some(2.0), Some(0.0)));
    assert_eq!(own.done(GetProductsFlow { user_id: ann })["items"][0]["product_no"], product());
    assert_eq!(own.done(GetProductsFlow { user_id: me })["items"], json!([]));
    assert_eq!(own.refused(GetProductsFlow { user_id: bob }), 403);
    assert_eq!(own.refused(GetRemainingFlow { user_id: bob, product_no: product() }), 403);
}

#[test]
fn the_dashboard_is_of_the_caller_and_whoever_belongs_to_it() {
    let live = Live::new();
    let (mut own, mut other) = (User::reseller(&live), User::other(&live));
    let ann = own.create("ann", 50);
    let (before, strange) = (own.done(GetDashboard {}), other.done(GetDashboard {}));
    own.place(order(ann));
    let (after, count) = (own.done(GetDashboard {}), |board: &Value| board["resources"]["static_orders"].as_i64());
    assert_eq!((count(&after), after["balance"].clone()), (count(&before).map(|orders| orders + 1), before["balance"].clone()));
    assert_eq!(other.done(GetDashboard {}), strange);
    assert_eq!(count(&User::new(&live, "ann", "secret-1").done(GetDashboard {})), Some(1));
}
