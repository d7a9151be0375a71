// The view as a component of Panel: in a notebook, and on the page that the server shows.

export function render({model}) {
  const root = document.createElement("div");
  root.style.setProperty("--height", model.tall);
  const view = mount(root, unpack(model.scene), {send: question => model.send_msg(question)});
  model.on("msg:custom", bytes => view.receive(unpack(bytes)));
  return root;
}
