"""Drives the class of the extension module as the package does."""

import importlib.machinery
import importlib.util
import json
import os
import unittest

LOADER = importlib.machinery.ExtensionFileLoader("_hopline", os.environ["HOPLINE_MODULE"])
hopline = importlib.util.module_from_spec(importlib.util.spec_from_loader("_hopline", LOADER))
LOADER.exec_module(hopline)

OPTIONS = '{"base_url":"https://api.example/v1","api_key":"canary"}'
BUY = '{"session_type":"dynamic","product_no":"p-1","quantity":1}'
ACCEPTED = b'{"success":true,"data":{"session_id":"s-1","status":"creating"},"meta":{"request_id":"r-1"}}'
NOW = (1_700_000_000_000, 0)


def client(seed=7):
    return hopline.Client(OPTIONS, bytes([seed] * 16))


def following(it):
    """The step, past what is told for people only."""
    while (step := it.poll(*NOW))[0] == "notify":
        json.loads(step[1])
    return step


def until_send(it):
    """Saves what is to be saved first, and returns the record and the send."""
    word, step, record, data = following(it)
    assert word == "save" and data, "a purchase is saved first"
    assert it.poll(*NOW)[0] == "wait", "and waits for it"
    it.saved(step, *NOW)
    return (record, data), following(it)


def until_completed(it, command):
    while (step := following(it)) != ("completed", command):
        assert step[0] == "save", step
        it.saved(step[1], *NOW)


def failure(it, command):
    word, error = it.take(command)
    assert word == "failed"
    return json.loads(error)


class Class(unittest.TestCase):
    def test_a_purchase_is_saved_sent_answered_and_taken_once(self):
        it = client()
        command = it.start("create_session", BUY, '{"intent":"job-17"}')
        self.assertIsNone(it.take(command))
        _, send = until_send(it)
        word, step, of, method, url, headers, body, timeout_ms, send_before, max_body = send
        self.assertEqual((word, of, method, url), ("send", command, "POST", "https://api.example/v1/sessions"))
        self.assertEqual(json.loads(body), json.loads(BUY))
        self.assertIn(("x-api-key", "canary"), headers)
        self.assertEqual((timeout_ms, max_body), (20_000, 8 << 20))
        self.assertGreater(send_before, 0)
        it.respond(step, 202, [("content-type", "application/json")], ACCEPTED, False, *NOW)
        until_completed(it, command)
        word, facts, raw, phase, view = it.take(command)
        self.assertEqual((word, json.loads(facts)["session_id"]), ("answered", "s-1"))
        self.assertEqual(raw, '{"session_id":"s-1","status":"creating"}')
        self.assertIn(phase, ("pending", None))
        self.assertIsNone(view, "this is spelled as the table has it")
        self.assertIsNone(it.take(command), "a result is taken once")
        self.assertEqual(json.loads(it.saved_list())[0]["session_id"], "s-1")
        self.assertNotIn("canary", repr(it))

    def test_what_is_seen_through_a_session_is_judged(self):
        it = client()
        it.start("open_session", BUY, "{}")
        _, (_, step, *_) = until_send(it)
        it.respond(step, 202, [], ACCEPTED.replace(b"creating", b"active"), False, *NOW)
        self.assertEqual(it.observe("s-1", '{"status":403}', *NOW), '{"verdict":"rotate","reason":"http_403"}')
        self.assertIsNone(it.observe("s-2", '"captcha"', *NOW))
        self.assertRaises(ValueError, it.observe, "s-1", '"nothing"', *NOW)

    def test_a_misuse_and_options_that_do_not_fit_are_exceptions(self):
        with self.assertRaises(ValueError) as caught:
            hopline.Client("{}", bytes(16))
        self.assertEqual(json.loads(str(caught.exception))["field"], "base_url")
        it = client()
        it.start("create_session", BUY, "{}")
        _, (_, step, *_) = until_send(it)
        with self.assertRaises(ValueError) as caught:
            it.saved(step, *NOW)
        self.assertEqual(json.loads(str(caught.exception))["kind"], "misuse")
        self.assertRaises(ValueError, it.fail, step, "gone", "maybe", *NOW)
        it.respond(step, 202, [], ACCEPTED, False, *NOW)
        self.assertRaises(ValueError, it.respond, step, 202, [], ACCEPTED, False, *NOW)

    def test_what_is_cancelled_before_it_was_sent_had_no_effect(self):
        it = client()
        command = it.start("create_session", BUY, "{}")
        it.cancel(command, *NOW)
        until_completed(it, command)
        error = failure(it, command)
        self.assertEqual((error["kind"], error["effect"]), ("cancelled", "none"))

    def test_a_purchase_in_doubt_survives_and_is_settled(self):
        first = client()
        command = first.start("create_session", BUY, '{"intent":"job-17"}')
        (record, data), (_, step, *_) = until_send(first)
        first.cancel(command, *NOW)
        first.fail(step, "aborted", "maybe", *NOW)
        until_completed(first, command)
        self.assertEqual(failure(first, command)["effect"], "unknown")

        second = client(8)
        restored = json.loads(second.restore([(record, data), ("00-r1", b"\xff")], False))
        self.assertEqual(restored["held"], [record])
        self.assertEqual(restored["refused"][0]["reason"], "damaged")
        saved = json.loads(second.saved_list())[0]
        self.assertEqual((saved["intent"], saved["holds"]), ("job-17", "in_doubt"))
        self.assertEqual(len(second.resume_all()), 1)
        self.assertEqual(following(second)[3], "GET", "the service's time comes first")
        self.assertFalse(second.forget(record), "what is in doubt stays")

        third = client(9)
        third.restore([(record, data)], False)
        with self.assertRaisesRegex(ValueError, "belongs to what happened"):
            third.settle(record, False, "s-1")
        self.assertTrue(third.settle(record, False))
        self.assertFalse(third.settle(record, False))
        word, step, deleted, data = following(third)
        self.assertEqual((word, deleted, data), ("save", record, None), "its record goes")
        third.saved(step, *NOW)
        self.assertEqual(failure(third, third.resume(record, "{}"))["kind"], "misuse")

    def test_a_list_is_walked_page_by_page(self):
        begin = '{"operation":"list_products","max_pages":2}'
        self.assertEqual(hopline.page_params(begin, '{"limit":2}'), '{"limit":2}')
        turn = json.loads(hopline.page_turn(begin, '{"next_cursor":"c1"}'))
        further = turn["position"]
        self.assertEqual(json.loads(hopline.page_params(further, '{"limit":2}')), {"limit": 2, "cursor": "c1"})
        self.assertEqual(json.loads(hopline.page_turn(further, "{}")), {"end": "last_page"})
        for ask in (hopline.page_params, hopline.page_turn):
            with self.assertRaises(ValueError) as caught:
                ask('{"operation":"get_balance"}', "{}")
            self.assertEqual(json.loads(str(caught.exception))["kind"], "invalid")

    def test_a_product_is_priced_exactly(self):
        product = {"product_no": "p-1", "name": "", "type": "dynamic", "sharing": "shared", "available": True, "price": "4.10"}
        told = json.loads(hopline.quote(json.dumps({**product, "currency": "USD", "unit": "GB"}), "0.3"))
        self.assertEqual((told["product_no"], str(told["total"])), ("p-1", "1.23"))
        with self.assertRaises(ValueError) as caught:
            hopline.quote("{}", "1")
        self.assertEqual(json.loads(str(caught.exception))["field"], "product")

    def test_a_reseller_logs_in_and_an_answer_has_the_names_of_the_table(self):
        it = hopline.Client('{"api":"reseller","base_url":"https://api.example/api","username":"canary","password":"canary"}', bytes(16))
        self.assertIsNone(it.token())
        command = it.start("query_products", "{}", "{}")
        _, step, _, method, url, *_ = following(it)
        self.assertEqual((method, url), ("POST", "https://api.example/api/auth/login"))
        it.respond(step, 200, [], b'{"code":0,"data":{"token":"a.b.c"}}', False, *NOW)
        self.assertEqual(it.token(), "a.b.c")
        _, step, _, _, _, headers, *_ = following(it)
        self.assertIn(("authorization", "Bearer a.b.c"), headers)
        it.respond(step, 200, [], b'{"code":0,"data":{"list":[{"product_type":2,"unit":3}]}}', False, *NOW)
        until_completed(it, command)
        _, _, raw, _, view = it.take(command)
        self.assertEqual(raw, '{"list":[{"product_type":2,"unit":3}]}')
        self.assertEqual(json.loads(view), {"items": [{"productType": "2", "unit": "month"}]})

    def test_products_and_ranges_are_read(self):
        self.assertTrue(hopline.is_shared('{"product_type":"shared"}'))
        self.assertFalse(hopline.is_shared("{}"))
        self.assertEqual(json.loads(hopline.ip_range("192.0.2.0/31")), {"text": "192.0.2.0/31", "first": "192.0.2.0", "last": "192.0.2.1"})

    def test_the_headers_to_pass_are_named(self):
        self.assertIn("retry-after", hopline.RESPONSE_HEADERS)


if __name__ == "__main__":
    unittest.main()
