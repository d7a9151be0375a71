// Connects the view to Panel: in a notebook, or in a Panel application.

const RETRY_MS = 700; // interval at which the request for the scene is repeated, because the first requests may be lost

export function render({model}) {
  const root = document.createElement("div"), link = {isEmbedded: true, send: request => model.send_msg(request)};
  root.textContent = "Loading the points … If nothing appears, run the notebook cell again; explorer.save(path) writes a page that works without Python.";
  root.style.setProperty("--height", model.css_height);
  root.dataset.lmSuppressShortcuts = "true"; // JupyterLab does not handle keys that are pressed in the explorer
  root.addEventListener("keydown", event => event.stopPropagation());
  new MutationObserver(() => { if (linked.view && !linked.view.hasOwnTheme) linked.view.setTheme(pageTheme()); })
    .observe(document.body, {attributes: true, attributeFilter: ["class", "data-jp-theme-light"]});
  const linked = new LinkedView(root, link);
  let tries = 0;
  model.on("msg:custom", bytes => linked.receive(bytes));
  const requestScene = () => {
    if (linked.view || tries++ > 40) return;
    link.send({type: "scene"});
    setTimeout(requestScene, RETRY_MS * tries);
  };
  requestScene();
  return root;
}
