// The list of running jobs: computations that take longer than a second, with their progress and a Cancel button.

class JobList {
  constructor(view) {
    this.view = view;
    this.jobs = new Map();
    this.element = h("div", {class: "jobs", role: "group", "aria-label": "Running computations"});
    view.on("job", message => { if (message.done) this.remove(message.id); else this.show(message); });
    view.on("resumed", ({text}) => { // the server sends the jobs that are still running again
      for (const id of [...this.jobs.keys()]) this.remove(id);
      view.showFitState({text, busy: true});
    });
  }

  show({id, title, text, fraction}) {
    if (!this.jobs.has(id)) this.add(id, title);
    const job = this.jobs.get(id);
    job.text.textContent = text;
    job.isCancelled = text === "cancelling";
    job.button.setAttribute("aria-disabled", String(job.isCancelled)); // a disabled button would lose the focus
    if (fraction === null) job.bar.removeAttribute("value"); else job.bar.value = fraction;
  }

  add(id, title) {
    const job = {bar: h("progress", {"aria-label": title}), text: h("span", {class: "soft"})};
    job.button = h("button", {type: "button", "aria-label": `Cancel: ${title}`, onclick: () => job.isCancelled || this.view.link.send({type: "cancel", id})}, "Cancel");
    job.button.addEventListener("focus", event => { job.focusBefore = event.relatedTarget; });
    job.element = h("p", {}, h("span", {}, title), job.bar, job.text, job.button);
    this.jobs.set(id, job);
    this.element.append(job.element);
    this.view.announce(`${title} …`);
  }

  /** Remove a job; if its button had the focus, the focus moves to another job or to where it was before. */
  remove(id) {
    const job = this.jobs.get(id), {view} = this;
    if (!job) return;
    const hadFocus = view.root.getRootNode().activeElement === job.button, others = [...this.jobs.values()].filter(one => one !== job);
    this.jobs.delete(id);
    job.element.remove();
    if (hadFocus) (others.at(-1)?.button || (job.focusBefore?.isConnected ? job.focusBefore : view.panes[0].over)).focus();
  }
}
