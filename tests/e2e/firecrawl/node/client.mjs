// Drives firecrawl-js against a server; prints what it got as one JSON object.
import Firecrawl from "@mendable/firecrawl-js";

const [apiUrl, site] = process.argv.slice(2);
const client = new Firecrawl({ apiUrl, apiKey: "fc-anything" });
const at = (target) => site + target;
const said = {};

const page = await client.scrape(at("/journal/the-bees-that-keep-appointments/"), {
  formats: ["markdown", "html", "rawHtml", "links"],
  maxAge: 0,
});
said.scrape = {
  markdown: page.markdown,
  html: page.html,
  rawHtml: page.rawHtml.slice(0, 100).toLowerCase(),
  links: page.links,
  title: page.metadata.title,
  sourceURL: page.metadata.sourceURL,
  statusCode: page.metadata.statusCode,
};

const crawl = await client.crawl(at("/manual/"), {
  limit: 5,
  sitemap: "skip",
  maxConcurrency: 4,
  pollInterval: 1,
});
said.crawl = { status: crawl.status, urls: crawl.data.map((d) => d.metadata.sourceURL) };

const started = await client.startCrawl(at("/glossary/"), { limit: 100, delay: 1 });
said.cancelled = await client.cancelCrawl(started.id);
said.afterwards = (await client.getCrawlStatus(started.id)).status;

const urls = ["azimuth", "blaze", "col"].map((word) => at(`/glossary/${word}/`));
const batch = await client.startBatchScrape(urls.slice(0, 2), { options: { formats: ["markdown"] } });
await client.startBatchScrape(urls.slice(2), { appendToId: batch.id });
let status = await client.getBatchScrapeStatus(batch.id);
for (let turn = 0; turn < 100 && (status.status !== "completed" || status.data.length < 3); turn++) {
  await new Promise((resolve) => setTimeout(resolve, 200));
  status = await client.getBatchScrapeStatus(batch.id);
}
said.batch = status.data.map((d) => d.metadata.sourceURL);

const watched = await client.startCrawl(at("/services/"), { limit: 4, sitemap: "skip" });
said.watched = await new Promise((resolve, reject) => {
  const seen = [];
  const watcher = client.watcher(watched.id, { kind: "crawl", timeout: 60 });
  watcher.on("document", (document) => seen.push((document.data ?? document).metadata.sourceURL));
  watcher.on("error", reject);
  watcher.on("done", () => resolve(seen));
  watcher.start();
});

said.map = (await client.map(at("/"), { sitemap: "only" })).links.map((link) => link.url);
said.usage = await client.getCreditUsage();
said.concurrency = await client.getConcurrency();
said.queue = await client.getQueueStatus();

said.errors = {};
for (const [name, call] of Object.entries({
  robots: () => client.scrape(at("/private/ledger/")),
  profile: () => client.scrape(at("/"), { profile: { name: "mine" } }),
  job: () => client.getCrawlStatus("00000000-0000-7000-8000-000000000000"),
})) {
  try {
    await call();
  } catch (error) {
    said.errors[name] = { status: error.status ?? error.statusCode, message: String(error.message) };
  }
}

process.stdout.write(JSON.stringify(said));
process.exit(0);
