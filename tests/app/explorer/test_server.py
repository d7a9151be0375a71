"""The page of the server: requests, fits, uploads, and changed files."""

import socket
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest

pytest.importorskip("tornado")
from mercer import KernelPCA, explore
from mercer.app.explorer import serve
from mercer.app.explorer._embeddings import Embedding, IdentityEmbedding
from mercer.app.explorer._scene import Scene
from mercer.tables import Recipe, Table


def three_blobs(n=240):
    rng = np.random.default_rng(0)
    label = np.arange(n) % 3
    X = rng.normal(size=(n, 4)) * 0.4 + 2.0 * np.eye(4)[label]
    return X, label


@pytest.fixture(scope="module")
def blobs():
    X, label = three_blobs()
    model = KernelPCA(3, kernel="RBF(1.5)").fit(X)
    names = np.array(["<script>document.title = 'caught'</script>", "b", "c"], dtype=object)
    return explore(model, X, table={"label": names[label]}, color="label", title="blobs")


@pytest.fixture(scope="module")
def served(blobs, tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "blobs.csv"
    path.write_text("here\n")
    serving = serve(lambda: blobs.scene, title="blobs", reload=lambda: blobs.scene, watched=path)
    serving.start()
    serving.path = path
    yield serving
    serving.stop()


@pytest.fixture
def page(shared, served):
    if not shared.asked:
        shared.go(served.url)
    shared("""() => { ex.clear(); ex.setTool('move'); ex.tabs.show('Model');
      ex.panes.forEach(pane => pane.fit()); }""")
    return shared


def test_only_the_server_receives_requests(page, served):
    query = urlsplit(served.url).query
    socket_ = served.origin.replace("http:", "ws:")
    assert page.asked == [served.url, f"{socket_}/ws?{query}"]
    assert served.url.startswith("http://127.0.0.1:") and len(query) > 30
    assert page.page.title() == "blobs"  # and not "caught", the title set by injected code
    assert "<script>" in page.page.locator(".legend").inner_text()


def test_a_click_gives_the_preimage_of_the_expansion(page, blobs):
    page.page.mouse.click(*page.place(0.1, -0.2))
    page.until("ex.point.card.querySelector('dl')")
    x, y = page("ex.panes[0].marker")
    model = blobs.scene.embeddings[0].model
    expected = model.decode([[x, y, 0.0]]).preimage()
    message = page.page.locator(".preimage dd").all_inner_texts()
    np.testing.assert_allclose(np.array(message, dtype=float), expected.points[0], rtol=1e-4)
    assert f"= {expected.residuals[0]:.4g} in the feature space" in page.status
    page.page.mouse.click(*page.place(0.5, 0.5, pane=1))
    page.until("ex.point.card.textContent.includes('Inverse transform of the position')")


def test_a_slider_redraws_the_map(page, blobs):
    page(
        """() => { const tell = ex.receive.bind(ex); ex.receive = message => {
          if (message.kind === "embeddings") {
            window.fitted = message.seconds;
            window.came = performance.now();
          }
          tell(message);
        }; }"""
    )
    taken = []
    for value in (1.0, -0.5, 0.75):
        page(
            """value => { window.came = 0; window.moved = performance.now();
              const {slider} = ex.form.sliders[0]; slider.value = value;
              slider.dispatchEvent(new Event("input")); }""",
            value,
        )
        page.until("window.came > 0 && ex.panes.every(pane => !pane.stale)")
        taken.append(
            page("(window.came + ex.panes[0].renderTime - window.moved) / 1000 - window.fitted")
        )
    length = page("ex.form.message.parameters[0].value")
    model = KernelPCA(3, kernel=f"RBF({length!r})").fit(blobs.scene.points)
    np.testing.assert_allclose(
        page("Array.from(ex.panes[0].x)"), model.training_scores_[:, 0], rtol=1e-4, atol=1e-6
    )
    assert min(taken) < 0.3, taken


def test_a_kernel_as_text_and_a_mistake_in_it(page, blobs):
    box = page.page.get_by_label("kernel", exact=True)
    box.fill("RBF(2.0")
    page.until("ex.form.error.textContent.includes('expected a comma or the )')")
    assert box.get_attribute("aria-invalid") == "true"
    box.fill("Polynomial(degree=2)")
    page.until("ex.panes[0].message.spectrum && ex.form.message.kernel.startsWith('Polynomial')")
    assert page("ex.form.error.textContent") == ""
    model = KernelPCA(3, kernel="Polynomial(degree=2)").fit(blobs.scene.points)
    np.testing.assert_allclose(
        page("ex.panes[0].message.spectrum.values"), model.eigenvalues_, rtol=1e-6
    )
    page.page.get_by_label("Vertical component").select_option(label="3")
    page.until("ex.panes[0].message.axes[1].startsWith('component 3')")


def test_the_kernel_box_keeps_each_keystroke(page, blobs):
    box = page.page.get_by_label("kernel", exact=True)
    box.fill("")
    box.press_sequentially("1.0 * RBF(2.0) + Matern(1.5, nu=1.5)", delay=70)
    expression = "1.0 * RBF(2.0) + Matern(1.5, nu=1.5)"
    page.until("ex.form.message.parameters.length === 3")  # of another kernel than at first
    assert box.input_value() == expression
    assert page("ex.root.getRootNode().activeElement === ex.form.kernel")
    page.page.keyboard.type("  ")
    page.page.wait_for_timeout(400)
    assert box.input_value() == expression + "  "
    count = page.page.get_by_label("components", exact=True)
    count.fill("4")
    page.until("ex.form.message.components === 4")
    assert page("ex.root.getRootNode().activeElement === ex.form.count")
    count.fill("3")
    page.until("ex.form.message.components === 3")


def test_an_invalid_kernel_is_not_overwritten_by_an_older_fit(page):
    """The reply to the older fit arrives last, although the server would drop it."""
    box = page.page.get_by_label("kernel", exact=True)
    box.fill("RBF(1.75)")
    page.until("ex.form.message.kernel === 'RBF(length_scale=1.75)'")
    box.fill("RBF(1.25")
    page.until("ex.form.error.textContent.includes('expected')")
    page.page.get_by_label("Search").focus()
    page(
        """() => { const panes = ex.panes.map(pane => pane.message), token = ex.fitToken - 1;
          ex.receive({kind: "embeddings", columns: [], panes, controls: ex.form.message, token});
          ex.receive({kind: "state", text: "", token}); }"""
    )
    assert box.input_value() == "RBF(1.25"
    assert "expected" in page("ex.form.error.textContent")
    box.fill("Spectrum(3)")
    page.until("ex.form.error.textContent.includes('compares strings, but the points are vectors')")
    box.fill("RBF(1.5)")
    page.until("ex.form.message.kernel === 'RBF(length_scale=1.5)' && !ex.form.error.textContent")


def test_a_page_that_is_loaded_again_shows_the_file_as_it_is_now(blobs, tmp_path, opened):
    path = tmp_path / "data.csv"
    path.write_text("old\n")
    X, _ = three_blobs(30)
    new = explore(KernelPCA(2, kernel="RBF(1.5)").fit(X), X, title="new").scene
    serving = serve(lambda: blobs.scene, reload=lambda: new, watched=path).start()
    try:
        assert opened.go(serving.url)("ex.n") == 240
        path.write_text("new rows\n")
        assert opened.go(serving.url)("ex.n") == 30
    finally:
        serving.stop()


def test_a_page_reports_that_the_server_has_stopped(blobs, opened):
    serving = serve(lambda: blobs.scene).start()
    page = opened.go(serving.url)
    serving.stop()
    page.until("ex.root.textContent.includes('The connection to the server was closed')")


def test_what_takes_long_waits_for_a_press(page, monkeypatch):
    monkeypatch.setattr("mercer.app.explorer._controller.MAX_UNCONFIRMED_SECONDS", 0.0)
    page.page.get_by_label("kernel", exact=True).fill("RBF(2.25)")
    page.until("!ex.form.run.hidden")
    assert page("ex.form.status.textContent").startswith("This fit takes about 0 s")
    page.page.get_by_role("button", name="Run").click()
    page.until("ex.form.message.kernel === 'RBF(length_scale=2.25)' && ex.form.run.hidden")


def test_columns_that_models_give_and_lines(page, blobs):
    from mercer import embedding_quality

    page.page.get_by_label("Colour by").select_option("trustworthiness in probabilistic PCA")
    page.until("ex.colourScale.kind === 'numbers'")
    other = blobs.scene.embeddings[1]
    quality = embedding_quality(blobs.scene.points, other.coordinates[:, :2].astype(np.float32))
    found = page("Array.from(ex.column('trustworthiness in probabilistic PCA').data)")
    np.testing.assert_allclose(found, quality.points.trustworthiness, atol=1e-5)
    page.page.get_by_label("Contours in probabilistic PCA").select_option("eigenfunction 1")
    page.until("ex.panes[1].field && ex.panes[1].field.lines")
    assert page("ex.panes[1].field.lines.some(line => line.segments.length > 5)")
    page.page.get_by_label("Contours in probabilistic PCA").select_option("magnification")
    page.until(
        "ex.status.textContent.includes('everywhere')"
    )  # because the inverse transform is linear
    page.page.get_by_label("Contours in probabilistic PCA").select_option("none")
    page.until("!ex.panes[1].field")


def test_new_data_in_the_same_map_and_a_page_to_take_away(page, blobs, tmp_path, opened):
    X, _ = three_blobs(12)
    file = tmp_path / "new.csv"
    lines = ["x1,x2,x3,x4,label", *(",".join(map(repr, row.tolist())) + ",c" for row in X)]
    file.write_text("\n".join(lines) + "\n")
    page.page.get_by_label("File with new data to project into the embeddings").set_input_files(
        file
    )
    page.until("ex.n === 252")
    assert page("[ex.color, ex.column('set').categories().map(c => [c.name, c.count])]") == [
        "set",
        [["data", 240], ["new", 12]],
    ]
    np.testing.assert_allclose(
        page("Array.from(ex.panes[1].x.slice(240))"),
        page("Array.from(ex.panes[1].x.slice(0, 12))"),
        atol=1e-5,
    )
    page.page.get_by_role("button", name="Save or open the session").click()
    with page.page.expect_download() as found:
        page.page.get_by_role("button", name="Save this page").click()
    found.value.save_as(tmp_path / "explorer.html")
    alone = opened.go(tmp_path / "explorer.html")
    assert alone.asked == [(tmp_path / "explorer.html").as_uri()]
    assert alone("[ex.n, ex.color]") == [252, "set"]


def test_a_file_that_changes_is_noticed(page, served):
    served.path.write_text("another, longer\n")
    page.until("ex.notices.textContent.includes('blobs.csv has changed since it was read.')")
    page.page.get_by_role("button", name="Reload").click()
    page.until("ex.n === 240 && !ex.notices.textContent")
    served.path.unlink()
    page.until("ex.notices.textContent.includes('blobs.csv no longer exists')")


@pytest.mark.parametrize(
    ("n", "limit"), [(100_000, 3.0), pytest.param(1_000_000, 5.0, marks=pytest.mark.long)]
)
def test_many_points_are_drawn_soon(opened, n, limit):
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=n) for name in ("a", "b", "c")}
    table = Table(columns)
    recipe = Recipe().fit(table)
    embeddings = tuple(
        Embedding(name, IdentityEmbedding(), rng.normal(size=(n, 2))) for name in ("one", "two")
    )
    scene = Scene("many", table, recipe.transform(table), embeddings, recipe=recipe, color="a")
    serving = serve(lambda: scene)
    serving.start()
    try:
        taken = []
        # several times, because other processes may be busy
        while len(taken) < 3 and min(taken, default=9.0) >= limit:
            opened.page.goto(serving.url)
            opened.page.wait_for_selector("[data-drawn]")
            taken.append(opened("performance.now()") / 1000)  # since the start of the navigation
        assert opened.go(serving.url)("ex.n") == n
        assert min(taken) < limit, taken
    finally:
        serving.stop()


@pytest.mark.long
def test_clicks_are_answered_within_half_a_second_during_a_long_computation(opened):
    """The trustworthiness of 100,000 points takes longer than all clicks."""
    n = 100_000
    X, label = three_blobs(n)
    model = KernelPCA(2, kernel="RBF(1.5)", eigen_solver="nystroem", rank=500).fit(X)
    scene = explore(model, X, table={"label": label}, title="many").scene
    serving = serve(lambda: scene).start()
    try:
        page = opened.go(serving.url)
        page("""() => { window.column = ex.columns.find(one => one.name.startsWith("trust"));
          ex.loadColumn(window.column); }""")
        click = """async x => {
          const start = performance.now(), {card} = ex.point;
          card.replaceChildren();
          ex.point.request(ex.panes[0], x, x / 2);
          while (!card.querySelector("dl")) await new Promise(requestAnimationFrame);
          return (performance.now() - start) / 1000; }"""
        taken = []
        for _ in range(4):  # other processes may be busy
            taken = sorted(page(click, 0.01 * k) for k in range(-10, 11))
            if taken[10] < 0.5 or page("window.column.isLoaded"):
                break
        assert not page("window.column.isLoaded")
        print(f"median {taken[10]:.2f} s, largest {taken[-1]:.2f} s")
        assert taken[10] < 0.5, taken
        page.page.get_by_role("button", name="Cancel").first.click()
        page.until("ex.jobs.element.textContent === ''")
    finally:
        serving.stop()


def test_it_listens_on_the_loopback_alone(served):
    port = urlsplit(served.url).port
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as other:
        other.bind(("127.0.0.2", port))  # fails if the server listens on all addresses


def test_a_port_in_use(served, blobs):
    port = urlsplit(served.url).port
    with pytest.raises(ValueError, match=f"port {port} is in use, usually by another explorer"):
        serve(lambda: blobs.scene, port=port)


def test_the_browser_opens_the_page(blobs, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    serving = blobs.show()
    assert opened == [serving.url]
    assert not serving.is_busy
    timer = threading.Timer(0.6, serving.stop)
    timer.start()
    serving.wait()  # until it is stopped
    timer.join()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", urlsplit(serving.url).port), timeout=5)


def test_a_server_that_cannot_start(blobs, monkeypatch):
    def fail(*args, **options):
        raise RuntimeError("no server today")

    monkeypatch.setattr("mercer.app.explorer._server.HTTPServer", fail)
    with pytest.raises(RuntimeError, match="no server today"):
        serve(lambda: blobs.scene).start()
    monkeypatch.setattr("mercer.app.explorer._server.HOST", "192.0.2.1")  # of another computer
    with pytest.raises(OSError, match="assign"):
        serve(lambda: blobs.scene)
