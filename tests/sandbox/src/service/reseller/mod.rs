//! The reseller backend API, on the same accounts as the agent API.

mod addresses;
mod books;
mod call;
mod control;
mod dashboard;
mod dynamic;
mod envelope;
mod flow;
mod input;
mod login;
mod people;
mod places;
mod products;
mod renewal;
mod routes;
mod static_create;
mod static_list;
mod static_order;
mod static_record;
mod terms;
mod usdt;
mod users;
mod view;

use std::sync::Arc;

use http::Request;

use super::Service;
use super::envelope::{Answer, Refusal};
use super::faults::{ErrorFault, Fault, take};
use super::input::Query;

pub(crate) use books::{Entry, Kind};
pub(crate) use call::Owner;
pub use control::Login;
pub use envelope::{Code, List, Message, ProductType, RefusalStatus, Spelling};
pub use routes::{BACKEND_OPERATIONS, BACKEND_PATH};
pub(crate) use routes::{find, is_own};
pub(crate) use static_order::StaticOrder;
pub use view::{BackendView, DynamicOrderView, EntryView, StaticOrderView, UsdtOrderView, UserView};

use call::Call;
use dynamic::{DynamicOrder, Extract};
use envelope::{forbidden, not_found};
use login::Tokens;
use people::User;
use routes::Auth;
use usdt::UsdtOrder;

/// The state of the backend beside the accounts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backend {
    spelling: Spelling,
    tokens: Tokens,
    users: Vec<Arc<User>>,
    pub(crate) static_orders: Vec<Arc<StaticOrder>>,
    dynamic_orders: Vec<Arc<DynamicOrder>>,
    extracts: Vec<Extract>,
    usdt_orders: Vec<UsdtOrder>,
    pub(crate) entries: Vec<Entry>,
    /// How many of the next static orders fail instead of becoming active.
    to_fail: u32,
    /// The proxies that were given out by orders and extractions.
    proxies: u32,
}

impl Service {
    /// Answers a request to the backend.
    pub(crate) fn handle_backend(&mut self, request: &Request<Vec<u8>>, now_ms: i64) -> Answer {
        self.admit_backend(request, now_ms).unwrap_or_else(|refusal| self.backend.spelling.seal(Err(refusal)))
    }

    /// There is no idempotency store here: each request is done anew, and a fault that keeps it in progress makes it late.
    fn admit_backend(&mut self, request: &Request<Vec<u8>>, now_ms: i64) -> Result<Answer, Refusal> {
        let path = request.uri().path();
        let (route, _) = find(request.method(), path).ok_or_else(|| not_found(request.method(), path))?;
        let caller = match route.auth {
            Auth::Public => Owner { agent: 0, user: None },
            Auth::Anyone | Auth::Reseller => self.bearer(request.headers(), now_ms)?,
        };
        if route.auth == Auth::Reseller && caller.user.is_some() {
            return Err(forbidden("only a reseller may do this"));
        }
        let error = match take(&mut self.faults, Some(route.operation), |_| true) {
            Some(Fault::InProgress { ms, error }) => return Ok(self.put_off(request, caller, now_ms.saturating_add(ms), error)),
            Some(Fault::Error(error)) => Some(error),
            None => None,
        };
        Ok(self.do_backend(request, caller, error.as_ref(), now_ms))
    }

    /// Does the work of an admitted request.
    pub(crate) fn do_backend(&mut self, request: &Request<Vec<u8>>, caller: Owner, error: Option<&ErrorFault>, now_ms: i64) -> Answer {
        let path = request.uri().path();
        let Some((route, ids)) = find(request.method(), path) else {
            return self.backend.spelling.seal(Err(not_found(request.method(), path)));
        };
        let run = |service: &mut Self| {
            *service.executions.entry(route.operation).or_default() += 1;
            let query = Query::parse(request.uri().query())?;
            (route.run)(service, &Call { now_ms, caller, ids, query, body: request.body() })
        };
        let result = match error {
            Some(error) if error.sold => run(self).map_err(Refusal::numbered).and_then(|_| Err(error.refusal())),
            Some(error) => Err(error.refusal()),
            None => run(self).map_err(Refusal::numbered),
        };
        self.backend.spelling.seal(result)
    }
}
