"""How the documentation is built: `make docs` runs every page that has code in it, and warnings are errors."""

import os
from importlib import import_module
from importlib.metadata import version as version_of
from types import ModuleType

from sphinx.util.logging import getLogger

from orbitpool import _HOMES

project = "orbitpool"
author = "The orbitpool developers"
release = version = version_of("orbitpool")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "myst_parser",
]
exclude_patterns = ["_build", "guide", "run/**/*.py", "run/**/*.ipynb"]
templates_path = ["_templates"]
html_theme = "furo"
html_title = f"orbitpool {release}"
html_show_sphinx = html_show_copyright = False

default_role = "py:obj"  # `name` links to what it names
autosummary_ignore_module_all = False  # a module's public names are those in its __all__
autosummary_imported_members = True
autodoc_typehints = "none"  # parameters are described in words
autodoc_member_order = "bysource"
napoleon_use_rtype = False
myst_heading_anchors = 3

sphinx_gallery_conf = {
    "examples_dirs": ["guide", "../examples"],
    "gallery_dirs": ["run/guide", "run/examples"],
    "filename_pattern": "/",  # all of them are run
    "within_subsection_order": "FileNameSortKey",
    "parallel": min(4, os.cpu_count() or 1),
    "min_reported_time": 1,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
}


def _escape(app, what, name, obj, options, lines):
    """Let |W| in a docstring be a norm, not a substitution, and a constant not speak for all of its type."""
    lines[:] = [line.replace("|", r"\|") for line in lines if what != "data"]


PUBLIC = [
    "transforms",
    "orbit",
    "learners",
    "images",
    "speech",
    "classifiers",
    "datasets",
    "modules",
    "kernels",
    "discovery",
]


def _check_reference(app, env):
    """Every public name must have its page: warnings are errors."""
    known = env.get_domain("py").objects
    for module in map(import_module, ("orbitpool", *(f"orbitpool.{name}" for name in PUBLIC))):
        for name in module.__all__:
            thing = getattr(module, name)
            own = f"{getattr(thing, '__module__', module.__name__)}.{getattr(thing, '__qualname__', name)}"
            home = f"orbitpool.{_HOMES.get(name, '')}.{name}"  # of what can be had from orbitpool itself
            if not isinstance(thing, ModuleType) and not {own, home, f"{module.__name__}.{name}"} & known.keys():
                getLogger(__name__).warning("%s.%s is public, but not in the reference", module.__name__, name)


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _escape, priority=900)  # after napoleon
    app.connect("env-check-consistency", _check_reference)
