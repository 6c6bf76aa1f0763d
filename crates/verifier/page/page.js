"use strict";
// The page. Whatever a mirror sends is put in as text, never as markup; the policy in the head holds that too.

const ROWS_AT_ONCE = 200;
const CAUGHT_MAX = 20;
const ANY_AGE = "18446744073709551615";
const KINDS = { value: 0, row: 1, summary: 2, yesterday: 3, bit: 4 };
const byId = (id) => document.getElementById(id);

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// ---- the worker, which fetches and checks ----

const policy = window.trustedTypes?.createPolicy("counterfoil", {
  createScriptURL: (url) => { if (url.startsWith("blob:")) return url; throw new TypeError("only the page's own worker"); },
}) ?? { createScriptURL: (url) => url };
const workerUrl = policy.createScriptURL(URL.createObjectURL(new Blob([byId("worker").textContent], { type: "text/javascript" })));
const moduleBytes = Uint8Array.from(atob(byId("module").textContent), (letter) => letter.charCodeAt(0));

let worker = null;
let waiting = new Map();
let lastId = 0;

function start() {
  worker?.terminate();
  for (const { reject } of waiting.values()) reject(new Error("stopped"));
  waiting = new Map();
  worker = new Worker(workerUrl);
  worker.onmessage = ({ data }) => {
    if (data.begun !== undefined) {
      asked.owner = data.begun.owner;
      worker.postMessage({ remembered: recalled(data.begun.owner, data.begun.table)?.memory ?? "" });
      return;
    }
    if (data.progress !== undefined) { byId("progress").textContent = `${data.progress} files fetched`; return; }
    const { resolve, reject } = waiting.get(data.id) ?? {};
    waiting.delete(data.id);
    if (data.broken === undefined) resolve?.(data.done);
    else reject?.(new Error(data.broken));
  };
  worker.onerror = (event) => {
    for (const { reject } of waiting.values()) reject(new Error(event.message || "the checking part could not be started"));
    waiting.clear();
  };
  return work("module", moduleBytes);
}

function work(name, argument) {
  const id = ++lastId;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    worker.postMessage({ id, work: name, with: argument });
  });
}

// ---- what is remembered of an owner's table ----

let asked = null; // the question that is being asked, or was last
const place = (owner, table) => `counterfoil/1/${owner}/${encodeURIComponent(table)}`;

function stored(key) {
  try { return localStorage.getItem(key); } catch { return null; }
}

function recalled(owner, table) {
  try {
    const kept = JSON.parse(stored(place(owner, table)));
    return kept && typeof kept.memory === "string" ? kept : null;
  } catch {
    // Not what this page wrote: the module says so, and nothing is believed meanwhile.
    return { memory: "00" };
  }
}

// Keeps what was seen, unless another page has seen something newer meanwhile. Gives whether it is kept.
async function remember(owner, table, memory) {
  if (!memory) return false;
  try {
    for (;;) {
      const before = stored(place(owner, table));
      const newer = await work("newer", recalled(owner, table)?.memory ?? "");
      if (stored(place(owner, table)) !== before) continue;
      const kept = JSON.stringify({ memory: newer.memory, at: Date.now() });
      localStorage.setItem(place(owner, table), kept);
      return stored(place(owner, table)) === kept;
    }
  } catch {
    return false;
  }
}

function showRemembered(table, isKept) {
  const told = isKept
    ? `This browser remembers what it saw of ${table} by ${asked.owner}. From now on nothing older is accepted, whichever server shows it.`
    : `Nothing could be kept in this browser: an older state of ${table} would not be noticed the next time. Compare the time in the verdict yourself.`;
  byId("remembered").textContent = told;
  byId("forget").hidden = !stored(place(asked.owner, table));
  byId("forget").onclick = () => {
    localStorage.removeItem(place(asked.owner, table));
    byId("forget").hidden = true;
    byId("remembered").textContent = `What was seen of ${table} is forgotten.`;
  };
}

// ---- the question ----

function server() {
  const url = new URL(byId("server").value.trim());
  if (url.protocol !== "http:" && url.protocol !== "https:") throw new Error("A server's address begins with http:// or https://.");
  if (url.username || url.password) throw new Error("A server's address has no user and no password in it.");
  return (url.origin + url.pathname).replace(/\/+$/, "");
}

function question() {
  const seconds = (value) => BigInt(Math.max(0, Math.round(Number(value) || 0)));
  const maxAge = byId("max-age").value;
  return {
    server: server(),
    owner: byId("owner").value.trim(),
    sql: byId("sql").value,
    now: Date.now(),
    clockError: (seconds(byId("clock-error").value) * 1000n).toString(),
    maxAge: maxAge === "" ? ANY_AGE : (seconds(maxAge) * 1000n).toString(),
  };
}

let isAsking = false;

async function ask(event) {
  event.preventDefault();
  if (isAsking) return;
  clear();
  try {
    asked = question();
  } catch (error) {
    return showRefused({ kind: "sql", word: "not asked", text: error.message });
  }
  isAsking = true;
  setBusy(true);
  try {
    await start();
    const told = await work("ask", asked);
    const isKept = told.table === undefined ? false : await remember(told.owner, told.table, told.memory);
    if (told.refused) showRefused(told.refused);
    else await showRead(told, isKept);
    if (told.memory) showRemembered(told.table, isKept);
  } catch (error) {
    showBroken(error);
  } finally {
    isAsking = false;
    setBusy(false);
  }
}

function showBroken(error) {
  if (error.message === "what was remembered of a published table") {
    showRefused({ kind: "sql", word: "not asked", text: "What this browser remembers of this table is damaged. Forget it, and ask again: an older state is then not noticed once." });
    byId("forget").hidden = false;
    byId("forget").onclick = () => {
      const begins = `counterfoil/1/${asked.owner}/`;
      Object.keys(localStorage).filter((key) => key.startsWith(begins)).forEach((key) => localStorage.removeItem(key));
      byId("forget").hidden = true;
    };
    return;
  }
  const text = error.message === "stopped" ? "You stopped it. Nothing was verified." : `The checking part broke off, so nothing was verified: ${error.message}`;
  showRefused({ kind: "silent", word: "no answer", text });
}

function setBusy(isBusy) {
  byId("ask").disabled = isBusy;
  byId("stop").hidden = !isBusy;
  byId("progress").textContent = isBusy ? "asking" : "";
}

function clear() {
  for (const id of ["result", "rows", "dishonest", "more"]) byId(id).hidden = true;
  for (const id of ["facts", "caught", "file"]) byId(id).replaceChildren();
  byId("rows").querySelector("thead").replaceChildren();
  byId("rows").querySelector("tbody").replaceChildren();
  byId("progress").textContent = "";
}

// ---- the verdict ----

const WORDS = {
  refused: ["Refused", "Do not use what this server says. Ask another one."],
  silent: ["No answer", "Nothing is known. Try again, or ask another server."],
  sql: ["Not asked", "Nothing was sent."],
};

function showVerdict(tone, word, text, advice) {
  byId("verdict").className = `ticket ${tone}`;
  byId("verdict-word").textContent = word;
  byId("verdict-text").textContent = text;
  byId("verdict-advice").textContent = advice;
  byId("result").hidden = false;
  byId("result").focus({ preventScroll: true });
  byId("result").scrollIntoView({ block: "nearest" });
}

function showRefused({ kind, word, text }) {
  const [title, advice] = WORDS[kind];
  showVerdict(kind === "refused" ? "no" : "silent", kind === "refused" ? `${title}: ${word}` : title, text, advice);
}

const many = (count, one, more = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : more}`;

function bytesText(bytes) {
  return bytes < 10240 ? many(bytes, "byte") : bytes < 10485760 ? `${Math.round(bytes / 1024).toLocaleString("en")} KB` : `${Math.round(bytes / 1048576).toLocaleString("en")} MB`;
}

function fact(name, text, className) {
  const group = element("div", undefined, className);
  group.append(element("dt", name), element("dd", text));
  byId("facts").append(group);
}

async function showRead(told, isKept) {
  const read = told.read;
  const advice = read.wasAsked ? "" : "No row can match, whatever the table holds, so nobody was asked.";
  showVerdict("yes", "Verified", `${read.verdict[0].toUpperCase()}${read.verdict.slice(1)}.`, advice);
  fact("Rows", read.count.toLocaleString("en"));
  fact("Signatures checked", read.signatures.toLocaleString("en"));
  fact("Summaries of changes", read.periods.toLocaleString("en"));
  fact("Fetched", `${bytesText(read.bytes)} in ${many(read.files, "file")}, ${many(read.rounds, "round")}`);
  fact("As of, by your clock", new Date(read.asOf).toLocaleString());
  fact("Compared with what was seen before", isKept ? "yes, and kept" : "not kept in this browser");
  fact("How it was answered", read.plan, "wide");
  fact("Signed by", asked.owner, "wide");
  await showRows(read);
  showDishonest(told);
}

async function showRows(read) {
  const head = element("tr");
  for (const [at, name] of read.names.entries()) {
    const cell = element("th", name, read.numbers[at] ? "number" : "");
    cell.scope = "col";
    cell.append(element("small", read.kinds[at].toLowerCase()));
    head.append(cell);
  }
  byId("rows").querySelector("thead").append(head);
  byId("rows").hidden = false;
  byId("more").onclick = () => moreRows(read);
  await moreRows(read);
}

async function moreRows(read) {
  const body = byId("rows").querySelector("tbody");
  const { rows } = await work("rows", { from: body.childElementCount, count: ROWS_AT_ONCE });
  body.append(...rows.map((row) => rowOf(row, read.numbers)));
  const shown = body.childElementCount;
  byId("caption").textContent = shown < read.count ? `The first ${shown.toLocaleString("en")} of ${many(read.count, "row")}` : many(read.count, "row");
  byId("more").hidden = shown >= read.count || rows.length === 0;
}

function rowOf(row, numbers) {
  const made = element("tr");
  for (const [at, value] of row.entries()) {
    if (value === null) made.append(element("td", "NULL", "null"));
    else if (typeof value === "string") made.append(element("td", value, numbers[at] ? "number" : ""));
    else {
      const cell = element("td", value[0]);
      cell.append(element("span", ` ... and ${many(value[1], "character")} more`, "rest"));
      made.append(cell);
    }
  }
  return made;
}

async function keep() {
  const { bytes } = await work("keep");
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([bytes]));
  link.download = "answer.foil-answer";
  link.click();
  URL.revokeObjectURL(link.href);
}

// ---- the dishonest mirror ----

function showDishonest(told) {
  byId("dishonest").hidden = !told.read.wasAsked;
  const files = told.used.map(([path, bytes]) => { const option = element("option", `${path} (${bytesText(bytes)})`); option.value = path; return option; });
  const any = element("option", "any of them");
  any.value = "";
  byId("file").replaceChildren(any, ...files);
}

function kind() {
  return new FormData(byId("corruption")).get("kind");
}

function showKind() {
  const labels = { value: "Which row or part (empty: any)", row: "Which row or part (empty: any)", summary: "Which bit (empty: any)", bit: "Which bit (empty: any)" };
  byId("place-field").hidden = !(kind() in labels);
  byId("file-field").hidden = kind() !== "bit";
  byId("place-label").textContent = labels[kind()] ?? "";
  byId("place").value = "";
}

const random = () => crypto.getRandomValues(new Uint32Array(1))[0];

async function corrupt(event) {
  event.preventDefault();
  const given = Math.floor(Number(byId("place").value));
  const at = given >= 1 && Number.isSafeInteger(given) ? given - 1 : random();
  byId("corrupt").disabled = true;
  try {
    const told = await work("corrupt", { kind: KINDS[kind()], row: at, bit: at, column: random(), path: byId("file").value });
    showCaught(told);
  } catch (error) {
    showCaught({ refused: { word: "broke off", text: error.message }, what: "the checking part ended" });
  } finally {
    byId("corrupt").disabled = false;
  }
}

function showCaught(told) {
  const made = element("li");
  if (told.nothing) {
    made.className = "harmless";
    made.append(element("b", "There is nothing of this kind in this answer."));
  } else if (told.accepted === "same") {
    made.className = "harmless";
    made.append(element("b", "Accepted: the rows are the same. What was changed says nothing."), element("span", told.what));
  } else if (told.accepted === "other") {
    made.append(element("b", "NOT CAUGHT. This must not happen: please report it."), element("span", told.what));
  } else {
    const silent = told.refused.kind === "silent";
    made.append(element("b", silent ? "Caught: no rows without it" : `Caught: ${told.refused.word}`), element("span", `${told.what}. ${told.refused.text}`));
  }
  byId("caught").prepend(made);
  while (byId("caught").childElementCount > CAUGHT_MAX) byId("caught").lastElementChild.remove();
}

// ---- what a link presets ----

const FIELDS = ["server", "owner", "sql"];

function preset() {
  const given = new URLSearchParams(location.hash.slice(1));
  const came = FIELDS.filter((field) => given.has(field));
  for (const field of came) byId(field).value = given.get(field);
  if (!given.has("sql") && given.get("table")) {
    const name = given.get("table");
    byId("sql").value = `SELECT * FROM ${/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`} LIMIT 20`;
    came.push("table");
  }
  byId("from-link").hidden = came.length === 0;
  byId("from-link-fields").textContent = came.join(", ");
  if (byId("server").value === "" && location.protocol.startsWith("http")) {
    byId("server").value = new URL(".", location.href.split("#")[0]).href;
  }
  showLink();
}

function showLink() {
  const given = new URLSearchParams(FIELDS.map((field) => [field, byId(field).value]).filter(([, value]) => value !== ""));
  byId("link").href = `#${given}`;
}

byId("question").addEventListener("submit", ask);
byId("question").addEventListener("input", showLink);
byId("sql").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("question").requestSubmit();
});
byId("stop").addEventListener("click", () => start().catch(() => {}));
byId("keep").addEventListener("click", keep);
byId("corruption").addEventListener("submit", corrupt);
byId("corruption").addEventListener("change", (event) => { if (event.target.name === "kind") showKind(); });
window.addEventListener("hashchange", preset);
byId("remembered").textContent = "Nothing yet. What is seen of an owner's table is remembered in this browser, so that no server can show you anything older afterwards. The first time there is nothing to compare with: look at the time in the verdict.";
preset();
showKind();
