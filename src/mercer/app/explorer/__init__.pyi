from ._embeddings import affordable_kernel_pca
from ._explore import Explorer, explore, scene_from_table
from ._scene import Scene as Scene  # used by mercer.app.cli
from ._scene import file_stamp
from ._server import serve

__all__ = [
    "Explorer",
    "affordable_kernel_pca",
    "explore",
    "file_stamp",
    "scene_from_table",
    "serve",
]
