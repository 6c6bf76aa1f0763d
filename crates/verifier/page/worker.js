"use strict";
// Fetches, and asks the module. It runs beside the page, so that the page answers while signatures are checked, and can end it.

const PATIENCE = 60000; // milliseconds for one file or answer
let module = null;
let memoryArrives = null;

// Requests are numbers and strings as crates/proof/src/bytes.rs has them.
class Request {
  constructor(kind) { this.parts = [Uint8Array.of(kind)]; }
  byte(byte) { this.parts.push(Uint8Array.of(byte)); return this; }
  number(number) {
    let rest = BigInt(number);
    const bytes = [];
    while (rest >= 0x80n) { bytes.push(Number(rest & 0x7fn) | 0x80); rest >>= 7n; }
    bytes.push(Number(rest));
    this.parts.push(Uint8Array.from(bytes));
    return this;
  }
  string(bytes) { this.number(bytes.length); this.parts.push(bytes); return this; }
  text(text) { return this.string(new TextEncoder().encode(text)); }
  bytes() {
    const length = this.parts.reduce((sum, part) => sum + part.length, 0);
    const place = module.reserve(length);
    const into = new Uint8Array(module.memory.buffer, place, length);
    let at = 0;
    for (const part of this.parts) { into.set(part, at); at += part.length; }
    const bytes = module.call();
    return new Uint8Array(module.memory.buffer, module.response(), bytes).slice();
  }
  told() {
    const told = JSON.parse(new TextDecoder().decode(this.bytes()));
    if (told.misuse) throw new Error(told.misuse);
    return told;
  }
}

function fromHexadecimal(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => parseInt(digits, 16));
}

// What came of a file: its bytes, nothing, or what went wrong. No more is taken than was said, nor than is left for all.
async function fetched(server, wanted, left) {
  const failed = (what) => ({ failed: `${wanted.path}: ${what}` });
  // No cache: one that asks whether a file is newer would show today's to who is served yesterday's.
  const options = { cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer", signal: AbortSignal.timeout(PATIENCE) };
  if (wanted.question !== null) Object.assign(options, { method: "POST", body: fromHexadecimal(wanted.question) });
  try {
    const response = await fetch(`${server}/${wanted.path}`, options);
    if (response.status === 404 || response.status === 410) return { nothing: true };
    if (response.status === 422) return failed("too much for this server: ask for less");
    if (response.status === 503) return failed("the server is loading it, or busy");
    if (!response.ok) return failed(`the server answers with status ${response.status}`);
    const parts = [];
    let length = 0;
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      length += value.length;
      left.bytes -= value.length;
      if (length > wanted.most || left.bytes < 0) {
        await reader.cancel();
        return failed("more bytes than this page takes");
      }
      parts.push(value);
    }
    const bytes = new Uint8Array(length);
    parts.reduce((at, part) => { bytes.set(part, at); return at + part.length; }, 0);
    return { bytes };
  } catch (error) {
    if (error.name === "TimeoutError") return failed(`no answer within ${PATIENCE / 1000} s`);
    return failed("it could not be reached: it is down, or the address is wrong or leads elsewhere, or it does not let pages from elsewhere read (CORS)");
  }
}

function bring(path, came) {
  const request = new Request(3).text(path);
  if (came.bytes) request.byte(0).string(came.bytes);
  else if (came.nothing) request.byte(1);
  else request.byte(2).text(came.failed);
  return request.told();
}

function begin(asked, remembered) {
  const request = new Request(1).text(asked.owner).text(asked.sql);
  return request.number(asked.now).number(asked.clockError).number(asked.maxAge).string(remembered).told();
}

async function ask(asked) {
  let begun = begin(asked, new Uint8Array());
  if (begun.refused) return begun;
  postMessage({ begun });
  const remembered = await new Promise((arrive) => { memoryArrives = arrive; });
  begun = begin(asked, fromHexadecimal(remembered));
  if (begun.refused) return begun;
  let files = 0;
  for (;;) {
    const step = new Request(2).told();
    if (!step.wanted) return { ...step, ...begun };
    const left = { bytes: step.bytesLeft };
    const came = await Promise.all(step.wanted.map((wanted) => fetched(asked.server, wanted, left)));
    for (const [at, wanted] of step.wanted.entries()) {
      const told = bring(wanted.path, came[at]);
      if (told.refused) return { ...told, ...begun, memory: step.memory };
    }
    files += came.length;
    postMessage({ progress: files });
  }
}

function corrupt({ kind, row, column, bit, path }) {
  const request = new Request(5).byte(kind);
  if (kind === 0) request.number(row).number(column);
  if (kind === 1) request.number(row);
  if (kind === 2) request.number(bit);
  if (kind === 4) request.text(path).number(bit);
  return request.told();
}

const WORK = {
  async module(bytes) { module = (await WebAssembly.instantiate(bytes, {})).instance.exports; return {}; },
  ask,
  rows: ({ from, count }) => new Request(4).number(from).number(count).told(),
  corrupt,
  keep: () => ({ bytes: new Request(6).bytes() }),
  newer: (stored) => new Request(7).string(fromHexadecimal(stored)).told(),
};

onmessage = async ({ data }) => {
  if (data.remembered !== undefined) return memoryArrives?.(data.remembered);
  try {
    postMessage({ id: data.id, done: await WORK[data.work](data.with) });
  } catch (error) {
    postMessage({ id: data.id, broken: String(error?.message ?? error) });
  }
};
