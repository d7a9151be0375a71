// The view as a component of Panel: in a notebook, and on the page that the server shows.

const AGAIN = 700; // milliseconds after which a question that nobody answered is asked again

export function render({model}) {
  const root = document.createElement("div"), link = {send: question => model.send_msg(question)};
  root.textContent = "Waiting for the points. A notebook needs a running kernel; explorer.save(path) writes a page that needs none.";
  root.style.setProperty("--height", model.tall);
  let view = null, tries = 0;
  model.on("msg:custom", bytes => {
    const message = unpack(bytes);
    if (view) view.receive(message);
    else if (message.kind === "scene") view = mount(root, message, link);
  });
  const ask = () => {
    if (view || tries++ > 40) return;
    link.send({ask: "scene"});
    setTimeout(ask, AGAIN * tries);
  };
  ask();
  return root;
}
