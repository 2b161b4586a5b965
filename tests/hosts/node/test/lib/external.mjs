// Test data that nobody here wrote. The folder lies beside the repository, not in it.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(process.env.HOPLINE_VECTORS, "../../../shared/external/json-test-suite/test_parsing");

/** Every JSON text with its name, in Base64; nothing where the folder is missing. */
export function texts() {
  if (!existsSync(FOLDER)) return undefined;
  return readdirSync(FOLDER).map((name) => [name, readFileSync(join(FOLDER, name)).toString("base64")]);
}
