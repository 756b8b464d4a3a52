"""`import horovod.torch`, in a script that run_experiment has started, is `import syncopate.torch`, which has Horovod's names.

syncopate.pth, which lies beside the package, has each Python of such a run import this, since a script may import Horovod
before torch.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any, Optional


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        if fullname != "horovod" and not (fullname + ".").startswith("horovod.torch."):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ != "horovod":
            sys.modules[module.__name__] = importlib.import_module("syncopate" + module.__name__[len("horovod") :])


sys.meta_path.insert(0, _Finder())
