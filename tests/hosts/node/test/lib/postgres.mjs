// A PostgreSQL server of the tests' own, with the tables of the package and a role for workers.
import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";

const require = createRequire(import.meta.url);
export const { Client } = require("pg");

const installed = () => {
  const versions = existsSync("/usr/lib/postgresql") ? readdirSync("/usr/lib/postgresql").sort().reverse() : [];
  return [...(process.env.PATH ?? "").split(delimiter), ...versions.map((version) => `/usr/lib/postgresql/${version}/bin`)];
};
/** The program of the server. Debian keeps it outside of PATH. */
const POSTGRES = process.env.HOPLINE_POSTGRES ?? installed().map((folder) => join(folder, "postgres")).find(existsSync);
/** The reason for which tests over a server are skipped. */
export const skip = POSTGRES || process.env.CI === "true" ? false : "postgres is not installed; HOPLINE_POSTGRES may name the program";

/** The user and group of the server, which does not run as root. */
const who = () => (process.getuid() === 0 ? Object.fromEntries(["uid", "gid"].map((kind) => [kind, Number(execFileSync("id", [kind === "uid" ? "-u" : "-g", "postgres"]))])) : {});

export class Server {
  static async start() {
    const server = new Server();
    server.folder = mkdtempSync(join(tmpdir(), "hopline-pg-"));
    server.who = who();
    if (server.who.uid !== undefined) chownSync(server.folder, server.who.uid, server.who.gid);
    const initdb = join(dirname(POSTGRES), "initdb");
    const program = existsSync(initdb) ? initdb : join(dirname(execFileSync("readlink", ["-f", POSTGRES], { encoding: "utf8" }).trim()), "initdb");
    execFileSync(program, ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync", "-D", join(server.folder, "data")], { ...server.who, cwd: "/", stdio: "ignore" });
    [server.admin, server.dsn] = ["postgres", "worker"].map((role) => `postgresql://${role}@/postgres?host=${encodeURIComponent(server.folder)}`);
    await server.begin();
    await server.sql("create role worker login");
    await server.sql(readFileSync(join(dirname(require.resolve("hopline/package.json")), "postgres.sql"), "utf8"));
    await server.sql("grant usage on schema hopline to worker; grant execute on all functions in schema hopline to worker");
    return server;
  }

  /** Starts the program, with nothing flushed to the disk, which no test looks at. */
  async begin() {
    const settings = ["listen_addresses=", "max_connections=60", "autovacuum=off"].flatMap((setting) => ["-c", setting]);
    this.process = spawn(POSTGRES, ["-D", join(this.folder, "data"), "-k", this.folder, ...settings, "-F"], { ...this.who, cwd: "/", stdio: "ignore" });
    for (;;) {
      const client = new Client({ connectionString: this.admin });
      client.on("error", () => {});
      try {
        await client.connect();
        this.client = client;
        return;
      } catch (error) {
        if (this.process.exitCode !== null) throw error;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  async stop() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGQUIT");
    await ended;
  }

  async sql(statement, given) {
    const told = await this.client.query({ text: statement, values: given, rowMode: "array" });
    return told.rows;
  }

  empty() {
    return this.sql("truncate hopline.names, hopline.owners, hopline.days, hopline.entries");
  }

  async close() {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
