//! Wild requests: whatever comes, the backend answers in its envelope, and with no server error.

use hopline_sandbox::BACKEND_OPERATIONS;

use crate::reseller_harness::ResellerHarness;

const PATHS: &[(&str, &str)] = &[
    ("POST", "/auth/login"),
    ("POST", "/open/app/user/v2"),
    ("GET", "/open/app/user/balance/current"),
    ("GET", "/open/app/agent/sub-users"),
    ("POST", "/open/app/agent/sub-users/{}/balance"),
    ("PATCH", "/open/app/agent/sub-users/{}/account"),
    ("PATCH", "/open/app/agent/sub-users/{}/status"),
    ("DELETE", "/open/app/agent/sub-users/{}"),
    ("POST", "/open/app/product/query-standard/v2"),
    ("GET", "/open/app/product/ip-ranges/v2"),
    ("POST", "/open/app/order/create/v2"),
    ("GET", "/dynamic"),
    ("GET", "/dynamic/{}"),
    ("GET", "/dynamic/order-info/{}"),
    ("POST", "/business/dynamic-proxy/extract"),
    ("GET", "/user/{}/products-flow"),
    ("GET", "/user/{}/remaining-flow/{}"),
    ("POST", "/open/app/static/order/create-standard/v2"),
    ("GET", "/open/app/static/order/list/v2"),
    ("GET", "/open/app/static/order/statistics"),
    ("POST", "/open/app/static/order/renew"),
    ("POST", "/open/app/static/order/{}/cancel"),
    ("GET", "/open/app/dashboard/info/v2"),
    ("GET", "/open/app/user/transactions"),
    ("GET", "/transaction/agent/transactions"),
    ("GET", "/usdt/wallet-info"),
    ("POST", "/usdt/create-order"),
    ("GET", "/usdt/check-status"),
    ("GET", "/usdt/orders"),
    ("POST", "/usdt/cancel-order"),
];

const FIELDS: &[&str] = &[
    "username",
    "password",
    "email",
    "phone",
    "remark",
    "balance",
    "amount",
    "status",
    "proxyType",
    "productNo",
    "standardCountryCode",
    "standardCityCode",
    "language",
    "orderType",
    "poolId",
    "trafficAmount",
    "unitPrice",
    "totalAmount",
    "userId",
    "ipCount",
    "duration",
    "unit",
    "extractConfig",
    "regionCode",
    "countryCode",
    "cityCode",
    "staticType",
    "cycleTimes",
    "cidrBlocks",
    "assignedIp",
    "assignedIpList",
    "projectId",
    "order_no",
    "orderNo",
    "order_id",
    "instances",
    "page",
    "pageSize",
    "page_size",
    "search",
    "includeDeleted",
    "areaCode",
    "includeDisabled",
    "user_id",
    "pool_type",
    "filter",
    "region",
    "created_start",
    "created_end",
    "expire_start",
    "expire_end",
    "show_recycle_bin",
    "type",
    "order_type",
    "start_date",
    "end_date",
    "keyword",
    "target_user_id",
];

const VALUES: &[&str] = &[
    "null",
    "true",
    "0",
    "-1",
    "1",
    "1.5",
    "1e28",
    "-1e28",
    "79228162514264337593543950335",
    "1e400",
    "9223372036854775807",
    "-9223372036854775808",
    "4294967296",
    "200001",
    "1001",
    "\"\"",
    "\"x\"",
    "\"static-us\"",
    "\"dynamic-us\"",
    "\"static_proxy\"",
    "\"dynamic_proxy\"",
    "\"2023-11-14\"",
    "\"9999-12-31\"",
    "\"\\u0000\"",
    "\"\\ud83d\\ude00\"",
    "[]",
    "[1]",
    "[\"x\"]",
    "{}",
    "[[[[]]]]",
    "\"SO-1001\"",
    "104",
    "103",
];

/// A generator that depends on nothing but its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }

    fn body(&mut self) -> String {
        if self.roll(20) == 0 {
            return self.pick(&["", "{", "[]", "null", "\"x\"", "{\"a\":}", "\u{feff}{}"]).to_owned();
        }
        let members: Vec<String> = (0..self.roll(12)).map(|_| format!("\"{}\":{}", self.pick(FIELDS), self.pick(VALUES))).collect();
        format!("{{{}}}", members.join(","))
    }

    fn query(&mut self) -> String {
        let value = |text: &str| form_urlencoded::byte_serialize(text.trim_matches('"').as_bytes()).collect::<String>();
        let members: Vec<String> = (0..self.roll(6)).map(|_| format!("{}={}", self.pick(FIELDS), value(self.pick(VALUES)))).collect();
        members.join("&")
    }
}

#[test]
fn any_request_is_answered_in_the_envelope_and_never_with_a_server_error() {
    assert_eq!(PATHS.len(), BACKEND_OPERATIONS.len());
    let mut reseller = ResellerHarness::new();
    reseller.user("ann", 50);
    let mut dice = Dice(7);
    let mut granted = 0;
    for _ in 0..20_000 {
        let (method, path) = PATHS[dice.roll(PATHS.len())];
        let mut path = path.to_owned();
        while path.contains("{}") {
            let id = dice.pick(&["200001", "1001", "5001", "SO-1001", "x", "-1", "%00", "%2F", "99999999999", "dynamic-us", "static-us"]);
            path = path.replacen("{}", id, 1);
        }
        let (path, body) = (format!("{path}?{}", dice.query()), dice.body());
        let answer = reseller.call(method, &path, &body);
        assert!(answer.status < 500, "{method} {path} {body}: {}", answer.json);
        assert!(answer.json["message"].is_string() && answer.json.get("data").is_some(), "{}", answer.json);
        assert_eq!(answer.json["code"] == 0, answer.status == 200, "{method} {path} {body}: {}", answer.json);
        granted += u32::from(answer.status == 200);
        reseller.agent.now += 10;
    }
    assert!(granted > 1000, "only {granted} were granted");
}

#[test]
fn a_full_request_with_one_wild_value_is_answered_too() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 90);
    for value in VALUES {
        for field in FIELDS {
            let more = format!(",\"{field}\":{value}");
            let answer = reseller.call("POST", crate::reseller_harness::PLACE, &crate::reseller_harness::order(ann, "static-us", &more));
            assert!(answer.status < 500, "{more}: {}", answer.json);
            let dynamic = format!(r#"{{"poolId":"dynamic-us","trafficAmount":0.01{more}}}"#);
            assert!(reseller.call("POST", "/open/app/order/create/v2", &dynamic).status < 500, "{more}");
            let renewal = format!(r#"{{"order_no":"SO-1001"{more}}}"#);
            assert!(reseller.call("POST", "/open/app/static/order/renew", &renewal).status < 500, "{more}");
        }
    }
}
