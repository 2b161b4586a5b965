//! The choice of a product, for a purchase or a pool that names none.

use super::Decimal;
use crate::json::from_json;

record! {
    /// A product that is chosen before it is bought: the cheapest one of the account's own list that fits. Nothing of the choice is sent but
    /// the type and the number of the chosen product. Prices are compared within one unit. Products in another currency than USD, without a
    /// price, without enough stock or not available are passed over, and so are shared ones, unless `sharing` or a `project_id` is set.
    Cheapest {
        /// `dynamic` or `static`.
        session_type: String => Body;
        /// The country, as the product has it.
        country: Option<String> => Body;
        /// The city, as the product has it.
        city: Option<String> => Body;
        /// `exclusive` or `shared`.
        sharing: Option<String> => Body;
        /// The project of the purchase, which is sent, in place of the parameter of that name. With a project shared products fit, too.
        project_id: Option<String> => Body;
        /// The unit of the price, required where products with several units fit.
        unit: Option<String> => Body;
        /// The highest price of one unit, in USD. The smaller one of this and the option `max_unit_price` holds. Without any limit, no product
        /// is bought that is dearer than the first one that was chosen.
        max_unit_price: Option<Decimal> => Body;
    }
}
from_json!(Cheapest or default { session_type, country, city, sharing, project_id, unit, max_unit_price });

impl Eq for Cheapest {}
