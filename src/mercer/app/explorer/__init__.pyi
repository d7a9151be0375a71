from ._explore import Explorer, explore, scene_from_table
from ._first_look import describe_features as describe_features  # used by mercer.app.cli
from ._first_look import first_look as first_look  # used by mercer.app.cli
from ._model_requests import affordable_kernel_pca
from ._scene import Scene as Scene  # used by mercer.app.cli
from ._scene import file_stamp
from ._server import serve
from ._sessions import read_session

__all__ = [
    "Explorer",
    "affordable_kernel_pca",
    "explore",
    "file_stamp",
    "read_session",
    "scene_from_table",
    "serve",
]
