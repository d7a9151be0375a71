// Functions for test_accessibility.py. `ex` is the view.

const pause = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));

/** The visible controls that the Tab key reaches. */
const tabControls = () => ex.focus.controls(ex.root);

const describe = one => `${one.tagName} ${one.getAttribute("aria-label") || one.closest("label")?.textContent || one.textContent || one.title}`.slice(0, 80);

/** Select points and show a pre-image, so that all panels have their controls, and call a function for each tab. */
async function visit(action) {
  ex.select(ex.combineSelection(i => i < 40, "set"), "");
  ex.point.request(ex.panes[0], 0.1, 0.1);
  for (const [name, button] of ex.tabs.buttons) {
    if (button.hidden) continue;
    ex.tabs.show(name);
    await pause();
    await pause();
    await action(name);
  }
}

/** Focus every step-th control, change the view, and return the number of checks and the changes that lost the focus. */
async function findLostFocus(refit, step) {
  const lost = [], [first, second] = ex.columns.filter(column => column.isLoaded && !column.derived).map(column => column.name);
  const changes = {
    refit: () => ex.receive(structuredClone(refit)),
    filter: () => ex.setFilter(ex.column("species"), ex.filters.byName.size ? null : {included: ["setosa"]}),
    selection: () => ex.select(ex.combineSelection(i => (i + ex.count) % 4 === 0, "set"), ""),
    colour: () => ex.colourBy(ex.color === first ? second : first),
    clear: () => ex.clear(),
  };
  let checked = 0, tabs = 0;
  await visit(async tab => {
    for (let k = tabs++ % step; k < tabControls().length; k += step) {
      for (const [name, change] of Object.entries(changes)) {
        const control = tabControls()[k], text = control && describe(control);
        control?.focus();
        if (!control || document.activeElement !== control) continue;
        await change();
        await pause();
        const active = document.activeElement, isStill = tabControls().includes(control);
        checked++;
        if (!ex.root.contains(active) || active === ex.root || (isStill && active !== control)) lost.push(`${tab}: ${text} after ${name}: ${describe(active)}`);
      }
      ex.select(ex.combineSelection(i => i < 40, "set"), "");
    }
  });
  return [checked, lost];
}

/** Return the controls with a target of less than 24 x 24 pixels; the label of a control is part of its target. */
async function findSmallControls() {
  const small = new Set();
  await visit(() => {
    for (const one of tabControls()) {
      const targets = [one, one.closest("label")].filter(Boolean).map(target => target.getBoundingClientRect());
      if (!targets.some(({width, height}) => width >= 23.9 && height >= 23.9)) small.add(`${describe(one)}: ${targets[0].width} x ${targets[0].height}`);
    }
  });
  return [...small];
}

/** Return the elements that need horizontal scrolling, and the controls that are cut off at the right; tables may scroll. */
async function findWideElements() {
  const wide = new Set(), right = ex.root.getBoundingClientRect().right + 0.5;
  await visit(tab => {
    for (const one of [document.documentElement, ex.root, ...ex.root.querySelectorAll(".top, aside, .tabbed, .panel")]) {
      if (one.scrollWidth > one.clientWidth + 1) wide.add(`${tab}: ${one.tagName} ${one.className} ${one.scrollWidth} > ${one.clientWidth}`);
    }
    for (const one of tabControls()) if (!one.closest(".scroll, .rows") && one.getBoundingClientRect().right > right) wide.add(`${tab}: ${describe(one)}`);
  });
  return [...wide];
}

/** Return the serious findings of axe in all tabs. */
async function findWithAxe() {
  const found = [];
  await visit(async tab => {
    const {violations} = await axe.run(document, {resultTypes: ["violations"]});
    for (const {impact, id, nodes} of violations) if (impact === "serious" || impact === "critical") found.push(`${tab}: ${id}: ${nodes[0].html}`);
  });
  return found;
}
