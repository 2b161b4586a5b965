// A story through the installed npm package: `cargo xtask demo --host node [--story life|reseller] [--seed N]`.
import { story } from "./test/lib/story.mjs";

await import(`./demo-${story}.mjs`);
