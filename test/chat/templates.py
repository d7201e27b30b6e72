# SPDX-License-Identifier: MIT
"""Chat templates of models, from a package of the registry: fetched once, never
committed."""
import hashlib
import importlib.util
import json
import pathlib
import subprocess
import sys
import tarfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import own_venv  # noqa: E402

VERSION = "0.3.36"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
FOLDER = "/vendor/llama.cpp/models/templates/"


OutOfReach = own_venv.Unreachable


def enter_venv(cache):
    """Go on in a Python that has jinja2: the script starts anew if this has
    none."""
    if not importlib.util.find_spec("jinja2"):
        own_venv.enter(pathlib.Path(cache) / "venv", "jinja2==3.1.6")


def fetch(cache):
    """The templates by name, or OutOfReach with the reason."""
    cache = pathlib.Path(cache)
    folder = cache / "templates"
    if not (folder / "done").exists():
        unpack(archive(cache), folder)
    return {p.stem: p.read_text() for p in sorted(folder.glob("*.jinja"))}


def archive(cache):
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / f"llama_cpp_python-{VERSION}.tar.gz"
    if not path.exists():
        # It is not built, only downloaded: the end of pip's run does not matter.
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet",
                        "--no-deps", "--no-binary", ":all:", "--dest", cache,
                        f"llama-cpp-python=={VERSION}"],
                       capture_output=True, timeout=600, check=False)
    if not path.exists():
        raise OutOfReach("the package with the templates cannot be had")
    if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
        raise SystemExit(f"{path} is not the file that was meant")
    return path


def unpack(path, folder):
    folder.mkdir(exist_ok=True)
    with tarfile.open(path) as tar:
        for member in tar:
            if FOLDER in member.name and member.name.endswith(".jinja"):
                name = member.name.rsplit("/", 1)[1]
                (folder / name).write_bytes(tar.extractfile(member).read())
    (folder / "done").touch()


def environment():
    """What Hugging Face's library runs templates in, but for its ban of changes
    to lists, which some of these templates make."""
    import jinja2.ext
    import jinja2.sandbox

    def tojson(value, ensure_ascii=False, indent=None, separators=None,
               sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent,
                          separators=separators, sort_keys=sort_keys)

    def raise_exception(text):
        raise jinja2.exceptions.TemplateError(text)

    env = jinja2.sandbox.SandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True,
        extensions=[jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.filters["from_json"] = json.loads
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: "2026-01-02"
    return env
