// Transitions: when an embedding changes, the points move to their new positions, so that they can be followed.

const TRANSITION_MS = 300; // the default of view.transitions; 0 means that points do not move
const MAX_MOVING_POINTS = 2e5; // more points cannot be drawn often enough for a smooth motion

/** The motion of the points and of the visible area of a pane, from `start` to their final positions. */
class Transition {
  /** `start` = {x, y, centre, scale}: the positions and the area before the change; the pane has the new ones. */
  constructor(pane, start) {
    const n = start.x.length;
    Object.assign(this, {pane, start, end: {x: pane.x, y: pane.y, centre: pane.centre, scale: pane.scale}, movesArea: !pane.userMoved && start.scale > 0});
    this.x = new Float32Array(n);
    this.y = new Float32Array(n);
    this.begun = performance.now();
    this.step(this.begun);
  }

  /** Return the state before a change to `message` if the points can move to their new positions, and otherwise null. */
  static startOf(pane, message) {
    const {x, y, centre, scale, view} = pane, n = message.x.length, still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!pane.message || !pane.pixelRatio || still || !view.transitions || x.length !== n || n > MAX_MOVING_POINTS) return null;
    const isSame = x.every((value, i) => value === message.x[i] && y[i] === message.y[i]);
    return isSame ? null : {x, y, centre, scale};
  }

  step(now) {
    const {pane, start, end} = this, t = (now - this.begun) / pane.view.transitions;
    if (t >= 1) return this.finish();
    const s = Math.max(0, t) ** 2 * (3 - 2 * Math.max(0, t));
    for (const axis of ["x", "y"]) {
      const from = start[axis], to = end[axis], at = this[axis];
      for (let i = 0; i < at.length; i++) at[i] = from[i] === from[i] ? from[i] + s * (to[i] - from[i]) : to[i]; // NaN: the point was not shown
    }
    Object.assign(pane, {x: this.x, y: this.y});
    if (this.movesArea && !pane.userMoved) {
      pane.scale = start.scale * (end.scale / start.scale) ** s;
      pane.centre = end.centre.map((c, side) => start.centre[side] + s * (c - start.centre[side]));
    }
    pane.draw();
    this.request = requestAnimationFrame(time => this.step(time));
  }

  /** Show the final positions. */
  finish() {
    const {pane, end} = this;
    this.stop();
    Object.assign(pane, {x: end.x, y: end.y});
    if (this.movesArea && !pane.userMoved) Object.assign(pane, {scale: end.scale, centre: end.centre});
    pane.draw();
  }

  stop() {
    cancelAnimationFrame(this.request);
    this.pane.transition = null;
  }
}
