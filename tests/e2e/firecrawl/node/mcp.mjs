// Speaks MCP over stdio with firecrawl-mcp: initialise, list the tools, scrape a page, map a site.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [program, apiUrl, site] = process.argv.slice(2);
const server = spawn(process.execPath, [program], {
  env: { ...process.env, FIRECRAWL_API_URL: apiUrl, FIRECRAWL_API_KEY: "fc-anything" },
  stdio: ["pipe", "pipe", "inherit"],
});
const waiting = new Map();
createInterface({ input: server.stdout }).on("line", (line) => {
  if (!line.startsWith("{")) return;
  const message = JSON.parse(line);
  waiting.get(message.id)?.(message);
});
let last = 0;
const ask = (method, params) =>
  new Promise((resolve) => {
    const id = ++last;
    waiting.set(id, resolve);
    server.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
  });

await ask("initialize", {
  protocolVersion: "2024-11-05",
  capabilities: {},
  clientInfo: { name: "test", version: "1" },
});
server.stdin.write(JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }) + "\n");
const tools = await ask("tools/list", {});
const scraped = await ask("tools/call", {
  name: "firecrawl_scrape",
  arguments: { url: site + "/journal/the-bees-that-keep-appointments/", formats: ["markdown"] },
});
const mapped = await ask("tools/call", {
  name: "firecrawl_map",
  arguments: { url: site + "/", sitemap: "only" },
});
process.stdout.write(
  JSON.stringify({
    tools: tools.result.tools.map((tool) => tool.name),
    scraped: scraped.result,
    mapped: mapped.result,
  }),
);
server.kill();
process.exit(0);
