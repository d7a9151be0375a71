// Connects the view to the server of this page over a websocket.

const CONNECTION_LOST = "The connection to the server was closed, usually because the explorer was stopped. Start it again and open the new address.";

{
  const root = document.getElementById("explorer"), address = new URL(`/ws${location.search}`, location.href);
  address.protocol = "ws:";
  const socket = new WebSocket(address), link = {send: request => { if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(request)); }};
  const linked = new LinkedView(root, link);
  socket.binaryType = "arraybuffer";
  root.textContent = "Loading the points …";
  socket.onopen = () => link.send({type: "scene"});
  socket.onmessage = ({data}) => linked.receive(data);
  socket.onclose = () => { if (linked.view) linked.view.notice(CONNECTION_LOST); else root.textContent = CONNECTION_LOST; };
}
