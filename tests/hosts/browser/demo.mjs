// A story in a page: `cargo xtask demo --host browser [--story life|reseller] [--seed N]`.
import { story } from "../node/test/lib/story.mjs";

await import(`./demo-${story}.mjs`);
