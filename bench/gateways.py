"""The gateways that are compared, each a process of its own, and what they cost."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter, sleep

from loads import stay_on_core

LITELLM = "litellm[proxy]>=1.106,<2"
# its newest versions want a newer list of certificates than every index has; on loopback no list is needed at all
LITELLM_OVERRIDES = "certifi\n"
START_PATIENCE = 120.0

NGINX = """\
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
worker_rlimit_nofile 16384;
events {{ worker_connections 8192; }}
http {{
  access_log off; keepalive_requests 10000000; client_max_body_size 32m;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream model {{ server 127.0.0.1:{upstream}; keepalive 256; keepalive_requests 10000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location /health {{ return 200 "ok"; }}
    location / {{
      proxy_pass http://model; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
      proxy_read_timeout 300s;
    }}
  }}
}}
"""

# it listens on loopback for the length of the bench, and is measured as the others are: without keys
LITELLM_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOG": "ERROR",
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
}
LITELLM_CONFIG = """\
model_list:
  - model_name: bench
    litellm_params: {{ model: openai/bench, api_base: "http://127.0.0.1:{upstream}/v1", api_key: none }}
litellm_settings: {{ telemetry: false }}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Gateway:
    """A gateway that runs. Without a process it is no gateway at all: the upstream itself."""

    name: str
    port: int
    process: subprocess.Popen[bytes] | None = None
    start_seconds: float = 0.0
    version: str = ""
    idle_bytes: int = field(default=0)

    def pids(self) -> list[int]:
        """Its process and all that came from it."""
        if self.process is None:
            return []
        found = [self.process.pid]
        for pid in found:
            for listed in Path(f"/proc/{pid}/task").glob("*/children"):
                found += [int(child) for child in listed.read_text().split()]
        return found

    def cpu_seconds(self) -> float:
        return sum(map(_cpu_seconds, self.pids()))

    def resident_bytes(self) -> int:
        return sum(_resident_bytes(pid) for pid in self.pids())

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _cpu_seconds(pid: int) -> float:
    """User and system time. The scheduler's own count is used where it is kept: it is not rounded to ticks."""
    threads = list(Path(f"/proc/{pid}/task").glob("*/schedstat"))
    if threads:
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def launch(
    name: str, command: Sequence[str], port: int, folder: Path, environment: Mapping[str, str], spread: bool = False
) -> Gateway:
    """Start a gateway and wait until it answers. It has a core of its own unless it is to be ``spread`` over all."""
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        begin = perf_counter()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, **environment},
            cwd=folder,
            preexec_fn=None if spread else partial(stay_on_core, 1),
        )
    gateway = Gateway(name, port, process)
    while not _answers(port):
        if process.poll() is not None or perf_counter() - begin > START_PATIENCE:
            gateway.stop()
            raise RuntimeError(f"{name} did not start: {log.read_text(errors='replace')[-600:]}")
        sleep(0.005)
    gateway.start_seconds = perf_counter() - begin
    return gateway


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness", timeout=5) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


# -- each of them ------------------------------------------------------------------------------------------------------


def start_nginx(upstream: int, folder: Path) -> Gateway:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        raise RuntimeError("nginx is not installed (apt-get install nginx-light); its column is left out")
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, upstream=upstream, port=port))
    gateway = launch("nginx", [program, "-p", str(folder), "-c", str(config)], port, folder, {})
    told = subprocess.run([program, "-v"], capture_output=True, text=True, check=False).stderr
    gateway.version = told.strip().rpartition("/")[2]
    return gateway


def start_litellm(upstream: int, folder: Path, build: Path) -> Gateway:
    room = build / "litellm"
    program = room / "bin" / "litellm"
    if not program.exists():
        install_litellm(room)
    port = free_port()
    config = folder / "litellm.yaml"
    config.write_text(LITELLM_CONFIG.format(upstream=upstream))
    command = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    gateway = launch("litellm", command, port, folder, LITELLM_ENVIRONMENT)
    question = "from importlib.metadata import version; print(version('litellm'))"
    gateway.version = subprocess.run(
        [room / "bin" / "python", "-c", question], capture_output=True, text=True, check=False
    ).stdout.strip()
    return gateway


def install_litellm(room: Path) -> None:
    print("bench: installing LiteLLM into its own environment ...", file=sys.stderr, flush=True)
    beside = Path(sys.executable).with_name("uv")
    installer = str(beside) if beside.exists() else shutil.which("uv")
    steps: list[list[str]] = [[sys.executable, "-m", "venv", "--clear", str(room)]]
    python = str(room / "bin" / "python")
    if installer:
        overrides = room.with_name("litellm-overrides.txt")
        overrides.parent.mkdir(parents=True, exist_ok=True)
        overrides.write_text(LITELLM_OVERRIDES)
        steps.append(
            [installer, "pip", "install", "--quiet", "--python", python, "--override", str(overrides), LITELLM]
        )
    else:
        steps.append([python, "-m", "pip", "install", "--quiet", LITELLM])
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            shutil.rmtree(room, ignore_errors=True)
            raise RuntimeError(f"LiteLLM could not be installed; its column is left out: {done.stderr.strip()[-300:]}")


def start_toolglot(
    name: str, upstream: int, folder: Path, options: Sequence[str], workers: int = 1, checkout: Path | None = None
) -> Gateway:
    """Start toolglot, from another checkout if one is given."""
    port = free_port()
    base = f"http://127.0.0.1:{upstream}/v1"
    command = [sys.executable, "-m", "toolglot", "serve", "--base-url", base, "--port", str(port), *options]
    environment = {"TOOLGLOT_WORKERS": str(workers), "XDG_STATE_HOME": str(folder)}
    if checkout is not None:
        environment["PYTHONPATH"] = str(checkout.resolve() / "src")
    return launch(name, command, port, folder, environment, spread=workers > 1)


TOOLGLOTS: Mapping[str, tuple[str, ...]] = {
    "toolglot-hermes": ("--mode", "text", "--dialect", "hermes"),
    "toolglot-qwen3_coder": ("--mode", "text", "--dialect", "qwen3_coder"),
    "toolglot-native": ("--mode", "native"),
}


BEFORE = "before-"
"""What the name of a gateway from another checkout begins with."""


def start_all(
    upstream: int, folder: Path, build: Path, wanted: Sequence[str], against: Path | None = None
) -> Iterator[Gateway]:
    """Those that can be started; of the others it is said why not."""
    yield Gateway("direct", upstream)
    starters: dict[str, Callable[[], Gateway]] = {
        "nginx": partial(start_nginx, upstream, folder),
        "litellm": partial(start_litellm, upstream, folder, build),
    }
    for name, options in TOOLGLOTS.items():
        starters[name] = partial(start_toolglot, name, upstream, folder, options)
        if against is not None:
            older = BEFORE + name
            starters[older] = partial(start_toolglot, older, upstream, folder, options, checkout=against)
    hermes = TOOLGLOTS["toolglot-hermes"]
    starters["toolglot-workers"] = partial(start_toolglot, "toolglot-workers", upstream, folder, hermes, 2)
    for name, starter in starters.items():
        if name.removeprefix(BEFORE).partition("-")[0] not in wanted:
            continue
        try:
            yield starter()
        except RuntimeError as error:
            print(f"**{name} is missing: {error}**\n", flush=True)
