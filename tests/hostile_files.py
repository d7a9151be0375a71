"""Damaged and malicious model files, which `load` must reject.

    PYTHONPATH=src python tests/hostile_files.py 100000

creates that many files and prints a report; a test creates a few hundred.  Most files get a valid
fingerprint after the change, as an attacker would write them.
"""

from __future__ import annotations

import collections
import copy
import hashlib
import json
import os
import random
import sys
import tempfile
import time
import tracemalloc
import warnings

import numpy as np
import scipy.sparse as sp

import mercer
from mercer import SVC, Expansion, Graphs, KernelPCA, KernelRidge, ModelFileError, load, save
from mercer.kernels import RBF, Jaccard, Linear, MeanOf, Precomputed, Spectrum, WeisfeilerLehman
from mercer.persist._class_registry import by_name
from mercer.persist._schema_checks import _hints

SECONDS = 2.0  # limit of the processor time of a load
# memory limit of a load: FACTOR bytes for each byte of the file, plus MARGIN
FACTOR, MARGIN = 40, 2_000_000

EVIL_NAMES = [
    *(
        "os.system",
        "builtins.eval",
        "__class__",
        "__init__",
        "__dict__",
        "__reduce__",
        "__globals__",
    ),
    *(
        "subprocess.Popen",
        "mercer.persist._decoder.Decoder",
        "type",
        "object",
        "Kernel",
        "Callable",
    ),
    *("Memoised", "DenseGram", "RBF", "KernelRidge", "Report", "Graphs", "NystroemMap", "Sum"),
    *(
        "sklearn.RBF",
        "sklearn.KFold",
        "Precomputed",
        "SVC",
        "Expansion",
        "Norma",
        "",
        "\0",
        "é" * 50,
    ),
]
EVIL_KERNELS = [
    *("__import__('os').system('touch /tmp/owned')", "eval('1')", "RBF().__class__", "RBF(" * 200),
    *("(" * 90 + "RBF()" + ")" * 90, "RBF() ** 1e308", "RBF(length_scale=nan)", "RBF(1e400)"),
    *("RBF(length_scale=-1)", "Polynomial(degree=999999999)", "Sum(())", "Callable(print)"),
    *(
        "Mismatch(50, 49, 'ACGT')",
        "Precomputed([[1e308, 1], [0, 1]])",
        "Constant(" + "9" * 399 + ")",
    ),
    *(
        "+".join(["RBF()"] * 3000),
        "Features(PolynomialBasis(degree=10**9))",
        "open('x')",
        "lambda: 0",
    ),
    *("PolynomialBasis(degree=1000000)", "Select(RBF(), slice(0, 999999999999))", "a" * 200_000),
    *("Graphlet(size=99)", "Gapped(1000000, 2)", "Spectrum(10**6)", "WeisfeilerLehman(99999999)"),
    *(
        "Power(RBF(), 1e300)",
        "Exp(Exp(Exp(Exp(Constant(1e300)))))",
        "MeanOf(" * 99 + "RBF()" + ")" * 99,
    ),
]
EVIL_NUMBERS = [
    *(
        0,
        -1,
        1,
        2,
        7,
        64,
        2**31,
        2**62,
        2**63,
        2**64,
        -(2**63),
        10**30,
        1.5,
        -0.0,
        1e308,
        1e-320,
        True,
    ),
]


def models():
    rng = np.random.default_rng(0)
    X, y = np.abs(rng.normal(size=(12, 3))), np.arange(12) % 2
    words = ["".join(rng.choice(list("ACGT"), size=5)) for _ in range(20)]
    graphs = Graphs.from_edges(
        [[(0, 1), (1, 2)]] * 6 + [[(0, 1)]] * 6,
        labels=[["C", "N", "O"]] * 6 + [["C", "C"]] * 6,
        attributes=[np.ones((3, 1))] * 6 + [np.ones((2, 1))] * 6,
    )
    shared = [("a", 1)] * 2
    return [
        Expansion(RBF(2.0) + Linear(), np.asfortranarray(X), rng.normal(size=(12, 2))),
        Expansion(Jaccard(), [{"a", "b"}, {1, 2.5}, set(), {("a", 1)}], np.ones(4)),
        Expansion(MeanOf(RBF()), [rng.normal(size=(i, 2)) for i in range(4)], np.ones(4)),
        Expansion(Precomputed(X @ X.T), np.arange(12), np.ones(12)),
        Expansion(Linear(), [*shared, b"x", 1j, slice(1), np.float32(2), {"k": [1]}], np.ones(7)),
        Expansion(Spectrum(2), words, np.ones(20)).to_primal(),
        KernelRidge(kernel="rbf", solver="nystroem", rank=5).fit(X, X[:, 0]),
        SVC(kernel=WeisfeilerLehman(1)).fit(graphs, y),
        SVC(kernel=Spectrum(2)).fit(words, np.arange(20) % 3),
        SVC().fit(sp.csr_array(X), y),
        KernelPCA(2, kernel="rbf", eigen_solver="nystroem", rank=5).fit(X),
        mercer.GaussianProcessRegressor(1.0 * RBF(1.0), optimizer=None, alpha=0.1).fit(X, X[:, 0]),
        mercer.KernelPerceptron(True, budget=5).fit(X, y),
        mercer.PolynomialCountSketch(n_components=4, random_state=np.random.RandomState(0)).fit(X),
        mercer.KernelRecursiveLeastSquares().fit(X, X[:, 0]),
    ]


class Content:
    """The parts of a model file: header entries, metadata, state, and data."""

    def __init__(self, content):
        size = int.from_bytes(content[:8], "little")
        self.header = json.loads(content[8 : 8 + size])
        self.metadata = self.header.pop("__metadata__")
        self.state = json.loads(self.metadata["state"])
        self.data = bytearray(content[8 + size :])

    def written(self, *, signed=True, text=None, state=None):
        metadata = {**self.metadata, "fingerprint": "0" * 64}
        metadata["state"] = json.dumps(self.state) if state is None else state
        if text is None:
            text = json.dumps({"__metadata__": metadata, **self.header})
        header = text.encode("utf-8", "surrogatepass")
        content = len(header).to_bytes(8, "little") + header + bytes(self.data)
        digest = hashlib.sha256(content).hexdigest() if signed else "0" * 64
        return content.replace(b"0" * 64, digest.encode(), 1)


# ---------------------------------------------------------------------- changes


def bytes_flipped(one, random):
    content = bytearray(one.written())
    for _ in range(random.choice([1, 1, 1, 3, 20])):
        content[random.randrange(len(content))] = random.randrange(256)
    return bytes(content)


def cut(one, random):
    content = one.written()
    place = random.randrange(len(content))
    return random.choice(
        [
            content[:place],
            content[place:],
            content + content[:place],
            content[:8],
            content[:place] * 2,
        ]
    )


def length_changed(one, random):
    size = random.choice([0, 1, 7, 2**20, 99_999_999, 2**31, 2**32, 2**63, 2**64 - 1])
    return size.to_bytes(8, "little") + one.written()[8:]


def entry_changed(one, random):
    name = random.choice(list(one.header))
    entry = one.header[name]
    key = random.choice(list(entry))
    evil = [
        random.choice(EVIL_NUMBERS),
        [random.choice(EVIL_NUMBERS) for _ in range(random.randrange(4))],
        random.choice(["F64", "F32", "I64", "I32", "U8", "BOOL", "C64", "F8_E4M3", "", "object"]),
        [[1]] * 3,
        {"a": 1},
        None,
        [1] * 40,
        [2**32, 2**32, 0],
    ]
    entry[key] = random.choice(evil)
    if random.random() < 0.2:
        del entry[key]
    if random.random() < 0.2:
        other = random.choice(list(one.header.values()))
        entry["data_offsets"] = copy.deepcopy(other.get("data_offsets"))
    if random.random() < 0.1:
        one.header[random.choice(EVIL_NAMES)] = one.header.pop(name)
    return one.written()


def metadata_changed(one, random):
    key = random.choice(list(one.metadata))
    evil = [
        "",
        "2",
        "{}",
        "[]",
        "null",
        '{"SVC": "x"}',
        "9" * 5000,
        "NaN",
        "SVC",
        *EVIL_NAMES,
        None,
        3,
    ]
    one.metadata[key] = random.choice(evil)
    if random.random() < 0.2:
        del one.metadata[key]
    return one.written()


def nodes(tree, found=None):
    """Return all (parent, key) pairs of a nested state."""
    found = [] if found is None else found
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        found.append((tree, key))
        if isinstance(value, (dict, list)):
            nodes(value, found)
    return found


def evil(one, random, others):
    names = [*one.header, "", "nothing", "padding.2"]
    tensor, shape = random.choice(names), [random.choice(EVIL_NUMBERS) for _ in range(2)]
    deep = {"list": []}
    for _ in range(random.choice([5, 200, 2000])):
        deep = {"list": [deep]}
    return random.choice(
        [
            random.choice(EVIL_NUMBERS),
            random.choice(EVIL_NAMES),
            {"class": random.choice(EVIL_NAMES), "fields": {}},
            {"class": random.choice(EVIL_NAMES), "parameters": {}, "fitted": {}},
            {"class": "RBF", "fields": {random.choice(EVIL_NAMES): 1}},
            {"class": "Sum", "fields": {"terms": {"tuple": [{"ref": 0}, 3]}}},
            {"class": "Report", "fields": {"solver": "x", "status": {"status": "__class__"}}},
            {"class": "Graphs", "fields": {"offsets": {"array": tensor, "shape": shape}}},
            {"kernel": random.choice(EVIL_KERNELS)},
            {"array": tensor, "shape": shape},
            {"array": tensor, "shape": [0], "axes": [random.choice(EVIL_NUMBERS)]},
            {
                "array": tensor,
                "shape": shape,
                "type": random.choice(["|O", "<U9999999", "<V8", "f,f"]),
            },
            {"objects": [1, 2], "shape": shape},
            {"scalar": random.choice(["<f8", "|O8", "<i1", "<U1", "<M8[s]"]), "value": "zz"},
            {"scalar": "<i1", "value": random.choice(EVIL_NUMBERS)},
            {"sparse": "csr_array", "shape": shape, "data": 1, "indices": 2, "indptr": 3},
            {
                "random": random.choice(["PCG64", "RandomState", "os"]),
                "state": {"dict": [], "values": []},
            },
            {
                "table": random.choice(["pandas.DataFrame", "os.system"]),
                "parts": {"dict": [], "values": []},
            },
            {"list": {"texts": tensor, "ends": random.choice(names)}},
            {"dict": ["a", "a"], "values": [1, 2]},
            {"dict": [{"list": []}], "values": [1]},
            {"set": [{"dict": [], "values": []}]},
            {"ref": random.choice([0, 1, -1, 99, "0"])},
            {"list": [], "id": random.choice([0, 1, -1, "0"])},
            {"float": random.choice(["nan", "inf", "1e999", "x"])},
            {"bytes": random.choice(["zz", "ff" * 100, 3])},
            {"status": random.choice(["CONVERGED", "mro", "__members__"])},
            {"slice": [1, 2]},
            {"complex": [1]},
            {},
            {"list": 3, "tuple": []},
            [],
            None,
            deep,
            copy.deepcopy(random.choice(others)),
        ]
    )


def state_changed(one, random):
    places = nodes(one.state)
    others = [parent[key] for parent, key in places]
    try:
        for _ in range(random.choice([1, 1, 1, 2, 5])):
            parent, key = random.choice(places)
            what = random.random()
            if isinstance(parent, dict) and what < 0.1:
                parent.pop(key, None)
            elif isinstance(parent, dict) and what < 0.2 and key in parent:
                parent[random.choice(EVIL_NAMES)] = parent.pop(key)
            elif isinstance(parent, dict) or key < len(parent):
                parent[key] = evil(one, random, others)
        return one.written()
    except RecursionError:  # too deeply nested for the JSON encoder
        return one.written(state="[" * 100_000)


def numbers_changed(one, random):
    """Keep the structure, but change one number, name or string."""
    places = [(p, k) for p, k in nodes(one.state) if isinstance(p[k], (int, float, str))]
    parent, key = random.choice(places)
    value = parent[key]
    if isinstance(value, str):
        parent[key] = random.choice([*EVIL_NAMES, *EVIL_KERNELS, value + "x", value[1:]])
    else:
        parent[key] = random.choice(EVIL_NUMBERS)
    return one.written()


def data_changed(one, random):
    """Change values in the arrays to NaN, infinity, large or negative numbers; some are indices."""
    name = random.choice(list(one.header))
    begin, end = one.header[name]["data_offsets"]
    kind = random.choice(["<f8", "<i8", "<i4", "u1"])
    values = {
        "<f8": [np.nan, np.inf, 1e308, -1.0],
        "<i8": [-1, 2**62, 9],
        "<i4": [-1, 2**30],
        "u1": [255],
    }
    item = np.array([random.choice(values[kind])]).astype(kind).tobytes()
    if end - begin >= len(item):
        place = begin + len(item) * random.randrange((end - begin) // len(item))
        if random.random() < 0.5:
            place, item = begin, item * ((end - begin) // len(item))
        one.data[place : place + len(item)] = item
    return one.written()


def bomb(one, random):
    """Write short files that would expand to large objects."""
    kind = random.randrange(7)
    if kind == 0:
        text = '{"list": [1], "id": 0}'
        for i in range(1, 60):
            text = text + f', {{"list": [{{"ref": {i - 1}}}, {{"ref": {i - 1}}}], "id": {i}}}'
        return one.written(state=f'{{"list": [{text}]}}')
    if kind == 1:
        opening = random.choice(["[", '{"list":[', '{"a":'])
        return one.written(state=opening * random.choice([10, 1000, 100_000]))
    if kind == 2:
        return one.written(
            state=random.choice(["NaN", "Infinity", "1e999", "9" * 100_000, "-", "\0"])
        )
    if kind == 3:
        return one.written(state='{"list": [], "list": []}')
    if kind == 4:
        text = one.written().decode("latin-1")
        return text.replace('"dtype"', '"shape"', 1).encode("latin-1")
    if kind == 5:
        text = '{"class": "Sum", "fields": {"terms": {"tuple": [{"kernel": "RBF()"}]}}, "id": 0}'
        for i in range(1, 100):
            terms = f'{{"tuple": [{{"ref": {i - 1}}}, {{"ref": {i - 1}}}]}}'
            text += f', {{"class": "Sum", "fields": {{"terms": {terms}}}, "id": {i}}}'
        one.metadata["classes"] = '{"Sum": 1}'
        return one.written(state=f'{{"list": [{text}]}}')
    return one.written(state='{"list": [' + '{"list": []},' * 5000 + "1]}")


CHANGES = [
    *(bytes_flipped, cut, length_changed, entry_changed, entry_changed, metadata_changed),
    *(state_changed, state_changed, state_changed, numbers_changed, numbers_changed),
    *(data_changed, data_changed, bomb),
]


# ---------------------------------------------------------------------- loading

HARM = (
    "import",
    "exec",
    "compile",
    "os.",
    "subprocess",
    "socket",
    "shutil",
    "ctypes",
    "pickle",
    "code",
)
SEEN: list[str] = []
WATCHING = False


def watch(event, arguments):
    if WATCHING and event.startswith(HARM):
        SEEN.append(f"{event} {arguments!r:.100}")


def bases(folder):
    found = []
    for stored in by_name().values():
        _hints(stored.cls)  # Python evaluates the annotations of a class when they are first read
    for i, model in enumerate(models()):
        path = os.path.join(folder, f"{i}")
        save(model, path)
        load(path)
        load(path, mmap=True)
        with open(path, "rb") as file:
            found.append(file.read())
    return found


def attempt(path, content, *, use=False, traced=True):
    """Load a file with and without mmap; return the outcomes.  Only ModelFileError is accepted."""
    global WATCHING
    with open(path, "wb") as file:
        file.write(content)
    ends = []
    for mmap in (False, True):
        SEEN.clear()
        if traced:
            tracemalloc.start()
        start, WATCHING = time.process_time(), True
        model = None
        try:
            model = load(path, mmap=mmap)
            end = "loaded"
        except ModelFileError as error:
            end = "refused"
            assert str(error).startswith(path), error
        finally:
            WATCHING = False
            seconds = time.process_time() - start
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert not SEEN, SEEN
        assert seconds < SECONDS, seconds
        assert peak < FACTOR * len(content) + MARGIN, (peak, len(content))
        ends.append(end)
        if use and model is not None:
            used(model)
    return ends


def used(model):
    """Call the methods of a model.  Whatever numbers it contains, the process must survive."""
    X = np.abs(np.random.default_rng(1).normal(size=(3, 3)))
    for points in (
        X,
        ["ACGTA", "AC"],
        getattr(model, "points", None),
        getattr(model, "X_fit_", None),
    ):
        for verb in ("__call__", "predict", "transform", "partial_fit"):
            try:
                more = (np.arange(len(points)) % 2,) if verb == "partial_fit" else ()
                getattr(model, verb)(points, *more)
            except Exception:
                continue


def run(count, seed=0, *, use=False, every=None):
    """Try `count` files, and return the number of outcomes by type of change."""
    ends = collections.Counter()
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        originals = bases(folder)
        path = os.path.join(folder, "hostile")
        for i in range(count):
            change = CHANGES[i % len(CHANGES)]
            content = change(Content(draw.choice(originals)), draw)
            try:
                for end in attempt(path, content, use=use, traced=i % 3 == 0):  # tracing is slow
                    ends[change.__name__, end] += 1
            except BaseException:
                with open(f"{tempfile.gettempdir()}/hostile.{seed}.{i}", "wb") as file:
                    file.write(content)
                raise
            if every and i % every == 0:
                print(i, flush=True)
    return ends


if __name__ == "__main__":
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
    sys.addaudithook(watch)
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for (change, end), number in sorted(run(count, seed, use="use" in sys.argv).items()):
        print(f"{change:20} {end:10} {number}")
