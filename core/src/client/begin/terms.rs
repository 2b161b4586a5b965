//! The terms of a write, from the options of its call.

use crate::contract::{Cheapest, Endpoint};
use crate::engine::{Choice, Terms};
use crate::json::pick;
use crate::options::CallOptions;
use crate::wire::Built;

/// The terms of a write, with the choice of its product if the caller left that to the client.
pub(crate) fn terms_of(endpoint: &Endpoint, built: &Built, options: &CallOptions) -> Terms {
    let has_project = || {
        let project = built.body.as_deref().and_then(|body| pick(body, ["project_id"]));
        project.is_some_and(|[project]| project.is_some_and(|project| project != "\"\"" && project != "null"))
    };
    let choice = |product: &Cheapest| {
        let product = Cheapest { max_unit_price: options.max_unit_price, ..product.clone() };
        Box::new(Choice::new(product, has_project()))
    };
    let mut terms = Terms::new(endpoint, built, options.max_unit_price, options.expected_charge_usd);
    terms.choice = options.product.as_ref().map(choice);
    terms
}
