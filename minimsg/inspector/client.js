// The server that the page came from: JSON questions and streams, with the key that was typed in.
// The key lives as long as the tab.

const KEY = "minimsg-key";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class Client {
  constructor(base = new URL("../", import.meta.url)) {
    this.base = base;
  }

  get key() {
    return sessionStorage.getItem(KEY) ?? "";
  }

  set key(key) {
    sessionStorage.setItem(KEY, key);
  }

  // The JSON answer. Throws Refused.
  async get(path) {
    return (await this.fetch(path)).json();
  }

  async post(path, body = {}) {
    return (await this.fetch(path, { body })).json();
  }

  // The response, whatever it holds. Throws Refused with the server's own words.
  async fetch(path, { body, headers, signal } = {}) {
    const response = await fetch(new URL(path, this.base), {
      method: body === undefined ? "GET" : "POST",
      headers: { ...this.headers(body), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
    if (!response.ok) throw new Refused(response.status, await words(response));
    return response;
  }

  headers(body) {
    const headers = { "anthropic-version": "2023-06-01" };
    if (body !== undefined) headers["content-type"] = "application/json";
    if (this.key) headers["x-api-key"] = this.key;
    return headers;
  }
}

async function words(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `status ${response.status}`;
  }
}
