"""Runs the shared vectors of `tests/vectors` through the class of the package. Their README is the definition of the format."""

import json
from typing import Any

import vector_walks
from hopline._hopline import Client, host_text
from vector_format import Failure, Json, Names, check, like, no_secret, only, overlay, read_step, same
from vector_store import Store, answers_itself

BEGIN = (1_750_000_000_000, 1_000_000)


def options_of(step: Json) -> str:
    """The options of a step, which says where it wants credentials, if it gives a session to its caller."""
    gives = step.get("operation", "open_session") in ("open_session", "wait_session")
    return json.dumps({**({"credentials": False} if gives else {}), **step.get("options", {})})


class World:
    """The client of one case, and what surrounds it."""

    def __init__(self, case: Json) -> None:
        self.options: Json = overlay({"base_url": "https://api.example/v1", "api_key": "canary-key", "store": True}, case.get("client", {}))
        self.now = (case["now"]["unix"], case["now"]["monotonic"]) if "now" in case else BEGIN
        self.commands: dict[str, int] = {}
        self.records, self.keys, self.entries = Names(), Names(), Names()
        self.steps: dict[str, int] = {}
        self.out: set[int] = set()
        self.calls: dict[int, tuple[Any, ...]] = {}
        self.store = Store()
        self.sent: dict[str, str] = {}
        self.walks: dict[str, str | None] = {}
        self.crashes = 0
        self.make(case.get("entropy"))

    def make(self, entropy: str | None) -> None:
        given = {name: value for name, value in self.options.items() if value is not None}
        self.client = Client(json.dumps(given), bytes.fromhex(entropy) if entropy else bytes([self.crashes] * 16))
        self.client.listen()

    def poll(self) -> Any:
        """The next step, or when there is to be one."""
        todo: list[Any] = []
        until = self.client.poll(*self.now, todo, 1)
        return todo[0] if todo else ("wait", until)

    def next(self, kind: str | None = None) -> Any:
        """The next step that is no notification, and no call of the store that answers itself, but for those of a kind."""
        while True:
            step = self.poll()
            if step[0] == "notify":
                no_secret("an event", str(step[1]))
            elif step[0] == "store" and answers_itself(step[3]) and step[3][0] != kind:
                self.answer_itself(step)
            else:
                return step

    def answer_itself(self, step: Any) -> None:
        self.client.store_told(step[1], self.store.call(step[3], self.now[0]), *self.now)

    def next_call(self, kind: str, what: str) -> tuple[int, tuple[Any, ...]]:
        """The next call of the store, which must be of a kind."""
        found = self.next(kind)
        check(found[0] == "store" and found[3][0] == kind, f"expected {what}, came {found}")
        return found[1], found[3]

    def drained(self) -> int | None:
        step = self.next()
        check(step[0] == "wait", f"expected nothing more to do, came {step}")
        until: int | None = step[1]
        return until

    def move(self, shift: Any) -> None:
        by = (shift["unix"], shift["monotonic"]) if isinstance(shift, dict) else (shift, shift)
        self.now = (self.now[0] + by[0], self.now[1] + by[1])

    def named(self, value: Any) -> Any:
        return self.keys.put_into(self.records.put_into(value))

    def command(self, name: str) -> int:
        check(name in self.commands, f"no command is named `{name}`")
        return self.commands[name]

    def name_command(self, name: str, command: int) -> None:
        check(self.commands.setdefault(name, command) == command, f"a command is named `{name}` already")

    def name_step(self, step: Json, found: int) -> None:
        if "as" in step:
            check(self.steps.setdefault(step["as"], found) == found, f"a step is named `{step['as']}` already")

    # Verbs.

    def start(self, step: Json) -> None:
        params = step["params_text"] if "params_text" in step else json.dumps(step.get("params", {}))
        self.name_command(step["start"], self.client.start(step["operation"], params, options_of(step)))

    def given(self, step: Json, number: int, call: tuple[Any, ...]) -> None:
        self.store.doubt(call)
        self.calls[number] = call
        self.out.add(number)
        self.name_step(step, number)
        if "answer" in step:
            self.answer(number, step["answer"])

    def put(self, step: Json) -> None:
        number, call = self.next_call("put", f"a put of `{step['put']}`")
        _, record, data, new, keep_for, release = call
        no_secret("a record", data.decode(errors="replace"))
        self.records.bind(step["put"], record)
        for name, value in {"new": new, "releases": release, "keep_for": keep_for}.items():
            if name in step:
                same(step[name], value, name)
        if "has" in step:
            like(step["has"], self.named(json.loads(data)), "has")
        self.given(step, number, call)

    def delete(self, step: Json) -> None:
        number, call = self.next_call("delete", f"a delete of `{step['delete']}`")
        self.records.bind(step["delete"], call[1])
        self.given(step, number, call)

    def one_name(self, step: Json, verb: str) -> None:
        number, call = self.next_call(verb, f"a {verb} of `{step[verb]}`")
        check(call[1] is not None and len(call[1]) == 1, f"expected a {verb} of one name, came {call}")
        self.records.bind(step[verb], call[1][0])
        self.given(step, number, call)

    def claim(self, step: Json) -> None:
        self.one_name(step, "claim")

    def release(self, step: Json) -> None:
        self.one_name(step, "release")

    def list(self, step: Json) -> None:
        number, call = self.next_call("list", f"a list of {step['list']}")
        same(step["list"] == "open", call[3], "list")
        self.given(step, number, call)

    def spend(self, step: Json) -> None:
        number, call = self.next_call("spend", f"a spend of `{step['spend']}`")
        _, _, day, entry, usd, cap = call
        self.entries.bind(step["spend"], entry)
        for name, value in {"usd": usd, "day": day, "cap": cap}.items():
            if name in step:
                same(step[name], value, name)
        self.given(step, number, call)

    def send(self, step: Json) -> None:
        found = self.next()
        check(found[0] == "send", f"expected a send of {step['send']}, came {found}")
        _, number, command, request, send_before = found
        headers = list(request.headers.items())
        self.out.add(number)
        line = f"{request.method} {request.url.removeprefix(self.options['base_url'].rstrip('/'))}"
        text = (request.body or b"").decode()
        check(line == step["send"], f"expected a send of {step['send']}, came {line} {text}")
        if "for" in step:
            same(self.command(step["for"]), command, "for")
        for name, value in step.get("headers", {}).items():
            same([] if value is None else [value], [given for known, given in headers if known == name], name)
        keys = [value for name, value in headers if name == "idempotency-key"]
        check(len(keys) == (1 if "key" in step else 0), f"expected the key {step.get('key')}, came {keys}")
        for key in keys:
            self.keys.bind(step["key"], key)
            check(self.sent.setdefault(key, line + text) == line + text, "the same key was sent with other bytes")
        if "body" in step:
            same(step["body"], json.loads(text), "body")
        for name, value in {"body_text": text, "timeout_ms": round(request.timeout * 1000), "max_body": request.max_body}.items():
            if name in step:
                same(step[name], value, name)
        if "within" in step:
            like(step["within"], send_before - self.now[1], "within")
        self.name_step(step, number)
        if "answer" in step:
            self.answer(number, step["answer"])

    def answer(self, number: int, answer: Any) -> None:
        if isinstance(answer, str):
            # A step that is none of the store's may be answered so, too: that is to be refused.
            told = self.store.answer(self.calls[number], answer, self.now[0]) if number in self.calls else ("done",)
            self.client.store_told(number, told, *self.now)
            self.calls.pop(number, None)
        elif "failed" in answer:
            self.client.fail(number, answer["failed"], answer["sent"], *self.now)
        else:
            self.respond(number, answer)
        self.out.discard(number)

    def respond(self, number: int, answer: Json) -> None:
        headers = dict(answer.get("headers", {}))
        if "text" in answer:
            body = (answer["text"] * answer.get("repeat", 1)).encode()
        elif "hex" in answer:
            body = bytes.fromhex(answer["hex"])
        else:
            headers.setdefault("content-type", "application/json")
            about = {"success": True, "data": answer["ok"]} if "ok" in answer else {"success": False, "data": None, "error": answer["error"]}
            body = json.dumps(about | ({"meta": answer["meta"]} if "meta" in answer else {}), ensure_ascii=False).encode()
        status = answer["status"] if "ok" not in answer else answer.get("status", 200)
        self.client.answer(number, status, list(headers.items()), body, answer.get("truncated", False), *self.now)

    def resolve(self, step: Json) -> None:
        number = self.steps.get(step["resolve"], 2**32 - 1)
        try:
            self.answer(number, step["answer"])
        except ValueError as refused:
            check(step.get("misuse"), f"the answer was refused: {refused}")
        else:
            check(not step.get("misuse"), "expected the answer to be refused, and it was taken")

    def wait(self, step: Json, verb: str = "wait") -> None:
        until = self.drained()
        like(step[verb], None if until is None else until - self.now[1], verb)
        if verb == "sleep":
            check(until is not None, "`sleep` needs a time")
            self.move((until or 0) - self.now[1])

    def sleep(self, step: Json) -> None:
        self.wait(step, "sleep")

    def advance(self, step: Json) -> None:
        self.drained()
        self.move(step["advance"])

    def completed(self, step: Json, verb: str = "completed") -> None:
        same(["completed", self.command(step[verb])], list(self.next()), verb)

    def complete(self, step: Json) -> None:
        self.completed(step, "complete")
        if "parts" in step:
            whole: Any = self.client.result(self.command(step["complete"]))
            parts = whole[1].raw
            same(len(step["parts"]), len(parts), "parts")
            for name, command in zip(step["parts"], parts, strict=True):
                self.name_command(name, command)
        self.take({**step, "take": step["complete"]})

    def take(self, step: Json) -> None:
        taken = self.client.take(self.command(step["take"]))
        if step.get("nothing"):
            return check(taken is None, f"expected nothing to take, came {taken}")
        check(taken is not None, "expected a result to take, came nothing")
        if taken is not None and taken[0] == "failed":
            no_secret("an error", taken[1])
            check("error" in step, f"expected success, came {taken[1]}")
            like(step["error"], self.named(json.loads(taken[1])), "error")
        elif taken is not None:
            reply: Any = taken[1]
            raw = reply._raw.decode()  # not parsed yet
            check("ok" in step, f"expected the error {step.get('error')}, came {raw}")
            expected = step["ok"]
            only(expected, {"facts", "raw", "raw_text", "phase"}, "ok")
            like(expected.get("facts", {}), json.loads(taken[2]), "facts")
            if "raw" in expected:
                like(expected["raw"], json.loads(raw), "raw")
            for name, value in {"raw_text": raw, "phase": reply.phase}.items():
                if name in expected:
                    same(expected[name], value, name)

    def notify(self, step: Json) -> None:
        while True:
            found = self.poll()
            if found[0] == "store" and answers_itself(found[3]):
                self.answer_itself(found)
                continue
            if found[0] != "notify":
                break
            no_secret("an event", str(found[1]))
            try:
                return like(step["notify"], self.named(json.loads(str(found[1]))), "notify")
            except Failure:
                continue
        raise Failure(f"expected an event like {step['notify']}, came {found}")

    def cancel(self, step: Json) -> None:
        self.client.cancel(self.command(step["cancel"]), *self.now)

    def crash(self, step: Json) -> None:
        crash = step["crash"]
        only(crash, {"entropy", "client", "after", "also"}, "crash")
        self.crashes += 1
        overlay(self.options, crash.get("client", {}))
        self.make(crash.get("entropy"))
        self.store.crash([self.records.value(name) for name in crash.get("also", [])])
        for forgotten in (self.commands, self.steps, self.out, self.calls):
            forgotten.clear()
        self.move(crash.get("after", 0))

    def plant(self, step: Json) -> None:
        if "name" in step:
            self.records.bind(step["plant"], step["name"])
        record = self.records.value(step["plant"])
        if "change" in step:
            there = self.store.data(record)
            check(there is not None, f"the store holds no `{step['plant']}`")
            data = json.dumps(overlay(json.loads(there or b""), step["change"])).encode()
        else:
            data = step["text"].encode()
        self.store.plant(record, data)

    def lost(self, step: Json) -> None:
        names = [self.records.value(name) for name in step["lost"]]
        self.store.take_away(names)
        self.client.lost(names, self.now)

    def resume(self, step: Json) -> None:
        options = options_of(step)
        self.name_command(step["as"], self.client.resume(self.records.value(step["resume"]), options))

    def resume_intent(self, step: Json) -> None:
        self.name_command(step["as"], self.client.resume_intent(step["resume_intent"], options_of(step)))

    def reconcile(self, step: Json) -> None:
        record = json.dumps({"record": self.records.value(step["reconcile"])})
        self.name_command(step["as"], self.client.start("reconcile", record, "{}"))

    def resume_all(self, step: Json) -> None:
        self.name_command(step["resume_all"], self.client.resume_all(options_of(step)))

    def settle(self, step: Json) -> None:
        record = self.records.value(step["settle"])
        self.name_command(step["as"], self.client.settle(record, step["happened"], step.get("became"), step.get("early", False)))

    def forget(self, step: Json) -> None:
        self.name_command(step["as"], self.client.forget(self.records.value(step["forget"])))

    def release_session(self, step: Json) -> None:
        same(step.get("done", True), self.client.release_session(step["release_session"]), "released")

    def saved(self, step: Json) -> None:
        after, entries = None, []
        while True:
            command = self.client.saved(after)
            same(["completed", command], list(self.next()), "saved")
            taken: Any = self.client.take(command)
            check(taken[0] == "answered", f"expected a page of what is saved, came {taken}")
            page = taken[1].raw
            entries += page["entries"]
            if (after := page.get("after")) is None:
                break
        found = self.named(entries)
        no_secret("the list of what is saved", json.dumps(found))
        like(step["saved"], sorted(found, key=lambda entry: self.records.place(entry["record"])), "saved")

    def observe(self, step: Json) -> None:
        told = self.client.observe(step["observe"], json.dumps(step["seen"]), *self.now)
        found = {} if told is None else json.loads(told)
        same([step.get("verdict"), step.get("reason")], [found.get("verdict"), found.get("reason")], "observe")
        if "why" in step:
            like({"contains": step["why"]}, found.get("why"), "why")
        check(("as" in step) == ("command" in found), f"expected a command for {step.get('as')}, came {found}")
        if "as" in step:
            self.name_command(step["as"], found["command"])

    def walk(self, step: Json) -> None:
        check(step["walk"] not in self.walks, f"a walk is named `{step['walk']}` already")
        self.walks[step["walk"]] = vector_walks.walk(self, step)

    def ask(self, step: Json) -> None:
        check(("ok" in step) != ("error" in step), "an answer is one of `ok` and `error`")
        try:
            answer = host_text(step["ask"], json.dumps(step["given"]))
        except ValueError as refused:
            no_secret("an error", str(refused))
            check("error" in step, f"expected {step.get('ok')}, came {refused}")
            return like(step["error"], json.loads(str(refused)), "error")
        check("ok" in step, f"expected the error {step.get('error')}, came {answer}")
        same(step["ok"], json.loads(answer), "ok")


def run(case: Json) -> None:
    """Runs a case; a `Failure` says at which step it failed, what was expected and what came."""
    try:
        world = World(case)
    except ValueError as refused:
        no_secret("an error", str(refused))
        check("refused" in case, f"the client was refused: {refused}")
        return like(case["refused"], json.loads(str(refused)), "refused")
    check("refused" not in case, "expected the client to be refused, and it was not")
    check(case["script"], "the script is empty")
    for n, step in enumerate(case["script"], 1):
        verb = read_step(step)
        try:
            getattr(world, verb)(step)
        except (Failure, ValueError, KeyError) as failure:
            raise Failure(f"step {n} ({verb}): {failure}") from failure
    world.drained()
    check(not world.out, f"at the end {len(world.out)} steps were never answered")
