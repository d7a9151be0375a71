// Connects the view to the server that this page came from, over a websocket.

const LOST = "The connection to the server has ended, usually because the explorer was stopped. Start it again and open the new address.";

{
  const root = document.getElementById("explorer"), address = new URL(`/ws${location.search}`, location.href);
  address.protocol = "ws:";
  const socket = new WebSocket(address), link = {send: question => { if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(question)); }};
  let view = null;
  socket.binaryType = "arraybuffer";
  root.textContent = "Waiting for the points …";
  socket.onopen = () => link.send({ask: "scene"});
  socket.onmessage = ({data}) => {
    const message = unpack(data);
    if (view) view.receive(message);
    else if (message.kind === "scene") view = mount(root, message, link);
  };
  socket.onclose = () => { if (view) view.notice(LOST); else root.textContent = LOST; };
}
