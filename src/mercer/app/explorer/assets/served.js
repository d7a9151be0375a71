// Connects the view to the server of this page over a websocket, and connects again if the connection is lost.

const STOPPED = 4000; // close code of the server when it is stopped
const MAX_RETRY_SECONDS = 60; // after this time without connection, the page waits for the user
const MAX_DELAY_MS = 5000; // longest interval between two attempts
const RECONNECTING = "Connection lost – reconnecting …";
const CONNECTION_LOST = "The connection to the server was closed, usually because the explorer was stopped. Start it again and open the new address.";
const MODELS_LOST = "The server no longer had the models of this page. The page shows the initial models; your selection was kept.";
const REQUESTS_WITH_REPLY = new Set(["preimage", "column", "field", "components", "clusters", "page"]); // the reply to these requests has the same kind
const STORED_REQUESTS = new Set(["select", "filter"]); // the server stores the content of these requests

/** Return the subject of a request or of its reply; a newer request replaces an older one with the same subject. */
const subjectOf = (kind, {name, pane}) => kind === "column" ? `column ${name}` : ["field", "components", "clusters"].includes(kind) ? `${kind} ${pane}` : kind;

class Connection {
  constructor(root) {
    this.root = root;
    this.linked = new LinkedView(root, this);
    this.page = Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, "0")).join("");
    this.unanswered = new Map(); // requests to send again after a lost connection, by subject
    this.banner = h("div", {class: "notices", role: "alert"});
    document.addEventListener("visibilitychange", () => { if (!document.hidden && this.timer) this.connect(); });
    this.root.textContent = "Loading the points …";
    this.connect();
  }

  connect() {
    clearTimeout(this.timer);
    this.timer = null;
    const address = new URL(`/ws${location.search}`, location.href);
    address.protocol = "ws:";
    const socket = this.socket = new WebSocket(address), scene = this.linked.view?.scene;
    this.isReady = false;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => socket.send(JSON.stringify({type: "scene", page: this.page, key: scene?.key, version: scene?.version}));
    socket.onmessage = ({data}) => this.receive(data);
    socket.onclose = ({code}) => this.closed(code);
  }

  /** Send a request, now or when the connection is restored. */
  send(request) {
    const subject = subjectOf(request.type, request);
    if (!this.isReady || REQUESTS_WITH_REPLY.has(request.type) || STORED_REQUESTS.has(request.type)) {
      const waiting = request.type === "fit" ? this.unanswered.get(subject) : null;
      this.unanswered.set(subject, {...waiting, ...request});
    }
    if (this.isReady) this.socket.send(JSON.stringify(request));
  }

  receive(data) {
    const message = this.linked.receive(data), {kind} = message;
    if (REQUESTS_WITH_REPLY.has(kind)) this.unanswered.delete(subjectOf(kind, message));
    if (this.isReady || (kind !== "scene" && kind !== "resumed")) return;
    this.isReady = true;
    this.lostAt = null;
    this.say("");
    if (message.is_new) this.linked.view.notice(MODELS_LOST);
    if (kind === "scene") return this.unanswered.clear(); // they are about other points
    for (const [subject, request] of [...this.unanswered]) {
      if (!REQUESTS_WITH_REPLY.has(request.type) && !STORED_REQUESTS.has(request.type)) this.unanswered.delete(subject);
      this.socket.send(JSON.stringify(request));
    }
  }

  closed(code) {
    this.isReady = false;
    this.lostAt ||= performance.now();
    const waited = performance.now() - this.lostAt;
    if (code === STOPPED || waited > 1000 * MAX_RETRY_SECONDS) {
      this.lostAt = null;
      return this.say(CONNECTION_LOST, true);
    }
    this.say(RECONNECTING);
    this.timer = setTimeout(() => this.connect(), Math.min(MAX_DELAY_MS, 250 + waited / 2));
  }

  /** Show the state of the connection; an unchanged text is not written again, so that it is announced once. */
  say(text, canRetry = false) {
    const {view} = this.linked, retry = h("button", {type: "button", onclick: () => { this.say(RECONNECTING); this.connect(); }}, "Reconnect");
    if (text === this.shown) return;
    this.shown = text;
    if (view && this.banner.parentNode !== view.notices.parentNode) view.notices.before(this.banner);
    else if (!view) this.root.replaceChildren(this.banner);
    this.banner.replaceChildren(...(text ? [h("p", {}, text, canRetry ? retry : null)] : []));
  }
}

new Connection(document.getElementById("explorer"));
