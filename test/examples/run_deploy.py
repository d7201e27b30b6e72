#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The files of examples/deploy: they are valid, and a gateway starts with their
arguments and stops as they expect.

usage: run_deploy.py TNK_COMMAND SOURCE_ROOT

systemd-analyze and PyYAML are used if they are there.

Output is TAP, see test/support/tap.py.
"""
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "gateway"))
from gateway import SERVICE_KEY, Client, Command, local
from tap import check, plan, skip

TNK = sys.argv[1]
ROOT = pathlib.Path(sys.argv[2])
FILES = ROOT / "examples/deploy"


def value_of(args, name):
    """Of an option, in either form."""
    line = " ".join(args)
    return re.search(rf"--{name}[= ](\S+)", line)[1]


def serves(service, args, what):
    """A gateway with these arguments is ready without a key, and says so until a
    signal; then it still serves."""
    env = {"TINKER_BASE_URL": service.url, "TINKER_API_KEY": SERVICE_KEY}
    with Command(TNK, "gateway", *args, env=env) as gateway:
        port = gateway.url.split(":")[-1]
        client, admin = (Client(f"http://127.0.0.1:{port}", **head) for head in ({}, {"x_api_key": "secret"}))
        check([client.ask("GET", path)[0] for path in ("/readyz", "/healthz")] == [200, 200], f"{what}: it is ready")
        check(client.chat("hi")[0] == 401, f"{what}: it needs a key")
        check(admin.post("/tnk/sessions", {})[0] == 200, f"{what}: the admin key is that of the file")
        gateway.process.send_signal(signal.SIGTERM)
        while client.ask("GET", "/readyz")[0] == 200:
            pass
        check(client.ask("GET", "/healthz")[0] == 200 and admin.chat("hi")[0] == 200, f"{what}: it lingers")
        gateway.kill()
    check(pathlib.Path(value_of(args, "record")).stat().st_size > 0, f"{what}: it has a record")


def stops_in_time(args, limit, what):
    check(limit > int(value_of(args, "linger-s")) + int(value_of(args, "drain-s")), f"{what}: there is time to stop")


# ---- systemd ----


def unit_args(text, folder):
    """The arguments of the gateway, with the places of this test."""
    line = re.search(r"^ExecStart=((?:.*\\\n)*.*)$", text, re.M)[1].replace("\\\n", " ")
    for old, new in (("%d", folder), ("%S/tnk-gateway", folder), ("${MODEL}", "tnk/byte-lm"), ("8080", "0")):
        line = line.replace(old, str(new))
    words = shlex.split(line)
    check(words[:2] == ["/usr/bin/tnk", "gateway"], "the unit starts the gateway", words)
    return words[2:]


def is_a_unit(text, folder):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        skip("systemd accepts the unit", "systemd-analyze is not installed")
        return
    unit = folder / "tnk-gateway.service"
    unit.write_text(text.replace("/usr/bin/tnk", TNK))
    done = subprocess.run([analyze, "verify", "--man=no", unit], capture_output=True, text=True, timeout=60,
                          check=False)
    said = [line for line in done.stderr.splitlines() if "tnk-gateway" in line]
    check(not said, "systemd accepts the unit", done)


# ---- Kubernetes ----


def kubernetes(service, folder):
    try:
        import yaml
    except ImportError:
        skip("the manifest", "PyYAML is not installed")
        return
    objects = {o["kind"]: o for o in yaml.safe_load_all((FILES / "kubernetes.yaml").read_text())}
    check(set(objects) == {"Deployment", "PersistentVolumeClaim", "Service"}, "the objects", objects)
    spec = objects["Deployment"]["spec"]
    labels, pod = spec["template"]["metadata"]["labels"], spec["template"]["spec"]
    container = pod["containers"][0]
    check(spec["selector"]["matchLabels"] == labels == objects["Service"]["spec"]["selector"], "one set of labels", labels)
    check(spec["replicas"] == 1 and spec["strategy"]["type"] == "Recreate", "one gateway has the record", spec)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    probes = [container[name]["httpGet"] for name in ("readinessProbe", "livenessProbe")]
    check([p["path"] for p in probes] == ["/readyz", "/healthz"] and all(p["port"] in ports for p in probes), "probes", probes)
    check(objects["Service"]["spec"]["ports"][0]["targetPort"] in ports, "the port of the service", ports)
    volumes = {v["name"] for v in pod["volumes"]}
    check(volumes == {m["name"] for m in container["volumeMounts"]}, "each volume is mounted", volumes)
    start = re.search(r"^ENTRYPOINT (.*)$", (FILES / "Containerfile").read_text(), re.M)[1]
    words = yaml.safe_load(start)
    check(words[1] == "gateway" and value_of(words, "port") == str(ports["http"]), "the container listens there", words)
    stops_in_time(container["args"], pod["terminationGracePeriodSeconds"], "kubernetes")
    args = [arg.replace("/etc/tnk", str(folder)).replace("/var/lib/tnk", str(folder)).replace("$(MODEL)", "tnk/byte-lm")
            for arg in container["args"]]
    serves(service, [word.replace("8080", "0") for word in words[2:]] + args, "kubernetes")


# ---- The container ----


def container(folder):
    """The libraries of the command come from packages that the recipe finds."""
    text = (FILES / "Containerfile").read_text()
    check(set(re.findall(r"^FROM (\S+)", text, re.M)) == {"docker.io/library/debian:13"}, "one release of Debian")
    options = dict(re.findall(r"^option\('(\w+)', type: '(\w+)'", (ROOT / "meson_options.txt").read_text(), re.M))
    for name, value in re.findall(r"-D(\w+)=(\w+)", text):
        check(value in {"boolean": ("true", "false"), "feature": ("enabled", "disabled")}[options[name]],
              f"the option {name} of the build", value)
    find = re.search(r"^RUN (ldd (?:.*\\\n)*.*)$", text, re.M)[1].replace("\\\n", " ")
    if shutil.which("dpkg") is None or not pathlib.Path("/etc/debian_version").exists():
        skip("the packages of the container", "this is not Debian")
        return
    out = folder / "packages"
    script = find.replace("/usr/local/bin/tnk", shlex.quote(TNK)).replace("/packages", shlex.quote(str(out)))
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=120, check=False)
    got = out.read_text().split()
    check(done.returncode == 0 and {"libuv1", "libjansson4", "libc6"} <= {re.sub("t64$", "", name) for name in got} and
          not any(re.search("^libtnk|-dev|-cross|-i386", name) for name in got), "the packages of the container", (done, got))


def main():
    unit = (FILES / "tnk-gateway.service").read_text()
    with tempfile.TemporaryDirectory() as name, local(TNK) as service:
        folder = pathlib.Path(name)
        (folder / "admin.key").write_text("secret\n")
        is_a_unit(unit, folder)
        args = unit_args(unit, folder)
        stops_in_time(args, int(re.search(r"TimeoutStopSec=(\d+)", unit)[1]), "systemd")
        serves(service, args, "systemd")
        (folder / "record.jsonl").unlink()
        kubernetes(service, folder)
        container(folder)
    plan()


main()
