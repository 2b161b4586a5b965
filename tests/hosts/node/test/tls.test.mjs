// TLS with an authority of one's own: what it has signed is trusted, and a certificate that is refused sends nothing.
import assert from "node:assert/strict";
import { test } from "node:test";

import { folder, program, sandbox } from "./lib/sandbox.mjs";

test("a purchase goes where the authority has signed the certificate, and a refused certificate sends nothing", async (t) => {
  const service = await sandbox(t, "--tls", folder());
  const refused = [service.tls_wrong_name, service.tls_expired, service.tls_unknown_ca];
  // Node reads the variable when it starts.
  const { out, errors } = await program("once.mjs", { NODE_EXTRA_CA_CERTS: service.tls_ca, KEY: service.api_key }, [service.tls_right, ...refused]).ended;
  const [bought, ...others] = JSON.parse(out || `"${errors}"`);
  assert.match(bought.session_id, /./, bought.message);
  assert.equal(others.length, 3);
  for (const { kind, effect, message, saved } of others) {
    assert.deepEqual([kind, effect, saved], ["unavailable", "none", 0], message);
    assert.match(message, /no secure connection could be made/);
  }
  assert.equal((await service.state()).charges.length, 1);
});
