// The models of a connected page as a value for undo and sessions, see `model_state` in _model_requests.py.

class ModelState {
  /** `text` is the state as JSON, so that equal states are identical values; it is empty on a page without models. */
  constructor(view) {
    Object.assign(this, {view, text: "", shown: "", waiting: null});
    view.history.register("model", () => this.text, text => { this.text = text; this.show(JSON.parse(text)); });
  }

  /** Read the state from a scene or from new embeddings. */
  receive({controls, token}) {
    this.text = this.shown = controls ? JSON.stringify(controls.state) : "";
    this.reply(null, token);
  }

  /** End the waiting request if this reply, with the token or without any, answers it; `error` is null or a sentence. */
  reply(error, token) {
    const {waiting} = this;
    if (!waiting || (waiting.token !== null && !(token >= waiting.token))) return;
    this.waiting = null;
    if (error) this.text = this.shown;
    waiting.done(error);
  }

  request(token, send) {
    this.waiting?.done("a newer request replaced it.");
    return new Promise(done => {
      this.waiting = {token, done};
      send();
    });
  }

  /** Request the models of a state; resolves to null when they are shown, or to the reason why they cannot be shown. */
  async show({axes, signs, ...models}) {
    const {view} = this, {axes: _, signs: __, ...old} = JSON.parse(this.shown);
    const known = Object.fromEntries(Object.entries(models).filter(([, value]) => value !== null));
    if (JSON.stringify(models) !== JSON.stringify(old)) {
      const error = await this.request(view.fitToken + 1, () => view.requestFit({...known, run: true}, 0));
      if (error) return error;
    }
    const now = JSON.parse(this.shown);
    if (JSON.stringify([axes, signs]) === JSON.stringify([now.axes, now.signs])) return null;
    return this.request(null, () => view.link.send({type: "orient", axes, signs}));
  }
}
