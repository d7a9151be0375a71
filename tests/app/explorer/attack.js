// Tries to reach another origin by all means that a page has; returns how each attempt ended.
async ({targets, socket}) => {
  const outcomes = [], note = (how, url, result) => outcomes.push([how, url, String(result)]);
  const soon = (set, ms = 4000) => new Promise(done => { set(done); setTimeout(() => done("timeout"), ms); });
  const methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"];
  const jobs = [];
  for (const url of targets) {
    for (const method of methods) {
      for (const mode of ["cors", "no-cors", "same-origin"]) {
        for (const extra of [{}, {credentials: "include", redirect: "manual"}, {headers: {"X-Custom": "1"}, referrerPolicy: "no-referrer"}]) {
          jobs.push(fetch(url, {method, mode, ...extra}).then(async r => note(`fetch ${method} ${mode}`, url, r.type === "opaque" || r.type === "opaqueredirect" ? "opaque" : `read ${r.status} ${(await r.text()).length}`),
            () => note(`fetch ${method} ${mode}`, url, "refused")));
        }
      }
    }
    for (const [tag, attribute, more] of [["img", "src"], ["script", "src"], ["script", "src", {type: "module"}], ["link", "href", {rel: "stylesheet"}],
        ["link", "href", {rel: "prefetch"}], ["link", "href", {rel: "preload", as: "script"}], ["link", "href", {rel: "modulepreload"}], ["link", "href", {rel: "manifest"}],
        ["video", "src"], ["audio", "src"], ["source", "src"], ["track", "src"], ["input", "src", {type: "image"}]]) {
      jobs.push(soon(done => {
        const node = document.createElement(tag);
        Object.assign(node, more);
        node.onload = () => done("loaded");
        node.onerror = () => done("refused");
        node[attribute] = url;
        document.body.append(node);
      }, 800).then(result => note(`<${tag} ${JSON.stringify(more || {})}>`, url, result)));
    }
    for (const [tag, attribute, more] of [["iframe", "src"], ["iframe", "src", {sandbox: "allow-scripts allow-same-origin"}], ["object", "data"], ["object", "data", {type: "text/html"}], ["embed", "src"], ["frame", "src"]]) {
      jobs.push(soon(done => {
        const node = document.createElement(tag);
        for (const name in more || {}) node.setAttribute(name, more[name]);
        node.onload = () => {
          let inside = "opaque";
          try { inside = node.contentDocument ? `read ${node.contentDocument.body.textContent.length}` : "opaque"; } catch { }
          done(`${inside}, ${node.contentWindow ? node.contentWindow.length : 0} frames`);
        };
        node.onerror = () => done("refused");
        node.setAttribute(attribute, url);
        document.body.append(node);
      }, 800).then(result => note(`<${tag}>`, url, result)));
    }
    jobs.push(soon(done => { const worker = (() => { try { return new Worker(url); } catch { return null; } })(); if (!worker) return done("refused"); worker.onerror = () => done("refused"); worker.onmessage = () => done("message"); }, 800).then(result => note("Worker", url, result)));
    jobs.push(soon(done => { const events = new EventSource(url); events.onopen = () => done("open"); events.onerror = () => { events.close(); done("refused"); }; }, 800).then(result => note("EventSource", url, result)));
    jobs.push(import(url).then(() => note("import", url, "loaded"), () => note("import", url, "refused")));
    navigator.sendBeacon(url, "a=1");
    const font = new FontFace("x", `url(${url})`);
    jobs.push(font.load().then(() => note("font", url, "loaded"), () => note("font", url, "refused")));
  }
  for (const url of socket) {
    for (const protocols of [[], ["bokeh", "token"]]) {
      jobs.push(soon(done => {
        const one = new WebSocket(url, protocols);
        one.onopen = () => done("open");
        one.onerror = () => done("refused");
      }).then(result => note("WebSocket", url, result)));
    }
  }
  await Promise.all(jobs);
  return outcomes;
}
