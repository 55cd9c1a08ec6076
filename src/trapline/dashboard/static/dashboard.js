// The dashboard works without this script; it swaps live parts, moves by keyboard and shows local times.
"use strict";
(() => {
  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
  const root = document.body.dataset.root || "";
  document.documentElement.classList.add("script");

  // Times in the reader's own zone, and distances that stay true while the page is open.
  const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" });
  const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const distance = (date) => {
    const seconds = (date - Date.now()) / 1000;
    const [unit, size] = units.find(([, length]) => Math.abs(seconds) >= length) || units[3];
    return relative.format(Math.round(seconds / size), unit);
  };
  const localTimes = (within = document) => $$("time[datetime]", within).forEach((element) => {
    const date = new Date(element.dateTime);
    element.title = full.format(date);
    const text = "ago" in element.dataset ? distance(date) : clock.format(date);
    if (element.textContent !== text) element.textContent = text;
  });
  localTimes();
  setInterval(localTimes, 10000);

  // Live parts: the server sends the whole state of each part; a part that is the same stays untouched.
  const main = $("main");
  const banner = $("#banner");
  const state = $(".live-state");
  const say = (text) => { banner.textContent = text; banner.hidden = !text; };
  let source = null, paused = false, over = false;
  const mark = () => {
    if (!state) return;
    state.classList.toggle("on", Boolean(source) && !paused);
    state.textContent = over ? "" : paused ? "paused (p)" : source ? "live" : "";
  };
  const swap = (html) => {
    const parsed = new DOMParser().parseFromString(html, "text/html");
    for (const part of $$("body > [id], body > .grid > [id]", parsed)) {
      const present = document.getElementById(part.id);
      if (!present || present.dataset.html === part.outerHTML || present.contains(document.activeElement)) continue;
      const html = part.outerHTML;
      localTimes(part);
      const scrolled = $(".log", present)?.scrollTop;
      present.replaceWith(part);
      part.dataset.html = html;
      if (scrolled) $(".log", part).scrollTop = scrolled;
      if (part.dataset.title) document.title = part.dataset.title;
    }
  };
  const open = () => {
    if (source || paused || over || document.hidden) return;
    source = new EventSource(main.dataset.live);
    source.addEventListener("parts", (event) => { say(""); swap(JSON.parse(event.data)); mark(); });
    source.addEventListener("offline", (event) => say(JSON.parse(event.data)));
    source.addEventListener("gone", () => say("This is no longer here."));
    source.addEventListener("signed-out", () => { over = true; close(); location.assign(root + "/sign-in?next=" + encodeURIComponent(location.pathname)); });
    source.addEventListener("end", () => { over = true; close(); if (main.dataset.live.includes("/jobs/")) location.reload(); });
    source.onerror = () => {
      say("The connection was lost; trying again.");
      if (source?.readyState === EventSource.CLOSED) { close(); setTimeout(open, 3000); }
    };
    mark();
  };
  const close = () => { source?.close(); source = null; mark(); };
  if (main.dataset.live) {
    open();
    document.addEventListener("visibilitychange", () => document.hidden ? close() : open());
  }

  // Confirmation before what cannot be undone.
  const confirmation = $("#confirm");
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.dataset.confirm || form.dataset.confirmed) return;
    event.preventDefault();
    $("#confirm-text").textContent = form.dataset.confirm;
    confirmation.returnValue = "no";
    confirmation.onclose = () => {
      if (confirmation.returnValue !== "yes") return;
      form.dataset.confirmed = "1";
      form.requestSubmit();
    };
    confirmation.showModal();
  });

  // Rows by j and k, the palette, the help.
  const palette = $("#palette");
  const views = $$(".side nav a").map((link) => [link.textContent, link.href]);
  const fill = () => {
    const field = $("input", palette), list = $("ul", palette);
    const words = field.value.toLowerCase();
    list.replaceChildren(...views.filter(([name]) => name.toLowerCase().includes(words)).map(([name, href], index) => {
      const item = document.createElement("li"), link = document.createElement("a");
      link.href = href;
      link.textContent = name;
      if (!index) item.className = "at";
      item.append(link);
      return item;
    }));
  };
  const move = (step) => {
    const rows = $$("[data-row]").map((link) => link.closest("tr, li, article"));
    if (!rows.length) return;
    const present = rows.findIndex((row) => row.classList.contains("at"));
    const next = Math.min(rows.length - 1, Math.max(0, present + step));
    rows[present]?.classList.remove("at");
    rows[next].classList.add("at");
    $("[data-row]", rows[next]).focus();
    rows[next].scrollIntoView({ block: "nearest" });
  };
  if (palette) {
    $("input", palette).addEventListener("input", fill);
    $("form", palette).addEventListener("submit", (event) => {
      const first = $("li.at a", palette);
      if (!first) return;
      event.preventDefault();
      location.assign(first.href);
    });
    $$("[data-open]").forEach((button) => button.addEventListener("click", () => document.getElementById(button.dataset.open).showModal()));
    document.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "k") { event.preventDefault(); fill(); palette.showModal(); return; }
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog[open]")) return;
      const action = {
        "/": () => ($("[data-search]") ?? palette.showModal())?.focus?.(),
        "?": () => $("#help").showModal(),
        j: () => move(1),
        k: () => move(-1),
        p: () => { if (!main.dataset.live || over) return; paused = !paused; if (paused) close(); else open(); mark(); },
      }[event.key];
      if (action) { event.preventDefault(); action(); }
    });
  }
  if (matchMedia("(max-width: 820px)").matches) $(".menu")?.removeAttribute("open");
  $$("[data-all]").forEach((box) => box.addEventListener("change", () => $$("input[name=job]").forEach((one) => { one.checked = box.checked; })));
  $$("[data-print]").forEach((button) => button.addEventListener("click", () => print()));
  $$("[data-copy]").forEach((button) => button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  }));

  // Uploads: each file by itself, with its own progress.
  const zone = $(".drop-zone");
  const upload = (file) => {
    const item = document.createElement("li"), name = document.createElement("bdi"), bar = document.createElement("progress"), word = document.createElement("span");
    name.textContent = file.name;
    bar.setAttribute("aria-label", file.name);
    bar.max = file.size || 1;
    bar.value = 0;
    item.append(name, bar, word);
    $(".uploads").append(item);
    const request = new XMLHttpRequest(), form = new FormData();
    const application = $("select[name=application]", zone);
    if (application?.value) form.append("applicationId", application.value);
    form.append("files", file);
    request.upload.onprogress = (event) => { bar.value = event.loaded; };
    request.onload = () => { bar.value = bar.max; word.textContent = request.status < 300 ? "taken" : request.responseText.slice(0, 200); };
    request.onerror = () => { word.textContent = "failed"; };
    request.open("POST", zone.dataset.upload);
    request.setRequestHeader("Accept", "text/plain");
    request.send(form);
  };
  if (zone) {
    zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
    zone.addEventListener("dragleave", () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => { event.preventDefault(); zone.classList.remove("over"); [...event.dataTransfer.files].forEach(upload); });
    $("input[type=file]", zone).addEventListener("change", (event) => { [...event.target.files].forEach(upload); event.target.value = ""; });
  }
})();
