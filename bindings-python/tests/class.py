"""Drives the class of the extension module as the package does."""

import importlib.machinery
import importlib.util
import json
import os
import tempfile
import unittest

LOADER = importlib.machinery.ExtensionFileLoader("_hopline", os.environ["HOPLINE_MODULE"])
hopline = importlib.util.module_from_spec(importlib.util.spec_from_loader("_hopline", LOADER))
LOADER.exec_module(hopline)

OPTIONS = '{"base_url":"https://api.example/v1","api_key":"canary","store":true}'
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


class Names:
    """A store of one client: names with data."""

    def __init__(self, **data):
        self.data = data
        self.calls = []

    def answer(self, call):
        self.calls.append(call)
        match call:
            case ("claim", names, most):
                return ("claimed", [(name, self.data.get(name)) for name in names[:most]])
            case ("put", name, data, _, _, _):
                self.data[name] = data
            case ("delete", name):
                self.data.pop(name, None)
            case ("list", _, _, _):
                return ("listed", [(name, data, "free") for name, data in self.data.items()], False)
            case ("spend", _, _, _, _, _):
                return ("granted", 20_000)
        return ("done",)


def stored(it, names):
    """Does what the store is asked, and returns what comes then."""
    while (step := following(it))[0] == "store":
        it.stored(step[1], names.answer(step[3]), *NOW)
    return step


def until_completed(it, command, names):
    step = stored(it, names)
    assert step == ("completed", command), step


def done(it, command, names):
    """The value of what people do about records."""
    until_completed(it, command, names)
    word, _, raw, _, _ = it.take(command)
    assert word == "answered"
    return json.loads(raw)


def failure(it, command):
    word, error = it.take(command)
    assert word == "failed"
    return json.loads(error)


class Class(unittest.TestCase):
    def test_a_purchase_is_stored_sent_answered_and_taken_once(self):
        it, names = client(), Names()
        command = it.start("create_session", BUY, '{"intent":"job-17"}')
        self.assertIsNone(it.take(command))
        send = stored(it, names)
        self.assertEqual([call[0] for call in names.calls], ["claim", "put"], "a purchase is stored first")
        word, step, of, method, url, headers, body, timeout_ms, send_before, max_body = send
        self.assertEqual((word, of, method, url), ("send", command, "POST", "https://api.example/v1/sessions"))
        self.assertEqual(json.loads(body), json.loads(BUY))
        self.assertIn(("x-api-key", "canary"), headers)
        self.assertEqual((timeout_ms, max_body), (20_000, 8 << 20))
        self.assertGreater(send_before, 0)
        it.respond(step, 202, [("content-type", "application/json")], ACCEPTED, False, *NOW)
        until_completed(it, command, names)
        word, facts, raw, phase, view = it.take(command)
        self.assertEqual((word, json.loads(facts)["session_id"]), ("answered", "s-1"))
        self.assertEqual(raw, '{"session_id":"s-1","status":"creating"}')
        self.assertIn(phase, ("pending", None))
        self.assertIsNone(view, "this is spelled as the table has it")
        self.assertIsNone(it.take(command), "a result is taken once")
        self.assertEqual([call[0] for call in names.calls], ["claim", "put", "put"])
        self.assertEqual([call[5] for call in names.calls[1:]], [False, True], "others may have its name then")
        page = done(it, it.saved(None), names)
        self.assertEqual([(entry["session_id"], entry["whose"]) for entry in page["entries"]], [("s-1", "free")])
        self.assertNotIn("canary", repr(it))

    def test_what_is_seen_through_a_session_is_judged(self):
        it, names = client(), Names()
        command = it.start("open_session", BUY, "{}")
        _, step, *_ = stored(it, names)
        it.respond(step, 202, [], ACCEPTED.replace(b"creating", b"active"), False, *NOW)
        until_completed(it, command, names)
        self.assertEqual(it.observe("s-1", '{"status":403}', *NOW), '{"verdict":"rotate","reason":"http_403"}')
        self.assertIsNone(it.observe("s-2", '"captcha"', *NOW))
        self.assertRaises(ValueError, it.observe, "s-1", '"nothing"', *NOW)
        self.assertTrue(it.follows("s-1"))
        it.lost(None, *NOW)
        self.assertEqual(following(it)[3][0], "claim", "what is held is claimed again")

    def test_a_misuse_and_options_that_do_not_fit_are_exceptions(self):
        with self.assertRaises(ValueError) as caught:
            hopline.Client("{}", bytes(16))
        self.assertEqual(json.loads(str(caught.exception))["field"], "base_url")
        it = client()
        it.start("create_session", BUY, "{}")
        _, step, *_ = stored(it, Names())
        with self.assertRaises(ValueError) as caught:
            it.stored(step, ("done",), *NOW)
        self.assertEqual(json.loads(str(caught.exception))["kind"], "misuse")
        self.assertRaises(ValueError, it.fail, step, "gone", "maybe", *NOW)
        it.respond(step, 202, [], ACCEPTED, False, *NOW)
        self.assertRaises(ValueError, it.respond, step, 202, [], ACCEPTED, False, *NOW)

    def test_what_is_cancelled_before_it_was_sent_had_no_effect(self):
        it = client()
        command = it.start("create_session", BUY, "{}")
        it.cancel(command, *NOW)
        until_completed(it, command, Names())
        error = failure(it, command)
        self.assertEqual((error["kind"], error["effect"]), ("cancelled", "none"))

    def test_an_answer_that_no_store_gives_is_an_exception(self):
        it = client()
        it.start("create_session", BUY, '{"intent":"job-17"}')
        _, step, command, call = following(it)
        self.assertEqual((command, call[0], call[2]), (1, "claim", 1))
        for wrong in (("maybe",), ("claimed", 5), ("listed", [("a", b"", "ours")], False), ("over", "much"), ()):
            with self.assertRaises((ValueError, TypeError, IndexError)):
                it.stored(step, wrong, *NOW)
        it.stored(step, ("busy", None), *NOW)
        self.assertEqual(following(it), ("completed", 1))
        self.assertEqual(failure(it, 1)["kind"], "busy")

    def test_a_purchase_in_doubt_survives_and_is_settled(self):
        first, names = client(), Names()
        command = first.start("create_session", BUY, '{"intent":"job-17"}')
        _, step, *_ = stored(first, names)
        first.cancel(command, *NOW)
        first.fail(step, "aborted", "maybe", *NOW)
        until_completed(first, command, names)
        error = failure(first, command)
        self.assertEqual(error["effect"], "unknown")
        [name] = names.data
        self.assertEqual(error["record"].rpartition(".")[0], name)
        names.data[f"{name.partition('.')[0]}.r{0:032x}"] = b"\xff"

        second = client(8)
        page = done(second, second.saved(None), names)
        shown = {entry["holds"]: entry for entry in page["entries"]}
        self.assertEqual((shown["in_doubt"]["intent"], shown["refused"]["reason"]), ("job-17", "damaged"))
        record = shown["in_doubt"]["record"]
        self.assertFalse(done(second, second.forget(record), names), "what is in doubt stays")
        self.assertTrue(done(second, second.forget(shown["refused"]["record"]), names))
        self.assertTrue(done(second, second.settle(record, False, None, True), names))
        self.assertEqual(names.data, {}, "its record goes")
        self.assertFalse(done(second, second.settle(record, False, None, True), names))
        unknown = second.resume(record, "{}")
        until_completed(second, unknown, names)
        self.assertEqual(failure(second, unknown)["kind"], "misuse")
        self.assertIsNone(done(second, second.resume_intent("job-17", "{}"), names))
        self.assertEqual(done(second, second.resume_all("{}"), names), [])

    def test_a_folder_is_a_store(self):
        with tempfile.TemporaryDirectory() as path:
            folder, other = hopline.Folder(path), hopline.Folder(path)
            name = f"5e.i{0:032x}"
            self.assertEqual(folder.claim([name], 1), ("claimed", [(name, None)]))
            self.assertTrue(folder.put(name, b"data", False, None, False))
            self.assertEqual((other.claim([name], 1), other.put(name, b"", False, None, False)), (("busy", b"data"), False))
            self.assertEqual(other.list("5e", None, False), ([(name, b"data", "other")], False))
            word, day = folder.spend("5e", None, "ab", "4.50", "5")
            self.assertEqual((word, other.spend("5e", day, "cd", "0.51", "5")), ("granted", ("over", "4.5")))
            self.assertRaises(ValueError, folder.spend, "5e", None, "ab", "much", None)
            folder.release(None)
            self.assertTrue(other.claim([name], 1)[0] == "claimed" and other.delete(name))
            for one in (folder, other):
                one.close()
            self.assertRaises(OSError, folder.delete, name)

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
        until_completed(it, command, Names())
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
